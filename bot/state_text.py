"""Where a run or an operation stands, in one phrase."""

from __future__ import annotations

from typing import assert_never

from executor.domain.operation import OperationStatus
from executor.domain.run import RunStatus


def run_state(status: RunStatus, at_work: int | None = None) -> str:
    """Say in one phrase where a run stands; ``at_work``: so many runs have all the places."""
    match status:
        case RunStatus.QUEUED if at_work is not None:
            runs, are = ("1 run", "is") if at_work == 1 else (f"{at_work} runs", "are")
            return f"waiting for a place: {runs} of this workspace {are} at work"
        case RunStatus.QUEUED:
            return "waiting for its turn"
        case RunStatus.RUNNING:
            return "working"
        case RunStatus.WAITING:
            return "waiting"
        case RunStatus.PAUSED:
            return "on hold"
        case RunStatus.CANCELLING:
            return "being cancelled"
        case RunStatus.SUCCEEDED:
            return "finished"
        case RunStatus.FAILED:
            return "ended without finishing"
        case RunStatus.CANCELLED:
            return "cancelled"
        case _:
            assert_never(status)


def operation_state(status: OperationStatus) -> str:
    """Say in one phrase where an operation stands."""
    match status:
        case OperationStatus.AWAITING:
            return "waiting for a decision"
        case OperationStatus.APPROVED:
            return "approved, not carried out yet"
        case OperationStatus.EXECUTING:
            return "being carried out"
        case OperationStatus.SUCCEEDED:
            return "done"
        case OperationStatus.FAILED:
            return "failed, nothing was done"
        case OperationStatus.PARTIAL:
            return "done in part"
        case OperationStatus.UNKNOWN:
            return "may have been done, not known yet"
        case OperationStatus.REJECTED:
            return "rejected"
        case OperationStatus.EXPIRED:
            return "expired"
        case OperationStatus.SUPERSEDED:
            return "replaced by a newer proposal"
        case OperationStatus.WITHDRAWN:
            return "withdrawn"
        case OperationStatus.STALE:
            return "out of date, nothing was done"
        case OperationStatus.COMPENSATED:
            return "done in part, then undone"
        case OperationStatus.LEFT:
            return "done in part, left as it is"
        case _:
            assert_never(status)
