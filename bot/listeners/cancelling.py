"""Stopping a run at a person's word, and what that person is told of it."""

from __future__ import annotations

from typing import assert_never

from bot import command_replies
from bot.notice_text import refusal_text
from executor.domain.ids import PrincipalId, TenantId, operation_label
from executor.domain.transition import Refused
from executor.engine.endings import Stopped, cancel
from executor.engine.engine import Engine


async def cancel_run(engine: Engine, tenant: TenantId, number: int, principal: PrincipalId) -> str:
    """Stop a run and say what that came to; raises ``CommitUnknown``."""
    result = await cancel(engine, tenant, number, principal)
    match result:
        case Refused():
            return refusal_text(result.reason, result.detail)
        case Stopped(sending=(), done=()):
            return command_replies.cancelled(result.number)
        case Stopped(sending=()):
            return command_replies.cancelled_after(result.number, result.done)
        case Stopped():
            names = ", ".join(operation_label(n) for n in result.sending)
            return f"{command_replies.cancelled_too_late(result.number)} ({names})"
        case _:
            assert_never(result)
