"""What a run does next follows from its record, and every way on has its end."""

from __future__ import annotations

import pytest

from executor.domain.payloads import JsonObject
from executor.domain.policy import RunSection
from executor.domain.replay import (
    AnswerCalls,
    AskModel,
    Finish,
    GiveUp,
    RecordedCall,
    RecordedTurn,
    next_action,
)
from executor.domain.transition import Reason

LIMITS = RunSection(max_steps=100, max_rejections_in_a_row=2, max_tool_errors_in_a_row=2)
REJECTED: JsonObject = {"operation": "op_1", "status": "rejected"}
SUCCEEDED: JsonObject = {"operation": "op_1", "status": "succeeded"}
READ: JsonObject = {"id": "4101"}
ERROR: JsonObject = {"error": "tool_unknown"}


def _turns(*results: list[JsonObject | None], words: list[str] | None = None) -> list[RecordedTurn]:
    """One turn for each list of results, one call for each result, each with other arguments."""
    turns = []
    for step, answers in enumerate(results, start=1):
        said = words[step - 1] if words else str(step)
        recorded = tuple(
            RecordedCall(step, n, "call_0", "propose_closing", {"message": said, "n": n}, answer)
            for n, answer in enumerate(answers)
        )
        turns.append(RecordedTurn(step, "", recorded))
    return turns


def test_a_new_run_asks_the_model() -> None:
    assert next_action([], LIMITS) == AskModel()


def test_what_is_unanswered_is_answered_first_and_alone() -> None:
    turns = _turns([READ, None, None])
    assert next_action(turns, LIMITS) == AnswerCalls(turns[0].calls[1:])


def test_limits_wait_until_everything_is_answered() -> None:
    turns = _turns([ERROR], [ERROR], [None])
    assert next_action(turns, LIMITS) == AnswerCalls(turns[2].calls)


def test_a_last_word_finishes_and_silence_gives_up() -> None:
    assert next_action([RecordedTurn(1, "Done.", ())], LIMITS) == Finish("Done.")
    assert next_action([RecordedTurn(1, " \n", ())], LIMITS) == GiveUp(Reason.MODEL_SILENT)


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        (_turns([REJECTED], [REJECTED]), GiveUp(Reason.REJECTION_LIMIT)),
        (_turns([REJECTED], [READ], [REJECTED]), GiveUp(Reason.REJECTION_LIMIT)),
        (_turns([REJECTED], [SUCCEEDED], [REJECTED]), AskModel()),
        (_turns([ERROR], [ERROR]), GiveUp(Reason.TOOL_ERROR_LIMIT)),
        (_turns([ERROR], [READ], [ERROR]), AskModel()),
        (_turns([ERROR, READ], [ERROR]), AskModel()),
        (_turns([READ], [REJECTED]), AskModel()),
    ],
)
def test_bad_results_in_a_row_are_limited(turns: list[RecordedTurn], expected: object) -> None:
    assert next_action(turns, LIMITS) == expected


def test_the_same_words_rejected_twice_end_the_run_and_other_words_do_not() -> None:
    patient = RunSection(max_rejections_in_a_row=100)
    same = _turns([REJECTED], [REJECTED], words=["a", "a"])
    other = _turns([REJECTED], [REJECTED], words=["a", "b"])
    assert next_action(same, patient) == GiveUp(Reason.REPEATED_PROPOSAL)
    assert next_action(other, patient) == AskModel()


def test_the_number_of_steps_counts_replies_and_results() -> None:
    limits = RunSection(max_steps=4)
    assert next_action(_turns([READ], [READ]), limits) == GiveUp(Reason.STEP_LIMIT)
    assert next_action(_turns([READ]), limits) == AskModel()
