"""One listener for each button of a card, and one for every button that is no longer on any."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from pydantic import ValidationError
from slack_bolt.async_app import AsyncAck

from bot import replies
from bot.button_value import ButtonValue
from bot.card_compensation import DECIDE, verbs_of
from bot.cards import CardPainter
from bot.ingress.handler import REQUEST_HASH
from bot.listeners.deciding import Deciding
from bot.listeners.opening_views import ViewOpener
from bot.listeners.payload import ButtonClick
from bot.view_origin import ViewOrigin
from bot.whisper import Whisperer
from executor.domain.approval import Vote
from executor.domain.errors import Corrupt
from executor.domain.payloads import JsonObject
from executor.domain.transition import Reason
from executor.engine.card_record import OperationRecord
from executor.engine.engine import Engine
from executor.engine.presenting import SubjectKind, operation_record
from executor.engine.redrawing import redraw

_log = logging.getLogger(__name__)

OUR_ACTIONS = (
    "approve",
    "reject",
    "review",
    "settle_sent",
    "settle_not_sent",
    "settle_send_again",
    "settle_leave",
)


@dataclass(frozen=True, slots=True)
class _Pressed:
    """A click on a button of ours, and what the button names."""

    click: ButtonClick
    value: ButtonValue
    request_hash: bytes


class Clicks:
    """Answers clicks on messages."""

    def __init__(
        self,
        engine: Engine,
        deciding: Deciding,
        painter: CardPainter,
        opener: ViewOpener,
        whisperer: Whisperer,
    ) -> None:
        self._engine = engine
        self._deciding = deciding
        self._painter = painter
        self._opener = opener
        self._whisperer = whisperer

    async def approve(
        self, ack: AsyncAck, body: dict[str, Any], context: Mapping[str, Any]
    ) -> None:
        """Record an approval."""
        pressed = await self._pressed(body, context)
        if pressed is not None:
            await self._vote(pressed, Vote.APPROVE)
        await ack()

    async def reject(self, ack: AsyncAck, body: dict[str, Any], context: Mapping[str, Any]) -> None:
        """Ask for the reason of a rejection; whoever may not decide is refused on record."""
        pressed = await self._pressed(body, context)
        if pressed is not None and await self._may_decide(pressed):
            record = await self._record(pressed)
            verbs = DECIDE if record is None else verbs_of(record)
            await self._open(pressed, self._painter.draw_reject_modal(pressed.value, verbs))
        await ack()

    async def review(self, ack: AsyncAck, body: dict[str, Any], context: Mapping[str, Any]) -> None:
        """Show everything in full; the approval is in that view."""
        pressed = await self._pressed(body, context)
        if pressed is not None:
            record = await self._record(pressed)
            if record is None:
                await self._say_outdated(pressed.click)
            else:
                view = self._painter.draw_full_view(record, nonce=pressed.value.nonce)
                await self._open(pressed, view)
        await ack()

    async def outdated(self, ack: AsyncAck, body: dict[str, Any]) -> None:
        """Answer a button of another release: nothing is recorded and the card is drawn again."""
        click = read_click(body)
        if click is not None:
            _log.warning("a click on an unknown action was answered with a fresh card")
            await self._say_outdated(click)
        await ack()

    async def _pressed(self, body: dict[str, Any], context: Mapping[str, Any]) -> _Pressed | None:
        """Read a click on one of our buttons, or answer that it cannot be read."""
        click = read_click(body)
        if click is None:
            return None
        if not click.is_for(self._deciding.tenant):
            text = replies.sentence(Reason.OTHER_WORKSPACE, {})
            self._whisperer.say(click.container.channel_id, click.user.id, text)
            return None
        value = ButtonValue.decode(click.action.value)
        if value is None:
            await self._say_outdated(click)
            return None
        return _Pressed(click, value, context[REQUEST_HASH])

    async def _record(self, pressed: _Pressed) -> OperationRecord | None:
        """Read what the button is about; ``None``: there is no such operation to be shown."""
        reading = operation_record(self._engine, self._deciding.tenant, pressed.value.operation)
        try:
            record = await self._deciding.read(reading)
        except (Corrupt, AssertionError):
            return None
        return record if isinstance(record, OperationRecord) else None

    async def _vote(self, pressed: _Pressed, vote: Vote) -> None:
        click = pressed.click
        await self._deciding.decide(
            self._deciding.click(
                pressed.value,
                principal=click.principal(self._deciding.tenant),
                user_id=click.user.id,
                vote=vote,
                note="",
                channel=click.container.channel_id,
                message_ts=click.container.message_ts,
                request_hash=pressed.request_hash,
            )
        )

    async def _may_decide(self, pressed: _Pressed) -> bool:
        click = pressed.click
        principal = click.principal(self._deciding.tenant)
        objection = await self._deciding.objection(principal)
        if objection is None:
            return True
        if objection.reason is Reason.IDENTITY_UNKNOWN:
            text = replies.identity_unverified()
            self._whisperer.say(click.container.channel_id, click.user.id, text)
        else:
            # The same rule refuses it again under its locks, and keeps it on record.
            await self._vote(pressed, Vote.REJECT)
        return False

    async def _open(self, pressed: _Pressed, view: JsonObject) -> None:
        """Open a modal that carries back where its button stood."""
        click = pressed.click
        shown = ButtonValue.decode(str(view["private_metadata"]))
        assert shown is not None, "the painter has just written it"
        origin = ViewOrigin(shown, click.container.channel_id, click.container.message_ts)
        await self._opener.open(click, {**view, "private_metadata": origin.encode()})

    async def _say_outdated(self, click: ButtonClick) -> None:
        self._whisperer.say(click.container.channel_id, click.user.id, replies.outdated_card())
        subject = _subject(click.action.block_id)
        if subject is not None:
            again = redraw(self._engine, self._deciding.tenant, subject, SubjectKind.OPERATION)
            await self._deciding.read(again)


def read_click(body: dict[str, Any]) -> ButtonClick | None:
    """Read a press of one button; ``None``, and a line in the log, where it is none."""
    try:
        return ButtonClick.model_validate(body)
    except ValidationError:
        # The error would quote the payload.
        _log.warning("a click could not be read")
        return None


def _subject(block_id: str) -> UUID | None:
    """Read whose card a block belongs to from the id that the painter gave it."""
    try:
        return UUID(hex=block_id.partition(".")[0])
    except ValueError:
        return None
