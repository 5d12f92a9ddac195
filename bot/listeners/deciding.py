"""From a click to its result: who it is first, then one call to the engine, then the truth.

Everything durable happens in that one call and before the ack; the private answer to what was
recorded or refused is queued in the same commit. What could not be recorded is whispered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from functools import partial
from typing import Any, TypeVar

from bot import replies
from bot.button_value import ButtonValue
from bot.identity import IdentityWatch
from bot.kept_work import KeptWork, TooMuchAtOnce
from bot.replaced import replaced_message
from bot.whisper import Whisperer
from executor.domain.approval import Vote
from executor.domain.errors import CommitUnknown, DatabaseUnavailable
from executor.domain.ids import PrincipalId, TenantId
from executor.domain.transition import Reason, Refused
from executor.engine.click import Click, ClickResult, NotConfirmed
from executor.engine.decisions import decide_clicks, read_back
from executor.engine.eligibility import objection_to_deciding
from executor.engine.engine import Engine
from executor.engine.group import Group
from executor.engine.redrawing import place_of

T = TypeVar("T")

DECIDE_BY_SECONDS = 2.2
READ_SECONDS = 0.25
"""Counted from the click's arrival; with a grace for each, an answer leaves within Slack's 3 s."""


class Deciding:
    """Decides the clicks of one process, many in one commit."""

    def __init__(
        self,
        engine: Engine,
        tenant: TenantId,
        people: IdentityWatch,
        whisperer: Whisperer,
        kept: KeptWork,
    ) -> None:
        self._engine = engine
        self._kept = kept
        self._tenant = tenant
        self._people = people
        self._whisperer = whisperer
        self._group: Group[Click, ClickResult] = Group(partial(_decide, engine))

    @property
    def tenant(self) -> TenantId:
        """The tenant whose operations are decided here."""
        return self._tenant

    def click(
        self,
        value: ButtonValue,
        *,
        principal: PrincipalId,
        user_id: str,
        vote: Vote,
        note: str,
        channel: str,
        message_ts: str,
        request_hash: bytes,
    ) -> Click:
        """Make the engine's click from what the button names and where it stood."""
        return Click(
            tenant_id=self._tenant,
            operation_id=value.operation,
            approval_id=value.approval,
            digest=value.digest,
            content_revision=value.content_revision,
            nonce=value.nonce,
            principal=principal,
            vote=vote,
            note=note,
            channel=channel,
            message_ts=message_ts,
            request_hash=request_hash,
            user_id=user_id,
        )

    async def decide(self, click: Click) -> ClickResult:
        """Record one click and say what it came to.

        Raises ``DatabaseUnavailable`` when nothing was recorded, after saying so to the person.
        """
        loop = asyncio.get_running_loop()
        decide_by = loop.time() + DECIDE_BY_SECONDS
        try:
            if not await self._people.ensure_fresh([click.principal]):
                self.whisper(click, replies.identity_unverified())
                return Refused(Reason.IDENTITY_UNKNOWN)
            result = await self._submit(click, decide_by - loop.time())
        except DatabaseUnavailable:
            self.whisper(click, replies.database_away())
            raise
        if isinstance(result, NotConfirmed):
            self.whisper(click, replies.not_confirmed())
        self._kept.begin(self._retire_orphan(click))
        return result

    async def objection(self, principal: PrincipalId) -> Refused | None:
        """Say why somebody may not decide at all, before a form is opened for them.

        Raises ``DatabaseUnavailable``.
        """
        if not await self._people.ensure_fresh([principal]):
            return Refused(Reason.IDENTITY_UNKNOWN)
        return await self.read(objection_to_deciding(self._engine, self._tenant, principal))

    async def read(self, work: Coroutine[Any, Any, T]) -> T:
        """Read what a click needs; raises ``DatabaseUnavailable`` also when it is slow."""
        try:
            return await self._kept.within(READ_SECONDS, work)
        except (TimeoutError, TooMuchAtOnce) as error:
            raise DatabaseUnavailable("what a click needs could not be read in time") from error

    def whisper(self, click: Click, text: str) -> None:
        """Tell the clicker something that is not stored."""
        self._whisperer.say(click.channel, click.user_id, text)

    async def idle(self) -> None:
        """Wait until every click that was taken has been answered."""
        await self._group.idle()

    async def _submit(self, click: Click, seconds: float) -> ClickResult:
        try:
            return await self._kept.within(max(0.0, seconds), self._group.submit(click))
        except TooMuchAtOnce as error:
            raise DatabaseUnavailable("too many clicks are waiting") from error
        except TimeoutError:
            # The group goes on without us; whether it commits is not known here.
            return NotConfirmed()
        except CommitUnknown:
            return await self._read_back(click)

    async def _read_back(self, click: Click) -> ClickResult:
        try:
            return await self.read(read_back(self._engine, click))
        except DatabaseUnavailable:
            return NotConfirmed()

    async def _retire_orphan(self, click: Click) -> None:
        """Take the buttons off a message that is not the card, though it looks like one."""
        try:
            place = await place_of(self._engine, self._tenant, click.operation_id)
        except (DatabaseUnavailable, CommitUnknown):
            return
        if place is None or place == (click.channel, click.message_ts) or not click.message_ts:
            return
        await self._whisperer.retire(click.channel, click.message_ts, *replaced_message())


async def _decide(engine: Engine, clicks: Sequence[Click]) -> Sequence[ClickResult]:
    return await decide_clicks(engine, clicks)
