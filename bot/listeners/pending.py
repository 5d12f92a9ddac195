"""``/signoff pending``: what waits for whoever asks, as a private list; or one of it, in full."""

from __future__ import annotations

from dataclasses import dataclass

from bot import command_replies, replies
from bot.cards import CardPainter
from bot.identity import IdentityWatch
from bot.listeners.full_views import FullViews
from bot.listeners.payload import SlashCommand
from bot.listeners.pressing import Place
from bot.notice_text import refusal_text
from bot.pending_list import MOST_LISTED, pending_text
from executor.domain.ids import PrincipalId, TenantId
from executor.domain.payloads import JsonObject
from executor.domain.transition import Refused
from executor.engine.engine import Engine
from executor.engine.pending import pending_for
from executor.engine.people import objection_to_member
from executor.engine.redrawing import place_of
from executor.engine.status import operation_by_number


@dataclass(frozen=True, slots=True)
class Listed:
    """A private answer with buttons; ``text`` stands in where blocks cannot be shown."""

    text: str
    blocks: list[JsonObject]


class PendingList:
    """Answers with what waits in one tenant."""

    def __init__(
        self,
        engine: Engine,
        tenant: TenantId,
        people: IdentityWatch,
        views: FullViews,
        painter: CardPainter,
    ) -> None:
        self._engine = engine
        self._tenant = tenant
        self._people = people
        self._views = views
        self._painter = painter

    async def answer(self, command: SlashCommand, number: int | None) -> str | Listed | None:
        """List what this person could still decide, or open all of one operation at once.

        ``None``: there is nothing to be said beside what has opened.
        """
        principal = await self._people.acting(command.principal())
        if principal is None:
            return replies.identity_unverified()
        if number is None:
            return await self._list(principal)
        return await self._show(command, principal, number)

    async def _list(self, principal: PrincipalId) -> str | Listed:
        pending = await pending_for(self._engine, self._tenant, principal, MOST_LISTED)
        if isinstance(pending, Refused):
            return refusal_text(pending.reason, pending.detail)
        text = pending_text(pending)
        if not pending.lines:
            return text
        return Listed(text, self._painter.draw_pending(pending, self._tenant))

    async def _show(self, command: SlashCommand, principal: PrincipalId, number: int) -> str | None:
        # A command works also where somebody only shares a channel with us.
        objection = await objection_to_member(self._engine, self._tenant, principal)
        if objection is not None:
            return refusal_text(objection.reason, objection.detail)
        operation = await operation_by_number(self._engine, self._tenant, number)
        record = None if operation is None else await self._views.record_of(operation)
        if record is None:
            return command_replies.operation_unknown()
        channel, ts = await place_of(self._engine, self._tenant, record.id) or ("", "")
        place = Place(channel, ts, command.channel_id)
        await self._views.open_for(
            command.trigger_id, command.user_id, command.principal(), record, place
        )
        return None
