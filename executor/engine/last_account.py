"""What a run has come to by its record alone: what was done, what was not, what nobody knows yet.

No model is asked for it. It is drawn from the record whenever that changes, so that it tells the
truth also of what turns out after the run has ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from executor.domain.effect import EffectKind, EffectStatus
from executor.domain.ids import RunId, TenantId
from executor.domain.operation import OperationStatus
from executor.domain.transition import Reason
from executor.engine.progress_record import Step, ToolStep
from executor.engine.tools import PROPOSE_CLOSING
from executor.store import progress
from executor.store.connection import Connection


class Standing(StrEnum):
    """What the end of a run says of one operation, in the order in which it is told."""

    DONE = "done"
    IN_PART = "in_part"
    NOT_KNOWN = "not_known"
    NOT_DONE = "not_done"
    ELSEWHERE = "elsewhere"


@dataclass(frozen=True, slots=True)
class AccountedOperation:
    """One operation that a run has asked for, as it stands; ``ticket`` is empty without one.

    ``of_run`` is the number of the run that it belongs to, where that is another one.
    """

    number: int
    status: OperationStatus
    ticket: str
    effects: tuple[tuple[EffectKind, EffectStatus], ...]
    of_run: int | None = None


@dataclass(frozen=True, slots=True)
class NeverProposed:
    """What the model wanted to propose and no operation has come of.

    ``ticket`` is what the model wrote for its number, untrusted. Without a ``reason`` the run ended
    before anybody had looked at it.
    """

    ticket: str
    reason: Reason | None


@dataclass(frozen=True, slots=True)
class LastAccount:
    """Everything that a run has asked for, by what has become of it."""

    operations: dict[Standing, tuple[AccountedOperation, ...]]
    never_proposed: tuple[NeverProposed, ...]


def last_account(operations: Sequence[AccountedOperation], steps: Sequence[Step]) -> LastAccount:
    """Sort what a run has asked for by what has become of it.

    What a newer proposal took the place of is not told: that one is. Nor is a refused proposal, if
    another one about the same ticket was taken up.
    """
    sorted_: dict[Standing, tuple[AccountedOperation, ...]] = {}
    for operation in operations:
        standing = standing_of(operation.status)
        if standing is not None:
            sorted_[standing] = (*sorted_.get(standing, ()), operation)
    return LastAccount(sorted_, tuple(_never_proposed(steps)))


def standing_of(status: OperationStatus) -> Standing | None:
    """Say under what the end of a run tells of an operation; ``None``: its successor is told."""
    match status:
        case OperationStatus.SUCCEEDED:
            return Standing.DONE
        case OperationStatus.PARTIAL | OperationStatus.COMPENSATED | OperationStatus.LEFT:
            return Standing.IN_PART
        case OperationStatus.EXECUTING | OperationStatus.UNKNOWN:
            return Standing.NOT_KNOWN
        case (
            OperationStatus.FAILED
            | OperationStatus.REJECTED
            | OperationStatus.EXPIRED
            | OperationStatus.WITHDRAWN
            | OperationStatus.STALE
        ):
            return Standing.NOT_DONE
        case OperationStatus.AWAITING | OperationStatus.APPROVED:
            # Its own were withdrawn when it ended: others have asked for this one as well.
            return Standing.ELSEWHERE
        case OperationStatus.SUPERSEDED:
            return None
        case _:
            assert_never(status)


def _never_proposed(steps: Sequence[Step]) -> Iterator[NeverProposed]:
    proposals = [s for s in steps if isinstance(s, ToolStep) and s.tool == PROPOSE_CLOSING]
    taken_up = {step.ticket for step in proposals if step.operation is not None}
    newest = {step.ticket: step for step in proposals if step.ticket not in taken_up}
    for ticket, step in newest.items():
        yield NeverProposed(ticket, step.refused)


async def read_accounted(
    conn: Connection, tenant: TenantId, run_id: RunId
) -> tuple[AccountedOperation, ...]:
    """Read the operations that a run has asked for, whoever they belong to."""
    return tuple(
        AccountedOperation(
            row.number,
            OperationStatus(row.status),
            row.ticket_id or "",
            tuple((EffectKind(kind), EffectStatus(status)) for kind, status in row.effects),
            None if row.run_id == run_id else row.run_number,
        )
        for row in await progress.operations_asked_for(conn, (tenant, run_id))
    )
