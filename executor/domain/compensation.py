"""What becomes of a ticket that we closed and whose closure email was proved not sent.

Reopening is an operation of its own. It is proposed only while the ticket stands exactly where our
own close left it, so that it never undoes what somebody else changed since; whatever it comes to
ends the closing as *compensated* or *left*. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

from executor.domain import operation
from executor.domain.operation import IN_DOUBT, UNOPENED, OperationStatus
from executor.domain.payloads import JsonObject
from executor.domain.policy import WhenMailIsNotSent
from executor.domain.transition import NoChange, Reason, Refused

LEFT_BECAUSE = "left"
"""Where a closing's detail keeps why nothing undoes it: a reason's code beside its own detail."""


@dataclass(frozen=True, slots=True)
class Propose:
    """Reopening is proposed; ``by_policy``: the policy consents to it, and no person is asked."""

    by_policy: bool


def decide(
    status: OperationStatus, when: WhenMailIsNotSent, moved: Refused | None
) -> Propose | operation.LeftSo | NoChange:
    """Decide about a closing that may be partial; ``moved`` says why its ticket is not ours."""
    if status is not OperationStatus.PARTIAL:
        return NoChange()
    if when is WhenMailIsNotSent.LEAVE:
        return _left(Refused(Reason.LEFT_BY_POLICY))
    if moved is not None:
        return _left(moved)
    return Propose(by_policy=when is WhenMailIsNotSent.REOPEN)


@dataclass(frozen=True, slots=True)
class Reopening:
    """The operation that would undo a closing, as far as its end is concerned."""

    id: str
    number: int
    status: OperationStatus
    reason: Reason | None


def conclude(
    closing: OperationStatus, reopening: Reopening
) -> operation.Undone | operation.LeftSo | NoChange:
    """Decide what a reopening that has ended, or not, means for its closing."""
    if closing is not OperationStatus.PARTIAL or reopening.status in UNOPENED | IN_DOUBT:
        return NoChange()
    told: JsonObject = {"operation": reopening.number}
    if reopening.status is OperationStatus.SUCCEEDED:
        return operation.Undone(reopening.id, told)
    why = None if reopening.reason is None else reopening.reason.value
    ended: JsonObject = {**told, "ended": reopening.status.value, "why": why}
    return _left(Refused(Reason.NOT_REOPENED, ended))


def is_overtaken(closing: OperationStatus, reopening: OperationStatus) -> bool:
    """Say whether a reopening that is not opened has nothing left to undo."""
    return closing is not OperationStatus.PARTIAL and reopening in UNOPENED


def _left(refused: Refused) -> operation.LeftSo:
    why: JsonObject = {"reason": refused.reason.value, **refused.detail}
    return operation.LeftSo(refused.reason, {LEFT_BECAUSE: why})
