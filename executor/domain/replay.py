"""What a run does next follows from its recorded steps, and from nothing else.

A crash and a resume read the same record, so they do the same: no recorded step is repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from executor.domain.payloads import JsonObject, digest
from executor.domain.policy import RunSection
from executor.domain.transition import Reason


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One tool call of a recorded reply, named by step and ordinal: the model's ids may repeat."""

    step: int
    ordinal: int
    id: str
    name: str
    arguments: JsonObject
    result: JsonObject | None


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """One recorded model reply with its calls, answered or not."""

    step: int
    text: str
    calls: tuple[RecordedCall, ...]

    def unanswered(self) -> tuple[RecordedCall, ...]:
        """List the calls that have no recorded result."""
        return tuple(call for call in self.calls if call.result is None)


@dataclass(frozen=True, slots=True)
class AskModel:
    """Everything is answered: the model's turn."""


@dataclass(frozen=True, slots=True)
class AnswerCalls:
    """These calls have no recorded result yet."""

    calls: tuple[RecordedCall, ...]


@dataclass(frozen=True, slots=True)
class Finish:
    """The model said its last word."""

    text: str


@dataclass(frozen=True, slots=True)
class GiveUp:
    """A bound was reached."""

    reason: Reason


NextAction = AskModel | AnswerCalls | Finish | GiveUp


def next_action(turns: Sequence[RecordedTurn], limits: RunSection) -> NextAction:
    """Decide what comes next. Limits count before the model is asked again, never in mid-answer."""
    if not turns:
        return AskModel()
    last = turns[-1]
    if last.unanswered():
        return AnswerCalls(last.unanswered())
    if not last.calls:
        return Finish(last.text) if last.text.strip() else GiveUp(Reason.MODEL_SILENT)
    steps = sum(1 + len(turn.calls) for turn in turns)
    if steps >= limits.max_steps:
        return GiveUp(Reason.STEP_LIMIT)
    answered = [call for turn in turns for call in turn.calls]
    if _in_a_row(answered, "rejected") >= limits.max_rejections_in_a_row:
        return GiveUp(Reason.REJECTION_LIMIT)
    if _errors_in_a_row(answered) >= limits.max_tool_errors_in_a_row:
        return GiveUp(Reason.TOOL_ERROR_LIMIT)
    if _repeats_a_rejection(last, turns[:-1]):
        return GiveUp(Reason.REPEATED_PROPOSAL)
    return AskModel()


def _in_a_row(calls: Sequence[RecordedCall], status: str) -> int:
    """Count proposals from the end that ended in ``status``; reads in between do not count."""
    count = 0
    for call in reversed(calls):
        result = call.result or {}
        if "operation" not in result:
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


def _repeats_a_rejection(last: RecordedTurn, earlier: Sequence[RecordedTurn]) -> bool:
    """Say whether the last turn proposed again, unchanged, what had been rejected before, and was
    rejected again."""
    rejected = {
        _fingerprint(call)
        for turn in earlier
        for call in turn.calls
        if (call.result or {}).get("status") == "rejected"
    }
    return any(
        (call.result or {}).get("status") == "rejected" and _fingerprint(call) in rejected
        for call in last.calls
    )


def _fingerprint(call: RecordedCall) -> bytes:
    return digest({"name": call.name, "arguments": call.arguments})
