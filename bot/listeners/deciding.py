"""From a click to its result: a vote, recorded before the ack or not at all."""

from __future__ import annotations

from collections.abc import Coroutine
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from bot import replies
from bot.button_value import ButtonValue
from bot.identity import IdentityWatch
from bot.kept_work import KeptWork
from bot.listeners.recording import Recording
from bot.replaced import replaced_message
from bot.step_up import LinkSender
from bot.whisper import Whisperer
from executor.domain.approval import Vote
from executor.domain.errors import CommitUnknown, DatabaseUnavailable
from executor.domain.ids import OperationId, PrincipalId, TenantId
from executor.domain.transition import Reason, Refused
from executor.engine.click import Click, ClickResult
from executor.engine.decisions import decide_clicks, read_back
from executor.engine.eligibility import objection_to_deciding
from executor.engine.engine import Engine
from executor.engine.redrawing import place_of

T = TypeVar("T")


class Deciding:
    """Decides the clicks of one process, many in one commit."""

    def __init__(
        self,
        engine: Engine,
        tenant: TenantId,
        people: IdentityWatch,
        whisperer: Whisperer,
        kept: KeptWork,
        links: LinkSender | None = None,
    ) -> None:
        self._engine = engine
        self._kept = kept
        self._tenant = tenant
        self._people = people
        self._whisperer = whisperer
        self._links = links
        self._recording: Recording[Click, ClickResult] = Recording(
            partial(decide_clicks, engine), partial(read_back, engine), people, whisperer, kept
        )

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
        stops_run: bool = False,
        modal: UUID | None = None,
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
            stops_run=stops_run,
            modal=modal,
        )

    async def decide(self, click: Click) -> ClickResult:
        """Record one click and say what it came to.

        Raises ``DatabaseUnavailable`` when nothing was recorded, after saying so to the person.
        """
        result = await self._recording.record(click)
        if isinstance(result, Refused) and result.reason is Reason.SECOND_FACTOR_NEEDED:
            self._kept.begin(self._send_link(click))
        self._kept.begin(self._retire_orphan(click))
        return result

    async def objection(self, principal: PrincipalId, operation: OperationId) -> Refused | None:
        """Say why somebody may not decide at all, before a form is opened for them.

        Raises ``DatabaseUnavailable``.
        """
        acting = await self._people.acting(principal)
        if acting is None:
            return Refused(Reason.IDENTITY_UNKNOWN)
        return await self.read(objection_to_deciding(self._engine, self._tenant, acting, operation))

    async def read(self, work: Coroutine[Any, Any, T]) -> T:
        """Read what a click needs; raises ``DatabaseUnavailable`` also when it is slow."""
        return await self._recording.read(work)

    async def idle(self) -> None:
        """Wait until every click that was taken has been answered."""
        await self._recording.idle()

    def send_page(
        self, value: ButtonValue, *, principal: PrincipalId, user_id: str, channel: str, ts: str
    ) -> None:
        """Start leading somebody to a page that shows everything, if this bot has one."""
        if self._links is not None:
            click = self.click(
                value,
                principal=principal,
                user_id=user_id,
                vote=Vote.APPROVE,
                note="",
                channel=channel,
                message_ts=ts,
                request_hash=b"",
            )
            self._kept.begin(self._links.send(click))

    async def _send_link(self, click: Click) -> None:
        """Lead somebody who may decide to where the second factor is asked for."""
        if self._links is None or not await self._links.send(click):
            self._whisperer.say(click.channel, click.user_id, replies.no_link())

    async def _retire_orphan(self, click: Click) -> None:
        """Take the buttons off a message that is not the card, though it looks like one."""
        try:
            place = await place_of(self._engine, self._tenant, click.operation_id)
        except (DatabaseUnavailable, CommitUnknown):
            return
        if place is None or place == (click.channel, click.message_ts) or not click.message_ts:
            return
        await self._whisperer.retire(click.channel, click.message_ts, *replaced_message())
