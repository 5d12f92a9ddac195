"""Reads what a run has done so far, as its own message tells it: our words for it, and numbers.

Nothing that a model wrote or read is in it, but for the number of a ticket that it named.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from executor.domain.ids import PrincipalId, RunId, TenantId, parse_operation_number
from executor.domain.operation import OperationStatus
from executor.domain.transition import Reason
from executor.store import progress
from executor.store.card_records import AnyRow
from executor.store.connection import Connection


@dataclass(frozen=True, slots=True)
class ToolStep:
    """One tool call; ``ticket`` is what the model wrote for its number, untrusted.

    Without an answer it is under way, or waits for its ``operation``: a number and where that
    stands. ``refused`` is why nothing came of it, ``found`` how many tickets a search has found,
    and whether there are more.
    """

    tool: str
    at: datetime
    ticket: str = ""
    is_answered: bool = True
    refused: Reason | None = None
    found: tuple[int, bool] | None = None
    operation: tuple[int, OperationStatus] | None = None


@dataclass(frozen=True, slots=True)
class QuestionStep:
    """A person has asked about an operation; ``is_answered`` is ``None`` until that is closed."""

    operation: int
    by: PrincipalId
    at: datetime
    is_answered: bool | None = None


@dataclass(frozen=True, slots=True)
class FailedCallStep:
    """A call of the language model came to nothing, or nobody knows to what."""

    at: datetime


Step = ToolStep | QuestionStep | FailedCallStep


@dataclass(frozen=True, slots=True)
class Money:
    """What a run has spent and may spend, in micro-dollars."""

    spent_microusd: int
    limit_microusd: int


@dataclass(frozen=True, slots=True)
class Progress:
    """What a run has done so far, oldest first; ``money`` is ``None`` where it has none."""

    steps: tuple[Step, ...] = ()
    money: Money | None = None


NO_PROGRESS = Progress()
"""That of a run that nobody drives."""


async def read_progress(conn: Connection, tenant: TenantId, id_: RunId) -> Progress:
    """Read everything that the message about a run may tell of its way."""
    key = (tenant, id_)
    steps: list[Step] = [_called(row) for row in await progress.calls_of(conn, key)]
    steps += [_asked(row) for row in await progress.questions_to(conn, key)]
    money = await progress.money_of(conn, key)
    if money is None:
        return Progress(tuple(sorted(steps, key=_at)))
    steps += [FailedCallStep(at) for at in money.failed_at]
    return Progress(
        tuple(sorted(steps, key=_at)), Money(money.spent_microusd, money.limit_microusd)
    )


def _at(step: Step) -> datetime:
    return step.at


def _called(row: AnyRow) -> ToolStep:
    return ToolStep(
        row.tool or "",
        row.recorded_at,
        row.ticket or "",
        row.is_answered,
        _reason(row.error),
        None if row.found is None else (row.found, bool(row.has_more)),
        _operation(row),
    )


def _asked(row: AnyRow) -> QuestionStep:
    closed = bool(row.is_answered) if row.is_closed else None
    return QuestionStep(row.number, PrincipalId(row.asked_by), row.asked_at, closed)


def _reason(error: str | None) -> Reason | None:
    try:
        return None if error is None else Reason(error)
    except ValueError:
        return Reason.ARGUMENTS_INVALID


def _operation(row: AnyRow) -> tuple[int, OperationStatus] | None:
    """Return the operation that a call came to, or that an earlier one had come to already."""
    if row.number is not None:
        return row.number, OperationStatus(row.status)
    number = parse_operation_number(row.answered_by or "")
    try:
        return None if number is None else (number, OperationStatus(row.answer))
    except ValueError:
        return None
