"""One listener for each word that a person may give about something that may have been sent.

Everything durable happens in one call to the engine and before the ack; the private answer to what
was recorded or refused is queued in the same commit. What could not be recorded is whispered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from slack_bolt.async_app import AsyncAck

from bot import replies
from bot.identity import IdentityWatch
from bot.ingress.handler import REQUEST_HASH
from bot.kept_work import KeptWork, TooMuchAtOnce
from bot.listeners.clicks import read_click
from bot.listeners.deciding import DECIDE_BY_SECONDS, READ_SECONDS
from bot.settle_value import SettleValue
from bot.whisper import Whisperer
from executor.domain.errors import CommitUnknown, DatabaseUnavailable
from executor.domain.ids import TenantId
from executor.domain.transition import Reason
from executor.engine.click import NotConfirmed
from executor.engine.engine import Engine
from executor.engine.group import Group
from executor.engine.settling import read_back, settle
from executor.engine.word import Said, Word, WordResult

Outdated = Callable[[AsyncAck, dict[str, Any]], Awaitable[None]]


class Settling:
    """Hears the words of one process, many in one commit.

    ``outdated`` answers a button whose value is not ours.
    """

    def __init__(
        self,
        engine: Engine,
        tenant: TenantId,
        people: IdentityWatch,
        whisperer: Whisperer,
        kept: KeptWork,
        outdated: Outdated,
    ) -> None:
        self._engine = engine
        self._tenant = tenant
        self._people = people
        self._whisperer = whisperer
        self._kept = kept
        self._outdated = outdated
        self._group: Group[Word, WordResult] = Group(partial(_settle, engine))

    async def sent(self, ack: AsyncAck, body: dict[str, Any], context: Mapping[str, Any]) -> None:
        """Record that it was sent."""
        await self._hear(ack, body, context, Said.SENT)

    async def not_sent(
        self, ack: AsyncAck, body: dict[str, Any], context: Mapping[str, Any]
    ) -> None:
        """Record that it was not sent."""
        await self._hear(ack, body, context, Said.NOT_SENT)

    async def send_again(
        self, ack: AsyncAck, body: dict[str, Any], context: Mapping[str, Any]
    ) -> None:
        """Record that it was not sent, and approve that it is sent once more."""
        await self._hear(ack, body, context, Said.SEND_AGAIN)

    async def leave(self, ack: AsyncAck, body: dict[str, Any], context: Mapping[str, Any]) -> None:
        """Record that somebody looked and leaves it as it is."""
        await self._hear(ack, body, context, Said.LEAVE)

    async def idle(self) -> None:
        """Wait until every word that was taken has been answered."""
        await self._group.idle()

    async def _hear(
        self, ack: AsyncAck, body: dict[str, Any], context: Mapping[str, Any], said: Said
    ) -> None:
        click = read_click(body)
        if click is None:
            await ack()
            return
        if not click.is_for(self._tenant):
            text = replies.sentence(Reason.OTHER_WORKSPACE, {})
            self._whisperer.say(click.container.channel_id, click.user.id, text)
            await ack()
            return
        value = SettleValue.decode(click.action.value)
        if value is None:
            await self._outdated(ack, body)
            return
        await self._record(
            Word(
                tenant_id=self._tenant,
                operation_id=value.operation,
                attempt_id=value.attempt,
                said=said,
                principal=click.principal(self._tenant),
                note="",
                channel=click.container.channel_id,
                message_ts=click.container.message_ts,
                request_hash=context[REQUEST_HASH],
                user_id=click.user.id,
            )
        )
        await ack()

    async def _record(self, word: Word) -> None:
        """Record one word; raises ``DatabaseUnavailable`` after saying that nothing was."""
        loop = asyncio.get_running_loop()
        settle_by = loop.time() + DECIDE_BY_SECONDS
        try:
            if not await self._people.ensure_fresh([word.principal]):
                self._whisper(word, replies.identity_unverified())
                return
            result = await self._submit(word, max(0.0, settle_by - loop.time()))
        except DatabaseUnavailable:
            self._whisper(word, replies.database_away())
            raise
        if isinstance(result, NotConfirmed):
            self._whisper(word, replies.not_confirmed())

    async def _submit(self, word: Word, seconds: float) -> WordResult:
        try:
            return await self._kept.within(seconds, self._group.submit(word))
        except TooMuchAtOnce as error:
            raise DatabaseUnavailable("too many clicks are waiting") from error
        except TimeoutError:
            # The group goes on without us; whether it commits is not known here.
            return NotConfirmed()
        except CommitUnknown:
            return await self._read_back(word)

    async def _read_back(self, word: Word) -> WordResult:
        try:
            return await self._kept.within(READ_SECONDS, read_back(self._engine, word))
        except (DatabaseUnavailable, TimeoutError, TooMuchAtOnce):
            return NotConfirmed()

    def _whisper(self, word: Word, text: str) -> None:
        self._whisperer.say(word.channel, word.user_id, text)


async def _settle(engine: Engine, words: Sequence[Word]) -> Sequence[WordResult]:
    return await settle(engine, words)
