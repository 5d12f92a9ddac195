"""What a run has done so far, a line for each step, in our own words and never the agent's. Pure.

Of what a model wrote there is the number of a ticket at most, and only where it looks like one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from bot.card_parts import Paragraph, Piece, Words, paragraph, person
from bot.state_text import operation_state
from executor.domain.ids import operation_label
from executor.domain.operation import OperationStatus
from executor.domain.run import ENDED, RunStatus
from executor.domain.transition import Reason
from executor.engine import tools
from executor.engine.card_record import RunRecord
from executor.engine.progress_record import FailedCallStep, QuestionStep, Step, ToolStep

MOST_STEPS = 12
"""Steps that are shown; the newest ones."""

_TICKET = re.compile(r"[A-Za-z0-9#_-]{1,40}")
_OUTSIDE = re.compile(r"(?P<server>[a-z0-9_]{1,30}?)__(?P<tool>[A-Za-z0-9_-]{1,61})")
_NO_TOOL = Reason.TOOL_UNKNOWN
WHY_REFUSED: Mapping[Reason, str] = {
    Reason.ARGUMENTS_INVALID: "the request was incomplete or wrong",
    Reason.CONFLICTS_WITH: "another proposal is under way",
    Reason.CONTENT_INVALID: "the email cannot be sent as it is",
    Reason.DESK_CANNOT_SEARCH: "this ticket desk cannot be searched",
    Reason.DESK_NOTIFIES: "the ticket desk would mail the customer as well",
    Reason.DESK_UNAVAILABLE: "the ticket desk did not answer",
    Reason.SERVER_AWAY: "the server did not answer",
    Reason.TOOL_FAILED: "the tool says that it failed",
    Reason.NOT_PERMITTED: "whoever asked for this run may not ask for it",
    Reason.TICKET_CLOSED: "the ticket is closed already",
    Reason.TICKET_UNKNOWN: "there is no such ticket",
    Reason.VERSION_CHANGED: "the ticket had changed",
    Reason.VERSION_NOT_READ: "the ticket had not been read before",
}


class Mark(StrEnum):
    """How a step stands, as Slack's blocks for plans call it."""

    DONE = "complete"
    FAILED = "error"
    BUSY = "in_progress"
    WAITS = "pending"


_SIGNS = {Mark.DONE: "✓", Mark.FAILED: "✗", Mark.BUSY: "…", Mark.WAITS: "…"}


@dataclass(frozen=True, slots=True)
class Line:
    """One step; ``more`` is what is said beside it."""

    id: str
    said: str
    mark: Mark
    more: tuple[Piece, ...] = ()

    @property
    def plain(self) -> Paragraph:
        """The step as one item of a list."""
        beside = (Words(" ("), *self.more, Words(")")) if self.more else ()
        return paragraph(self.said, *beside, f" {_SIGNS[self.mark]}")


@dataclass(frozen=True, slots=True)
class Lines:
    """The newest steps, under a title that counts the others, with the operations told of there."""

    title: str
    shown: tuple[Line, ...]
    operations: frozenset[int]


def is_ticket(written: str) -> bool:
    """Tell whether what a model wrote for the number of a ticket looks like one."""
    return _TICKET.fullmatch(written) is not None


def progress_lines(record: RunRecord) -> Lines:
    """Tell the newest steps of a run, and what it does now."""
    steps = record.progress.steps
    left_out = max(0, len(steps) - MOST_STEPS)
    shown = [
        _line(record, number, step) for number, step in enumerate(steps[left_out:], left_out + 1)
    ]
    if record.status is RunStatus.RUNNING and Mark.BUSY not in {line.mark for line in shown}:
        again = bool(steps) and isinstance(steps[-1], FailedCallStep)
        said = "Asks the language model again" if again else "Thinks about what to do next"
        shown.append(Line(f"step_{len(steps) + 1}", said, Mark.BUSY))
    earlier = f" ({left_out} earlier {'step' if left_out == 1 else 'steps'})" if left_out else ""
    return Lines(f"Steps{earlier}", tuple(shown), frozenset(_operations(steps[left_out:])))


def _operations(steps: tuple[Step, ...]) -> Iterator[int]:
    for step in steps:
        if isinstance(step, ToolStep) and step.operation is not None:
            yield step.operation[0]


def _line(record: RunRecord, number: int, step: Step) -> Line:
    id_ = f"step_{number}"
    match step:
        case ToolStep():
            return _called(record, id_, step)
        case QuestionStep(operation=operation, by=by, is_answered=answered):
            waits = answered is None and record.status not in ENDED
            state = "the agent is asked" if waits else "answered" if answered else "not answered"
            mark = Mark.BUSY if waits else Mark.DONE if answered else Mark.FAILED
            asked = (Words("asked by "), person(by, record.tenant_id))
            return Line(id_, f"Question about {operation_label(operation)}: {state}", mark, asked)
        case FailedCallStep():
            return Line(id_, "A call of the language model failed", Mark.FAILED)
        case _:
            assert_never(step)


@dataclass(frozen=True, slots=True)
class _Verb:
    """How one tool is told: while it is under way, afterwards, and where it never came to it."""

    now: str
    done: str
    never: str


def _verb(step: ToolStep) -> _Verb:
    ticket = f"ticket {step.ticket}" if is_ticket(step.ticket) else "a ticket"
    match step.tool:
        case tools.SEARCH_TICKETS:
            return _Verb("Searches the tickets", "Searched the tickets", "search the tickets")
        case tools.READ_TICKET:
            return _Verb(f"Reads {ticket}", f"Read {ticket}", f"read {ticket}")
        case tools.PROPOSE_CLOSING:
            to_close = f"to close {ticket}"
            return _Verb(f"Proposes {to_close}", f"Proposed {to_close}", f"propose {to_close}")
        case name if (parts := _OUTSIDE.fullmatch(name)) and step.refused is not _NO_TOOL:
            # Only an answer tells that there is such a tool; before it, the name is a model's word.
            known = step.is_answered or step.operation is not None
            called = f"{parts['server']}.{parts['tool']}" if known else "a tool of a server"
            done = f"Proposed to call {called}" if step.operation else f"Called {called}"
            return _Verb(f"Calls {called}", done, f"call {called}")
        case _:
            unknown = "for a tool that does not exist"
            return _Verb(f"Asks {unknown}", f"Asked {unknown}", f"ask {unknown}")


def _called(record: RunRecord, id_: str, step: ToolStep) -> Line:
    verb = _verb(step)
    if step.operation is not None:
        number, status = step.operation
        said = f"{verb.done}: {operation_label(number)}, {operation_state(status)}"
        return Line(id_, said, _mark(status))
    if not step.is_answered:
        if record.status in ENDED:
            return Line(id_, f"Did not come to {verb.never}", Mark.FAILED)
        return Line(id_, verb.now, Mark.BUSY)
    if step.refused is Reason.TOOL_UNKNOWN:
        return Line(id_, verb.done, Mark.FAILED)
    if step.refused is not None:
        why = WHY_REFUSED.get(step.refused)
        more = () if why is None else (Words(why),)
        tried = (
            f"{verb.done}: refused"
            if step.tool == tools.PROPOSE_CLOSING
            else f"Tried to {verb.never}"
        )
        return Line(id_, tried, Mark.FAILED, more)
    return Line(id_, f"{verb.done}{_found(step)}", Mark.DONE)


def _found(step: ToolStep) -> str:
    if step.found is None:
        return ""
    count, more = step.found
    return f": {f'more than {count}' if more else count or 'none'} found"


def _mark(status: OperationStatus) -> Mark:
    match status:
        case OperationStatus.AWAITING:
            return Mark.WAITS
        case OperationStatus.APPROVED | OperationStatus.EXECUTING:
            return Mark.BUSY
        case OperationStatus.SUCCEEDED | OperationStatus.SUPERSEDED:
            return Mark.DONE
        case (
            OperationStatus.FAILED
            | OperationStatus.PARTIAL
            | OperationStatus.UNKNOWN
            | OperationStatus.REJECTED
            | OperationStatus.EXPIRED
            | OperationStatus.WITHDRAWN
            | OperationStatus.STALE
            | OperationStatus.COMPENSATED
            | OperationStatus.LEFT
        ):
            return Mark.FAILED
        case _:
            assert_never(status)
