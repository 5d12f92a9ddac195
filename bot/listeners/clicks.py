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
from bot.listeners.full_views import FullViews
from bot.listeners.opening_views import ViewOpener
from bot.listeners.payload import ButtonClick
from bot.listeners.pressing import Place, Pressing
from bot.operation_value import operation_of
from bot.whisper import Whisperer
from executor.domain.approval import Vote
from executor.domain.ids import OperationId
from executor.domain.transition import Reason
from executor.engine.engine import Engine
from executor.engine.presenting import SubjectKind
from executor.engine.redrawing import redraw

_log = logging.getLogger(__name__)

OUR_ACTIONS = (
    "approve",
    "reject",
    "review",
    "ask",
    "withdraw",
    "more",
    "cancel_run",
    "edit",
    "propose_again",
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
    place: Place
    request_hash: bytes


class Clicks:
    """Answers clicks on messages."""

    def __init__(
        self,
        engine: Engine,
        deciding: Deciding,
        pressing: Pressing,
        views: FullViews,
        painter: CardPainter,
        opener: ViewOpener,
        whisperer: Whisperer,
    ) -> None:
        self._engine = engine
        self._deciding = deciding
        self._pressing = pressing
        self._views = views
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
            record = await self._views.record_of(pressed.value.operation)
            verbs = DECIDE if record is None else verbs_of(record)
            modal = self._painter.draw_reject_modal(pressed.value, verbs)
            origin = pressed.place.origin(pressed.value).encode()
            await self._opener.open(pressed.click, {**modal, "private_metadata": origin})
        await ack()

    async def review(self, ack: AsyncAck, body: dict[str, Any], context: Mapping[str, Any]) -> None:
        """Show everything in full; the approval is in that view."""
        click = read_click(body)
        if click is not None and self._pressing.is_ours(click):
            operation = _operation_in(click.action.value)
            record = None if operation is None else await self._views.record_of(operation)
            if record is None:
                await self._say_outdated(click)
            else:
                place = await self._pressing.place(click, record.id)
                await self._views.open(click, record, place)
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
        if click is None or not self._pressing.is_ours(click):
            return None
        value = ButtonValue.decode(click.action.value)
        if value is None:
            await self._say_outdated(click)
            return None
        place = await self._pressing.place(click, value.operation)
        return _Pressed(click, value, place, context[REQUEST_HASH])

    async def _vote(self, pressed: _Pressed, vote: Vote) -> None:
        click = pressed.click
        await self._deciding.decide(
            self._deciding.click(
                pressed.value,
                principal=click.principal(self._deciding.tenant),
                user_id=click.user.id,
                vote=vote,
                note="",
                channel=pressed.place.channel,
                message_ts=pressed.place.message_ts,
                request_hash=pressed.request_hash,
                modal=pressed.place.modal,
            )
        )

    async def _may_decide(self, pressed: _Pressed) -> bool:
        click = pressed.click
        principal = click.principal(self._deciding.tenant)
        objection = await self._deciding.objection(principal, pressed.value.operation)
        if objection is None:
            return True
        if objection.reason is Reason.IDENTITY_UNKNOWN:
            text = replies.identity_unverified()
            self._whisperer.say(pressed.place.told_in, click.user.id, text)
        else:
            # The same rule refuses it again under its locks, and keeps it on record.
            await self._vote(pressed, Vote.REJECT)
        return False

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


def _operation_in(value: str) -> OperationId | None:
    """Read which operation a button is about, whether or not it names its content as well."""
    named = ButtonValue.decode(value)
    return operation_of(value) if named is None else named.operation


def _subject(block_id: str) -> UUID | None:
    """Read whose card a block belongs to from the id that the painter gave it."""
    try:
        return UUID(hex=block_id.partition(".")[0])
    except ValueError:
        return None
