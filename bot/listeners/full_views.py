"""Puts all of an operation before one person, in a modal that an approval can be given in.

What it shows is recorded before it opens, for this person and under a nonce that it carries back.
"""

from __future__ import annotations

from bot import replies
from bot.button_value import ButtonValue
from bot.card_buttons import may_approve
from bot.cards import CardPainter, view_digest
from bot.identity import IdentityWatch
from bot.listeners.deciding import Deciding
from bot.listeners.opening_views import ViewOpener
from bot.listeners.payload import ButtonClick
from bot.listeners.pressing import Place
from bot.view_origin import ViewOrigin
from bot.whisper import Whisperer
from executor.domain.errors import Corrupt
from executor.domain.ids import OperationId, PrincipalId
from executor.domain.payloads import JsonObject
from executor.engine.card_record import OperationRecord
from executor.engine.engine import Engine
from executor.engine.modals import record_modal
from executor.engine.presenting import Shown, operation_record


class FullViews:
    """Opens full views in one workspace."""

    def __init__(
        self,
        engine: Engine,
        deciding: Deciding,
        people: IdentityWatch,
        painter: CardPainter,
        opener: ViewOpener,
        whisperer: Whisperer,
    ) -> None:
        self._engine = engine
        self._deciding = deciding
        self._people = people
        self._painter = painter
        self._opener = opener
        self._whisperer = whisperer

    async def record_of(self, operation: OperationId) -> OperationRecord | None:
        """Read what is shown; ``None``: there is no such operation to be shown."""
        reading = operation_record(self._engine, self._deciding.tenant, operation)
        try:
            record = await self._deciding.read(reading)
        except (Corrupt, AssertionError):
            return None
        return record if isinstance(record, OperationRecord) else None

    async def open(self, click: ButtonClick, record: OperationRecord, place: Place) -> None:
        """Show a record to whoever pressed a button."""
        principal = click.principal(self._deciding.tenant)
        view = await self._prepared(record, place, principal, click.user.id)
        if view is not None:
            await self._opener.open(click, view)

    async def open_for(
        self,
        trigger_id: str,
        user: str,
        claimed: PrincipalId,
        record: OperationRecord,
        place: Place,
    ) -> bool:
        """Show a record to whoever typed a command; ``False``: it did not open, and they know."""
        view = await self._prepared(record, place, claimed, user)
        if view is None:
            return False
        return await self._opener.open_for(trigger_id, user, place.told_in, view)

    async def _prepared(
        self, record: OperationRecord, place: Place, claimed: PrincipalId, user: str
    ) -> JsonObject | None:
        """Draw a full view and record it for this person; ``None``: nobody knows who it is."""
        acting = await self._people.acting(claimed)
        if acting is None:
            self._whisperer.say(place.told_in, user, replies.identity_unverified())
            return None
        nonce = self._engine.mint()
        view = self._painter.draw_full_view(record, nonce=nonce)
        blocks = view["blocks"]
        assert isinstance(blocks, list)
        shown = Shown(view_digest(blocks), blocks, record.content_revision)
        await self._deciding.read(
            record_modal(self._engine, self._deciding.tenant, nonce, record.id, acting, shown)
        )
        value = ButtonValue.decode(str(view["private_metadata"]))
        assert value is not None, "the painter has just written it"
        if "submit" not in view and may_approve(record):
            # A page has room for what no modal can show.
            self._deciding.send_page(
                value, principal=acting, user_id=user, channel=place.channel, ts=place.message_ts
            )
        origin = ViewOrigin(value, place.channel, place.message_ts, nonce, place.at_home)
        return {**view, "private_metadata": origin.encode()}
