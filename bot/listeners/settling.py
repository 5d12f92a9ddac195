"""Words about something that may have been done: a button opens a form, the form says the word.

The button alone records nothing but a refusal. The form binds the attempt that it has shown, and
submitting it is the word: one call to the engine, before the ack. What was typed is not lost where
it cannot be recorded.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from slack_bolt.async_app import AsyncAck

from bot import replies
from bot.cards import CardPainter
from bot.identity import IdentityWatch
from bot.ingress.handler import REQUEST_HASH
from bot.kept_work import KeptWork
from bot.listeners.clicks import read_click
from bot.listeners.form_answers import keep_open, problem_of
from bot.listeners.full_views import FullViews
from bot.listeners.opening_views import ViewOpener
from bot.listeners.payload import ButtonClick
from bot.listeners.pressing import Outdated, Pressing
from bot.listeners.recording import Recording
from bot.listeners.views import read_submission
from bot.reason_text import sentence
from bot.settle_value import SettleValue
from bot.whisper import Whisperer
from bot.word_origin import WordOrigin
from executor.domain.errors import DatabaseUnavailable
from executor.domain.ids import PrincipalId, TenantId
from executor.domain.transition import Reason
from executor.engine.card_record import OperationRecord
from executor.engine.engine import Engine
from executor.engine.settling import read_back, settle
from executor.engine.word import MayBeGiven, Said, Word, WordResult

NOTE_BLOCK = "note"
NOTE_INPUT = "text"

_ASK_BY_SECONDS = 0.9
"""Opening the form needs the rest of the trigger's three seconds."""


class Settling:
    """Hears the words of one process, many in one commit.

    ``outdated`` answers a button whose value is not ours.
    """

    def __init__(
        self,
        engine: Engine,
        tenant: TenantId,
        people: IdentityWatch,
        pressing: Pressing,
        views: FullViews,
        painter: CardPainter,
        opener: ViewOpener,
        whisperer: Whisperer,
        kept: KeptWork,
        outdated: Outdated,
    ) -> None:
        self._tenant = tenant
        self._pressing = pressing
        self._views = views
        self._painter = painter
        self._opener = opener
        self._whisperer = whisperer
        self._outdated = outdated
        self._recording: Recording[Word, WordResult] = Recording(
            partial(settle, engine), partial(read_back, engine), people, whisperer, kept
        )

    async def sent(self, ack: AsyncAck, body: dict[str, Any], context: Mapping[str, Any]) -> None:
        """Open the form for saying that it was sent."""
        await self._ask(ack, body, context, Said.SENT)

    async def not_sent(
        self, ack: AsyncAck, body: dict[str, Any], context: Mapping[str, Any]
    ) -> None:
        """Open the form for saying that it was not sent."""
        await self._ask(ack, body, context, Said.NOT_SENT)

    async def send_again(
        self, ack: AsyncAck, body: dict[str, Any], context: Mapping[str, Any]
    ) -> None:
        """Open the form for saying that it was not sent, and for approving it once more."""
        await self._ask(ack, body, context, Said.SEND_AGAIN)

    async def leave(self, ack: AsyncAck, body: dict[str, Any], context: Mapping[str, Any]) -> None:
        """Open the form for saying that somebody looked and leaves it as it is."""
        await self._ask(ack, body, context, Said.LEAVE)

    async def word(self, ack: AsyncAck, body: dict[str, Any], context: Mapping[str, Any]) -> None:
        """Record the word that a submitted form says; a refusal is told in the form."""
        submitted = read_submission(body)
        origin = None if submitted is None else WordOrigin.decode(submitted.view.private_metadata)
        if submitted is None or origin is None or not submitted.is_for(self._tenant):
            await keep_open(ack, NOTE_BLOCK, replies.outdated_card())
            return
        word = self._word(
            origin,
            submitted.principal(self._tenant),
            submitted.user.id,
            context,
            note=submitted.typed(NOTE_BLOCK, NOTE_INPUT),
        )
        try:
            result = await self._recording.record(word)
        except DatabaseUnavailable:
            await keep_open(ack, NOTE_BLOCK, replies.database_away())
            return
        problem = problem_of(result)
        if problem is None:
            await ack()
        else:
            await keep_open(ack, NOTE_BLOCK, problem)

    async def idle(self) -> None:
        """Wait until every word that was taken has been answered."""
        await self._recording.idle()

    async def _ask(
        self, ack: AsyncAck, body: dict[str, Any], context: Mapping[str, Any], said: Said
    ) -> None:
        """Open the form for a word that would count now; else say, on record, why it would not."""
        click = read_click(body)
        if click is None or not self._pressing.is_ours(click):
            await ack()
            return
        value = SettleValue.decode(click.action.value)
        if value is None:
            await self._outdated(ack, body)
            return
        origin = WordOrigin(said, value, click.container.channel_id, click.container.message_ts)
        await self._open_form(click, origin, context)
        await ack()

    async def _open_form(
        self, click: ButtonClick, origin: WordOrigin, context: Mapping[str, Any]
    ) -> None:
        word = self._word(
            origin, click.principal(self._tenant), click.user.id, context, only_asks=True
        )
        result = await self._recording.record(
            word, within=_ASK_BY_SECONDS, unconfirmed=replies.view_not_opened()
        )
        if not isinstance(result, MayBeGiven):
            return
        record = await self._read(origin)
        if record is None:
            text = sentence(Reason.ATTEMPT_CHANGED, {})
            self._whisperer.say(origin.channel, click.user.id, text)
            return
        await self._opener.open(click, self._painter.draw_word_form(record, origin))

    async def _read(self, origin: WordOrigin) -> OperationRecord | None:
        """Read what the form shows; ``None`` where it is no longer about the same attempt."""
        record = await self._views.record_of(origin.value.operation)
        if record is None or record.doubt is None:
            return None
        return record if record.doubt.attempt_id == origin.value.attempt else None

    def _word(
        self,
        origin: WordOrigin,
        principal: PrincipalId,
        user_id: str,
        context: Mapping[str, Any],
        *,
        note: str = "",
        only_asks: bool = False,
    ) -> Word:
        return Word(
            tenant_id=self._tenant,
            operation_id=origin.value.operation,
            attempt_id=origin.value.attempt,
            said=origin.said,
            principal=principal,
            note=note,
            channel=origin.channel,
            message_ts=origin.message_ts,
            request_hash=context[REQUEST_HASH],
            user_id=user_id,
            only_asks=only_asks,
        )
