"""Records of a closing without its email and of the reopening that would undo it.

op_12 of run_7 has closed ticket 4101, at version 8; op_13 of run_8 would open it again.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from executor.domain.approval import ApprovalStatus, Vote
from executor.domain.closing import REOPENING_NOTE
from executor.domain.compensation import LEFT_BECAUSE
from executor.domain.effect import AttemptStatus, Capability, EffectKind, EffectStatus
from executor.domain.ids import OperationId, policy_principal
from executor.domain.operation import OperationStatus
from executor.domain.ticket import ChangeKind, TicketStatus
from executor.domain.transition import Reason
from executor.engine.card_record import (
    EffectRecord,
    OperationRecord,
    ReopeningRecord,
    RunRecord,
    UndoneRecord,
)
from tests.support.progress_records import progress_states
from tests.support.raising_records import raising_states
from tests.support.records import (
    NOW,
    U_APP,
    approval_record,
    attempt_record,
    dated,
    effect_records,
    operation_record,
    states,
    ticket_change,
    ticket_record,
    vote_record,
)

POLICY = policy_principal("0123456789abcdef")
_CONSUMED = approval_record(
    status=ApprovalStatus.CONSUMED, votes=(vote_record(U_APP),), use_by=NOW + timedelta(hours=1)
)
_REFUSED = attempt_record(
    AttemptStatus.NOT_APPLIED,
    {"provider": "smtp", "phase": "rcpt_to", "code": 550, "reply": "5.1.1 No such user"},
)


def closing_record(status: OperationStatus, **changes: Any) -> OperationRecord:
    """op_12, whose email was refused."""
    return operation_record(
        status=status,
        reason=Reason.REFUSED_BY_PROVIDER,
        approval=_CONSUMED,
        effects=effect_records(EffectStatus.APPLIED, EffectStatus.NOT_APPLIED, [_REFUSED]),
        ended_at=NOW,
        **changes,
    )


def reopening_record(
    status: OperationStatus = OperationStatus.AWAITING, **changes: Any
) -> OperationRecord:
    """op_13, at the built-in desk, waiting for approval."""
    closed = ticket_change(8, kind=ChangeKind.CLOSED, author=U_APP, body="Closed by Signoff.")
    record = operation_record(
        id=OperationId(UUID("0197f000-0000-7000-8000-000000000005")),
        number=13,
        run_number=8,
        goal="decide whether ticket 4101 is opened again, for the email of op_12 was not sent",
        requester=POLICY,
        status=status,
        why="The policy asks one person what becomes of a ticket whose email was not sent.",
        ticket=ticket_record(
            version=8,
            current_version=8,
            current_status=TicketStatus.CLOSED,
            recent_changes=(ticket_change(7), closed),
        ),
        effects=(reopen_effect(EffectStatus.PLANNED),),
        undoes=UndoneRecord(
            12,
            ("pat@cust.example",),
            "Ticket 4101 closed",
            Reason.REFUSED_BY_PROVIDER,
            REOPENING_NOTE,
        ),
    )
    return replace(record, email=None, **changes)


def reopen_effect(status: EffectStatus) -> EffectRecord:
    """Its one effect."""
    return EffectRecord(
        EffectKind.TICKET_REOPEN,
        status,
        "builtin",
        Capability.TRANSACTIONAL,
        "Signoff's own desk: opened again together with its record, or not at all.",
        (),
    )


def reopening_states() -> dict[str, OperationRecord]:
    """One record for each state of both operations, by a name that says which."""
    denied = approval_record(
        status=ApprovalStatus.DENIED, votes=(vote_record(U_APP, Vote.REJECT, "Pat knows."),)
    )
    consented = replace(_CONSUMED, votes=(vote_record(POLICY),))
    moved = ticket_change(9, kind=ChangeKind.NOTE, author="Kim", body="Leave it closed.")
    told = {"operation": 13, "ended": "rejected", "why": None, "reason": "not_reopened"}
    s = OperationStatus
    return {
        "awaiting_reopening": reopening_record(),
        "awaiting_reopening_but_ticket_moved": reopening_record(
            ticket=replace(reopening_record().target, current_version=9, changes_since=(moved,))
        ),
        "reopen_approved": reopening_record(
            s.APPROVED, approval=replace(_CONSUMED, status=ApprovalStatus.GRANTED)
        ),
        "reopen_rejected": reopening_record(s.REJECTED, approval=denied, ended_at=NOW),
        "reopen_expired": reopening_record(s.EXPIRED, reason=Reason.EXPIRED, ended_at=NOW),
        "reopen_nothing_to_undo": reopening_record(
            s.STALE,
            reason=Reason.NOTHING_TO_UNDO,
            detail={"operation": 12, "status": "succeeded"},
            ended_at=NOW,
        ),
        "reopen_stale": reopening_record(
            s.STALE,
            reason=Reason.VERSION_CHANGED,
            approval=_CONSUMED,
            ended_at=NOW,
            ticket=replace(reopening_record().target, current_version=9, changes_since=(moved,)),
        ),
        "reopen_succeeded": reopening_record(
            s.SUCCEEDED,
            approval=_CONSUMED,
            effects=(reopen_effect(EffectStatus.APPLIED),),
            ended_at=NOW,
        ),
        "reopen_by_policy": reopening_record(
            s.SUCCEEDED,
            approval=consented,
            why="The policy itself consents to opening a ticket again whose email was not sent.",
            effects=(reopen_effect(EffectStatus.APPLIED),),
            ended_at=NOW,
        ),
        "partial_and_asked": closing_record(
            s.PARTIAL, reopening=ReopeningRecord(13, s.AWAITING, NOW + timedelta(days=1))
        ),
        "partial_and_approved": closing_record(
            s.PARTIAL, reopening=ReopeningRecord(13, s.APPROVED, None)
        ),
        "partial_and_unknown": closing_record(
            s.PARTIAL, reopening=ReopeningRecord(13, s.UNKNOWN, None)
        ),
        "compensated_by_another": closing_record(
            s.COMPENSATED, reopening=ReopeningRecord(13, s.SUCCEEDED, None)
        ),
        "compensated_and_sent_after_all": replace(
            closing_record(s.COMPENSATED, reopening=ReopeningRecord(13, s.SUCCEEDED, None)),
            effects=effect_records(
                EffectStatus.APPLIED,
                EffectStatus.APPLIED,
                [replace(_REFUSED, status=AttemptStatus.APPLIED)],
            ),
        ),
        "left_by_a_person": closing_record(
            s.LEFT,
            detail={LEFT_BECAUSE: told},
            reopening=ReopeningRecord(13, s.REJECTED, None),
        ),
        "left_by_policy": closing_record(
            s.LEFT, detail={LEFT_BECAUSE: {"reason": "left_by_policy"}}
        ),
        "left_as_changed": closing_record(
            s.LEFT,
            detail={LEFT_BECAUSE: {"reason": "changed_since_close", "closed_at": 8, "version": 9}},
        ),
    }


def all_states() -> dict[str, OperationRecord | RunRecord]:
    """One record for each state that a card can show, by a name that says which."""
    reopening = {name: dated(record) for name, record in reopening_states().items()}
    return {**states(), **reopening, **progress_states(), **raising_states()}
