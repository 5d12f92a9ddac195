"""What somebody pressed, and where: on the card, in a private list, in a modal, on the Home tab.

Only the card's own place and the modals that we recorded count for a vote. What stands elsewhere
leads to the card's place, as the record has it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from slack_bolt.async_app import AsyncAck

from bot.button_value import ButtonValue
from bot.listeners.deciding import Deciding
from bot.listeners.payload import ButtonClick
from bot.reason_text import sentence
from bot.view_origin import ViewOrigin
from bot.whisper import Whisperer
from executor.domain.ids import OperationId
from executor.domain.transition import Reason
from executor.engine.engine import Engine
from executor.engine.redrawing import place_of

Outdated = Callable[[AsyncAck, dict[str, Any]], Awaitable[None]]
"""Answers a button whose value is not ours."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a decision belongs: the card, or the full view that was opened from there.

    ``told_in`` is the channel in which the person is answered privately; "" where there is none.
    """

    channel: str
    message_ts: str
    told_in: str
    modal: UUID | None = None
    at_home: bool = False

    def origin(self, value: ButtonValue) -> ViewOrigin:
        """Make what a modal that is opened from here carries back."""
        return ViewOrigin(value, self.channel, self.message_ts, self.modal, self.at_home)


class Pressing:
    """Reads presses for one tenant."""

    def __init__(self, engine: Engine, deciding: Deciding, whisperer: Whisperer) -> None:
        self._engine = engine
        self._deciding = deciding
        self._whisperer = whisperer

    def is_ours(self, click: ButtonClick) -> bool:
        """Say whether a press was meant for this workspace; whoever is elsewhere is told so."""
        if click.is_for(self._deciding.tenant):
            return True
        text = sentence(Reason.OTHER_WORKSPACE, {})
        self._whisperer.say(click.container.channel_id, click.user.id, text)
        return False

    async def place(self, click: ButtonClick, operation: OperationId) -> Place:
        """Say where a press on something about this operation belongs.

        Raises ``DatabaseUnavailable``.
        """
        container, view = click.container, click.view
        if view is None and not container.is_ephemeral:
            channel, ts = container.channel_id, container.message_ts
            return Place(channel, ts, channel)
        origin = None if view is None else ViewOrigin.decode(view.private_metadata)
        if origin is not None:
            return Place(
                origin.channel, origin.message_ts, origin.channel, origin.modal, origin.at_home
            )
        stands = await self._deciding.read(place_of(self._engine, self._deciding.tenant, operation))
        channel, ts = stands or ("", "")
        at_home = view is not None and view.type == "home"
        return Place(channel, ts, container.channel_id or channel, at_home=at_home)
