"""Taking back what one has asked for: a button, and the question that Slack asks before it counts.

The card is the same for everybody, so everybody sees the button; who may not press it is told so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from slack_bolt.async_app import AsyncAck

from bot.identity import IdentityWatch
from bot.ingress.handler import REQUEST_HASH
from bot.kept_work import KeptWork
from bot.listeners.clicks import read_click
from bot.listeners.pressing import Outdated, Pressing
from bot.listeners.recording import Recording
from bot.operation_value import operation_of
from bot.whisper import Whisperer
from executor.domain.ids import TenantId
from executor.engine.engine import Engine
from executor.engine.withdrawing import Withdrawal, WithdrawResult, read_back, withdraw


class Withdrawing:
    """Takes the withdrawals of one process; ``outdated`` answers a value that is not ours."""

    def __init__(
        self,
        engine: Engine,
        tenant: TenantId,
        people: IdentityWatch,
        pressing: Pressing,
        whisperer: Whisperer,
        kept: KeptWork,
        outdated: Outdated,
    ) -> None:
        self._tenant = tenant
        self._pressing = pressing
        self._outdated = outdated
        self._recording: Recording[Withdrawal, WithdrawResult] = Recording(
            partial(_each, engine), partial(read_back, engine), people, whisperer, kept
        )

    async def withdraw(
        self, ack: AsyncAck, body: dict[str, Any], context: Mapping[str, Any]
    ) -> None:
        """Record a withdrawal; what it came to is told by the notice of the same commit."""
        click = read_click(body)
        if click is None or not self._pressing.is_ours(click):
            await ack()
            return
        operation = operation_of(click.action.value)
        if operation is None:
            await self._outdated(ack, body)
            return
        place = await self._pressing.place(click, operation)
        await self._recording.record(
            Withdrawal(
                tenant_id=self._tenant,
                operation_id=operation,
                principal=click.principal(self._tenant),
                channel=place.told_in,
                user_id=click.user.id,
                request_hash=context[REQUEST_HASH],
            )
        )
        await ack()

    async def idle(self) -> None:
        """Wait until every withdrawal that was taken has been answered."""
        await self._recording.idle()


async def _each(engine: Engine, wishes: Sequence[Withdrawal]) -> list[WithdrawResult]:
    """Withdraw one after the other, each in its own commit: they are few."""
    return [await withdraw(engine, wish) for wish in wishes]
