"""Records of operations that are about no ticket, and of runs that are paused for want of money.

op_14 of run_9 would raise the limit of run_7; op_15 of run_7 would call a tool of a server.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from executor.domain.approval import ApprovalStatus, Vote
from executor.domain.budget import Account
from executor.domain.effect import AttemptStatus, Capability, EffectKind, EffectStatus
from executor.domain.ids import OperationId, ReservationId, RunId, policy_principal
from executor.domain.operation import OperationStatus
from executor.domain.payloads import JsonObject
from executor.domain.raising import Limit, Raising, Scope
from executor.domain.run import RunStatus
from executor.domain.transition import Reason
from executor.engine.card_record import AttemptRecord, EffectRecord, OperationRecord, RunRecord
from executor.engine.composing_raise import PROMISE, PROVIDER
from executor.engine.kind_record import RaiseRecord, ToolCallRecord
from executor.engine.pause_record import Charge, PauseRecord
from executor.engine.promises import promise
from executor.engine.tool_port import declared
from tests.support.records import (
    NOW,
    U_APP,
    approval_record,
    attempt_record,
    dated,
    doubt_record,
    operation_record,
    run_record,
    vote_record,
)

POLICY = policy_principal("0123456789abcdef")
RUN_7 = RunId(UUID("0197f000-0000-7000-8000-000000000001"))
OF_THE_RUN = Limit(Scope.RUN, run_id=RUN_7, run=7)
OF_THE_DAY = Limit(Scope.DAY, day=date(2026, 3, 2), timezone="Europe/Amsterdam")
MIDNIGHT = datetime(2026, 3, 2, 23, tzinfo=UTC)
_CONSUMED = approval_record(
    status=ApprovalStatus.CONSUMED, votes=(vote_record(U_APP),), use_by=NOW + timedelta(hours=1)
)
_DENIED = approval_record(
    status=ApprovalStatus.DENIED, votes=(vote_record(U_APP, Vote.REJECT, "It costs too much."),)
)


def raise_record(
    status: OperationStatus = OperationStatus.AWAITING,
    limit: Limit = OF_THE_RUN,
    waiting: tuple[int, ...] = (7,),
    effect: EffectStatus = EffectStatus.PLANNED,
    **changes: Any,
) -> OperationRecord:
    """op_14, which would raise the limit of run_7 from $2.00 to $4.00."""
    raising = Raising(limit, 2_000_000, 4_000_000, 1_512_300, 460_000, 400_000, 51_200)
    part = EffectRecord(
        EffectKind.BUDGET_RAISE, effect, PROVIDER, Capability.TRANSACTIONAL, PROMISE, ()
    )
    record = operation_record(
        id=OperationId(UUID("0197f000-0000-7000-8000-000000000006")),
        number=14,
        run_number=9,
        goal="decide whether run_7 may cost more",
        requester=POLICY,
        status=status,
        why="The policy asks one person whether a limit of the budget is raised.",
        ticket=None,
        effects=(part,),
        raising=RaiseRecord(raising, waiting),
    )
    return replace(record, email=None, **changes)


def tool_record(
    status: OperationStatus = OperationStatus.AWAITING,
    effect: EffectStatus = EffectStatus.PLANNED,
    attempts: tuple[AttemptRecord, ...] = (),
    arguments: JsonObject | None = None,
    **changes: Any,
) -> OperationRecord:
    """op_15, which would refund an order through a server's tool."""
    part = EffectRecord(
        EffectKind.TOOL_CALL,
        effect,
        "mcp:shop",
        Capability.OPAQUE,
        promise(declared("shop")),
        attempts,
    )
    called: JsonObject = {"order": "A-1\u202e7", "lines": [{"sku": "P9", "count": 2}], "note": ""}
    record = operation_record(
        id=OperationId(UUID("0197f000-0000-7000-8000-000000000007")),
        number=15,
        goal="refund order A-17",
        status=status,
        why="The policy asks one person to approve what a tool may change outside.",
        ticket=None,
        effects=(part,),
        tool_call=ToolCallRecord("shop", "refund_order", arguments or called, 20_000),
    )
    return replace(record, email=None, **changes)


def paused_record(pause: PauseRecord, **changes: Any) -> RunRecord:
    """run_7, which is paused."""
    return run_record(
        status=RunStatus.PAUSED,
        reason=Reason.BUDGET_LIMIT,
        summary="",
        ended_at=None,
        operations=(),
        accounted=(),
        pause=pause,
        **changes,
    )


def pause_record(scope: Scope = Scope.RUN, **changes: Any) -> PauseRecord:
    """A pause whose limit op_14 asks to be raised."""
    pause = PauseRecord(
        scope,
        Account(2_000_000, 1_512_300, 460_000, 400_000),
        51_200,
        ZoneInfo("Europe/Amsterdam"),
        MIDNIGHT if scope is Scope.DAY else None,
        (14, OperationStatus.AWAITING),
        None,
        (_charge(),),
    )
    return replace(pause, **changes)


def _charge() -> Charge:
    return Charge(
        ReservationId(UUID("0197f000-0000-7000-8000-00005f0c1b2a")),
        RUN_7,
        7,
        date(2026, 3, 2),
        "model:acme-large",
        400_000,
        NOW,
        NOW + timedelta(minutes=2),
        "acme-large",
        None,
        None,
    )


def raising_states() -> dict[str, OperationRecord | RunRecord]:
    """One record for each state, by a name that says which."""
    lost = attempt_record(AttemptStatus.UNKNOWN, {"server": "shop", "phase": "answer"})
    done = attempt_record(AttemptStatus.APPLIED, {"server": "shop", "result": "refunded"})
    refused = attempt_record(AttemptStatus.NOT_APPLIED, {"server": "shop", "problem": "refused"})
    s, e = OperationStatus, EffectStatus
    operations = {
        "awaiting_raise": raise_record(),
        "awaiting_raise_of_the_day": raise_record(limit=OF_THE_DAY, waiting=(7, 10)),
        "raise_approved": raise_record(
            s.APPROVED, approval=replace(_CONSUMED, status=ApprovalStatus.GRANTED)
        ),
        "raise_succeeded": raise_record(
            s.SUCCEEDED, waiting=(), effect=e.APPLIED, approval=_CONSUMED
        ),
        "raise_rejected": raise_record(s.REJECTED, waiting=(), approval=_DENIED),
        "raise_expired": raise_record(s.EXPIRED, waiting=(), reason=Reason.EXPIRED),
        "raise_stale": raise_record(
            s.STALE, waiting=(), reason=Reason.LIMIT_CHANGED, approval=_CONSUMED
        ),
        "raise_withdrawn": raise_record(s.WITHDRAWN, waiting=(), reason=Reason.NOBODY_WAITS),
        "awaiting_tool": tool_record(),
        "tool_succeeded": tool_record(s.SUCCEEDED, e.APPLIED, (done,), approval=_CONSUMED),
        "tool_failed": tool_record(
            s.FAILED,
            e.NOT_APPLIED,
            (refused,),
            approval=_CONSUMED,
            reason=Reason.REFUSED_BY_PROVIDER,
        ),
        "tool_unknown": tool_record(
            s.UNKNOWN,
            e.UNKNOWN,
            (lost,),
            approval=_CONSUMED,
            reason=Reason.OUTCOME_LOST,
            doubt=doubt_record(),
        ),
    }
    rejected = pause_record(Scope.DAY, asked=None, not_raised=s.REJECTED)
    runs = {
        "run_paused": paused_record(pause_record()),
        "run_paused_for_the_day": paused_record(pause_record(Scope.DAY)),
        "run_paused_until_midnight": paused_record(rejected),
        "run_ended_as_nothing_was_raised": run_record(
            status=RunStatus.FAILED,
            reason=Reason.BUDGET_NOT_RAISED,
            summary="I look first.",
            operations=(),
            accounted=(),
        ),
    }
    return {**{name: dated(record) for name, record in operations.items()}, **runs}
