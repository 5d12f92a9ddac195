"""What a run does next follows from its recorded steps, and from nothing else.

A crash and a resume read the same record, so they do the same: no recorded step is repeated. A
question about what waits for a decision is a step as well. It is answered before anything else is
done, and whatever becomes of it, what waits goes on waiting.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from executor.domain.operation import STOPS_RUN
from executor.domain.payloads import JsonObject
from executor.domain.policy_limits import RunSection
from executor.domain.transition import Reason

AGAIN = "again"
"""Stands in a result where people were not asked: they had said no to the very same before."""


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One tool call of a recorded reply, named by step and ordinal: the model's ids may repeat.

    ``arguments`` are a text where the model wrote no JSON object. ``answered_at`` is the step of
    its result. While it ``is_pending`` the operation that it proposed has not ended.
    """

    step: int
    ordinal: int
    id: str
    name: str
    arguments: JsonObject | str
    result: JsonObject | None
    answered_at: int | None = None
    is_pending: bool = False

    @property
    def has_proposed(self) -> bool:
        """Whether an operation has come of it."""
        return self.is_pending or "operation" in (self.result or {})


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """One recorded model reply with its calls, answered or not.

    ``tokens`` are those that its request and it took together.
    """

    step: int
    text: str
    calls: tuple[RecordedCall, ...]
    tokens: int = 0

    def unanswered(self) -> tuple[RecordedCall, ...]:
        """List the calls that have no recorded result."""
        return tuple(call for call in self.calls if call.result is None)


@dataclass(frozen=True, slots=True)
class RecordedQuestion:
    """What a person asked about an operation, whose number is ``operation``.

    ``step`` is where the run took it up. It ``waits`` as long as its operation awaits a decision,
    and ``is_open`` until it is closed, with an answer or without one.
    """

    id: UUID
    operation: int
    by: str
    text: str
    step: int | None = None
    is_open: bool = True
    waits: bool = True


@dataclass(frozen=True, slots=True)
class AskModel:
    """Everything is answered: the model's turn, perhaps to answer a question."""

    answering: tuple[RecordedQuestion, ...] = ()


@dataclass(frozen=True, slots=True)
class AnswerCalls:
    """These calls have no recorded result yet, and none of them waits for its operation."""

    calls: tuple[RecordedCall, ...]


@dataclass(frozen=True, slots=True)
class TakeUp:
    """These questions become steps, for the model to answer."""

    questions: tuple[RecordedQuestion, ...]


@dataclass(frozen=True, slots=True)
class CloseQuestions:
    """These questions are answered or, where ``reason`` says why, are not."""

    questions: tuple[RecordedQuestion, ...]
    answer: str | None
    reason: Reason | None = None


@dataclass(frozen=True, slots=True)
class Wait:
    """Operations have to end first."""


@dataclass(frozen=True, slots=True)
class Finish:
    """The model said its last word."""

    text: str


@dataclass(frozen=True, slots=True)
class GiveUp:
    """A bound was reached."""

    reason: Reason


NextAction = AskModel | AnswerCalls | TakeUp | CloseQuestions | Wait | Finish | GiveUp


def next_action(
    turns: Sequence[RecordedTurn],
    limits: RunSection,
    questions: Sequence[RecordedQuestion] = (),
) -> NextAction:
    """Decide what comes next. Limits count before the model is asked again, never in mid-answer."""
    if not turns:
        return AskModel()
    calls = [call for turn in turns for call in turn.calls]
    if todo := tuple(c for c in calls if c.result is None and not c.is_pending):
        return AnswerCalls(todo)
    if any(STOPS_RUN in (call.result or {}) for call in calls):
        return GiveUp(Reason.NOBODY_DECIDED)
    asked = _about_questions(turns, limits, [q for q in questions if q.is_open])
    if asked is not None:
        return asked
    if any(call.is_pending for call in calls):
        return Wait()
    last = turns[-1]
    if not last.calls and not _something_came_after(last, calls, questions):
        return Finish(last.text) if last.text.strip() else GiveUp(Reason.MODEL_SILENT)
    reason = _limit(turns, limits)
    return AskModel() if reason is None else GiveUp(reason)


def _about_questions(
    turns: Sequence[RecordedTurn], limits: RunSection, open_: Sequence[RecordedQuestion]
) -> NextAction | None:
    """Decide about open questions; a limit ends them, and not what waits beside them."""
    for question in open_:
        answer = _answer_to(question, turns)
        if answer is not None:
            together = tuple(q for q in open_ if q.step is not None and q.step < answer.step)
            return _closing(together, answer)
    if overtaken := tuple(q for q in open_ if not q.waits):
        return CloseQuestions(overtaken, None, Reason.QUESTION_OVERTAKEN)
    if new := tuple(q for q in open_ if q.step is None):
        return TakeUp(new)
    if not open_:
        return None
    reason = _limit(turns, limits)
    return AskModel(tuple(open_)) if reason is None else CloseQuestions(tuple(open_), None, reason)


def _answer_to(question: RecordedQuestion, turns: Sequence[RecordedTurn]) -> RecordedTurn | None:
    """Find the reply that answers: the first that calls nothing, or that proposes something."""
    if question.step is None:
        return None
    later = (turn for turn in turns if turn.step > question.step)
    return next((t for t in later if not t.calls or any(c.has_proposed for c in t.calls)), None)


def _closing(questions: tuple[RecordedQuestion, ...], answer: RecordedTurn) -> CloseQuestions:
    if answer.text.strip():
        return CloseQuestions(questions, answer.text)
    silent = Reason.QUESTION_OVERTAKEN if answer.calls else Reason.MODEL_SILENT
    return CloseQuestions(questions, None, silent)


def _something_came_after(
    last: RecordedTurn, calls: Sequence[RecordedCall], questions: Sequence[RecordedQuestion]
) -> bool:
    """Say whether the model has not seen all when it said its last word."""
    steps = [call.answered_at for call in calls] + [question.step for question in questions]
    return any(step is not None and step > last.step for step in steps)


def _limit(turns: Sequence[RecordedTurn], limits: RunSection) -> Reason | None:
    """Say which bound forbids to ask the model once more."""
    if sum(1 + len(turn.calls) for turn in turns) >= limits.max_steps:
        return Reason.STEP_LIMIT
    if sum(turn.tokens for turn in turns) >= limits.max_tokens:
        return Reason.TOKEN_LIMIT
    answered = [call for turn in turns for call in turn.calls if not call.is_pending]
    if _identical(answered) >= limits.max_identical_proposals:
        return Reason.REPEATED_PROPOSAL
    if _in_a_row(answered, "rejected") >= limits.max_rejections_in_a_row:
        return Reason.REJECTION_LIMIT
    if _errors_in_a_row(answered) >= limits.max_tool_errors_in_a_row:
        return Reason.TOOL_ERROR_LIMIT
    return None


def _in_a_row(calls: Sequence[RecordedCall], status: str) -> int:
    """Count proposals from the end that ended in ``status``.

    Reads in between do not count, nor does what was answered without asking people.
    """
    count = 0
    for call in reversed(calls):
        result = call.result or {}
        if "operation" not in result or AGAIN in result:
            continue
        if result.get("status") != status:
            break
        count += 1
    return count


def _errors_in_a_row(calls: Sequence[RecordedCall]) -> int:
    count = 0
    for call in reversed(calls):
        if "error" not in (call.result or {}):
            break
        count += 1
    return count


def _identical(calls: Sequence[RecordedCall]) -> int:
    """Count how often the same was proposed in vain, the first time included.

    What people said no to is answered with the same operation, whatever its arguments are. What
    nobody decided, or somebody took back, is put before people again as another one.
    """
    times: Counter[str] = Counter()
    for call in calls:
        result = call.result or {}
        match result.get("status"):
            case "rejected":
                times[str(result["operation"])] += 1
            case "expired" | "withdrawn":
                times[json.dumps([call.name, call.arguments], sort_keys=True)] += 1
    return max(times.values(), default=0)
