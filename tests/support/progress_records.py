"""Runs on their way and at their ends, with a step of every kind: what their messages tell."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from executor.domain.effect import EffectStatus
from executor.domain.operation import OperationStatus
from executor.domain.policy import ProgressStyle
from executor.domain.run import RunStatus
from executor.domain.transition import Reason
from executor.engine import tools
from executor.engine.card_record import RunRecord
from executor.engine.progress_record import (
    FailedCallStep,
    Money,
    Progress,
    QuestionStep,
    Step,
    ToolStep,
)
from tests.support.records import NOW, U_APP, accounted, run_record


def at(minutes: int) -> Any:
    """So many minutes after the run began."""
    return NOW + timedelta(minutes=minutes)


def searched(minutes: int, found: int = 3, *, more: bool = False) -> ToolStep:
    """A search that has found something."""
    return ToolStep(tools.SEARCH_TICKETS, at(minutes), found=(found, more))


def read(minutes: int, ticket: str = "4101", **changes: Any) -> ToolStep:
    """A ticket that was read."""
    return replace(ToolStep(tools.READ_TICKET, at(minutes), ticket), **changes)


def proposed(
    minutes: int, status: OperationStatus, number: int = 12, ticket: str = "4101"
) -> ToolStep:
    """A proposal, whose operation stands so."""
    answered = status is not OperationStatus.AWAITING
    return ToolStep(
        tools.PROPOSE_CLOSING, at(minutes), ticket, answered, operation=(number, status)
    )


def refused(minutes: int, reason: Reason, tool: str = tools.PROPOSE_CLOSING) -> ToolStep:
    """A call that came to nothing."""
    return ToolStep(tool, at(minutes), "4101", refused=reason)


def way(*steps: Step, spent: int = 123_456) -> Progress:
    """A way of these steps; two dollars may be spent on it."""
    return Progress(steps, Money(spent, 2_000_000))


def progress_states() -> dict[str, RunRecord]:
    """One run for each thing that its message can say, by a name that says which."""
    s, e = OperationStatus, EffectStatus
    begun = run_record(
        status=RunStatus.RUNNING,
        reason=None,
        summary="",
        operations=(),
        accounted=(),
        ended_at=None,
    )
    waiting = replace(begun, status=RunStatus.WAITING, operations=((12, s.AWAITING),))
    way_there = (searched(1), read(2), proposed(3, s.AWAITING))
    asked = QuestionStep(12, U_APP, at(4), is_answered=True)
    eventful = way(
        searched(1, 10, more=True),
        searched(1, 0),
        read(2, "9999", refused=Reason.TICKET_UNKNOWN),
        refused(3, Reason.TOOL_UNKNOWN, "drop_tables"),
        refused(3, Reason.VERSION_NOT_READ),
        FailedCallStep(at(4)),
        read(5),
        proposed(6, s.REJECTED, 12),
        QuestionStep(13, U_APP, at(7), is_answered=False),
        proposed(8, s.SUCCEEDED, 13),
    )
    ended = run_record(
        progress=eventful,
        operations=((12, s.REJECTED), (13, s.SUCCEEDED)),
        accounted=(accounted(12, s.REJECTED), accounted(13, s.SUCCEEDED)),
        reason=Reason.COMPLETED,
    )
    many = way(*(read(n, str(4100 + n)) for n in range(1, 20)))
    return {
        "run_begun": begun,
        "run_reads": replace(begun, progress=way(searched(1), read(2, is_answered=False), spent=9)),
        "run_asks_model_again": replace(begun, progress=way(FailedCallStep(at(1)), spent=0)),
        "run_waits": replace(waiting, progress=way(*way_there)),
        "run_waits_as_plan": replace(
            waiting, progress=way(*way_there, asked), style=ProgressStyle.PLAN
        ),
        "run_answers": replace(waiting, progress=way(*way_there, replace(asked, is_answered=None))),
        "run_of_many_steps": replace(begun, progress=many),
        "run_of_many_steps_as_plan": replace(begun, progress=many, style=ProgressStyle.PLAN),
        "run_with_everything": ended,
        "run_with_everything_as_plan": replace(ended, style=ProgressStyle.PLAN),
        "run_stopped_by_silence": replace(
            waiting,
            status=RunStatus.FAILED,
            reason=Reason.NOBODY_DECIDED,
            progress=way(searched(1), read(2), proposed(3, s.EXPIRED)),
            operations=((12, s.EXPIRED),),
            accounted=(accounted(12, s.EXPIRED),),
            ended_at=at(60),
        ),
        "run_cancelled_on_its_way": replace(
            begun,
            status=RunStatus.CANCELLED,
            reason=Reason.CANCELLED,
            progress=way(read(1, is_answered=False)),
            accounted=(),
            ended_at=at(2),
        ),
        "run_being_cancelled": replace(
            begun,
            status=RunStatus.CANCELLING,
            reason=Reason.CANCELLED,
            progress=way(read(1), proposed(2, s.EXECUTING)),
            operations=((12, s.EXECUTING), (13, s.WITHDRAWN)),
            accounted=(
                accounted(12, s.EXECUTING, e.APPLIED, e.DISPATCHED),
                accounted(13, s.WITHDRAWN, ticket="4102"),
            ),
        ),
        "run_parked_too_long": replace(
            waiting,
            status=RunStatus.FAILED,
            reason=Reason.PARKED_TOO_LONG,
            progress=way(proposed(3, s.WITHDRAWN)),
            operations=((12, s.WITHDRAWN),),
            accounted=(accounted(12, s.WITHDRAWN),),
            ended_at=at(60),
        ),
        "run_out_of_tokens": replace(
            begun,
            status=RunStatus.FAILED,
            reason=Reason.TOKEN_LIMIT,
            progress=way(
                read(1),
                refused(2, Reason.VERSION_NOT_READ),
                replace(proposed(4, s.AWAITING, ticket="4103"), is_answered=False, operation=None),
                replace(refused(5, Reason.CONFLICTS_WITH), ticket="<!channel> 4104"),
            ),
            accounted=(),
            ended_at=at(60),
        ),
        "run_with_every_end": ended_with_everything(),
    }


def ended_with_everything() -> RunRecord:
    """A run that was stopped, with one operation for each thing that its last account can say."""
    s, e = OperationStatus, EffectStatus
    many = tuple(accounted(number, s.REJECTED) for number in range(20, 30))
    return run_record(
        status=RunStatus.CANCELLED,
        reason=Reason.CANCELLED,
        operations=(),
        accounted=(
            accounted(12, s.SUCCEEDED),
            accounted(13, s.PARTIAL, e.APPLIED, e.NOT_APPLIED),
            accounted(14, s.COMPENSATED, e.APPLIED, e.NOT_APPLIED),
            accounted(15, s.LEFT, e.APPLIED, e.NOT_APPLIED),
            accounted(16, s.UNKNOWN, e.APPLIED, e.UNKNOWN),
            accounted(17, s.SUPERSEDED),
            accounted(18, s.AWAITING, of_run=6),
            *many,
            accounted(30, s.STALE),
            accounted(31, s.FAILED, e.NOT_APPLIED, e.SKIPPED),
        ),
    )
