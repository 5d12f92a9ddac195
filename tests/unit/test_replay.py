"""What a run does next follows from its record, and every way on has its end."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from executor.domain.payloads import JsonObject
from executor.domain.policy_limits import RunSection
from executor.domain.replay import (
    AGAIN,
    AnswerCalls,
    AskModel,
    CloseQuestions,
    Finish,
    GiveUp,
    NextAction,
    RecordedCall,
    RecordedQuestion,
    RecordedTurn,
    TakeUp,
    Wait,
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


def test_what_nobody_decided_ends_the_run_before_anything_else_where_it_is_to() -> None:
    stops: JsonObject = {"operation": "op_1", "status": "expired", "stops_run": True}
    pending = replace(_turns([None])[0].calls[0], ordinal=1, is_pending=True)
    [turn] = _turns([stops])
    waiting = [replace(turn, calls=(*turn.calls, pending))]
    asked = RecordedQuestion(UUID(int=1), 2, "p", "Why?")
    assert next_action(waiting, LIMITS, [asked]) == GiveUp(Reason.NOBODY_DECIDED)
    told = replace(turn.calls[0], result={"operation": "op_1", "status": "expired"})
    assert next_action([replace(turn, calls=(told,))], LIMITS) == AskModel()


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


def _again(operation: str) -> JsonObject:
    return {"operation": operation, "status": "rejected", AGAIN: True}


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        (_turns([REJECTED], [_again("op_1")]), AskModel()),
        (_turns([REJECTED], [_again("op_1")], [_again("op_1")]), GiveUp(Reason.REPEATED_PROPOSAL)),
        (_turns([REJECTED], [READ], [_again("op_1")], [_again("op_2")]), AskModel()),
        # Of another run's rejection, the first answer counts as much as the rejection itself.
        (_turns([_again("op_9")] * 3), GiveUp(Reason.REPEATED_PROPOSAL)),
    ],
)
def test_identical_proposals_are_limited(turns: list[RecordedTurn], expected: object) -> None:
    limits = RunSection(max_identical_proposals=3, max_rejections_in_a_row=100)
    assert next_action(turns, limits) == expected


def test_what_people_were_not_asked_about_is_no_rejection_in_a_row() -> None:
    limits = RunSection(max_identical_proposals=10, max_rejections_in_a_row=2)
    assert next_action(_turns([REJECTED], [_again("op_1")], [_again("op_1")]), limits) == AskModel()
    both = _turns([REJECTED], [_again("op_1")], [{**REJECTED, "operation": "op_2"}])
    assert next_action(both, limits) == GiveUp(Reason.REJECTION_LIMIT)


def test_the_number_of_steps_counts_replies_and_results() -> None:
    limits = RunSection(max_steps=4)
    assert next_action(_turns([READ], [READ]), limits) == GiveUp(Reason.STEP_LIMIT)
    assert next_action(_turns([READ]), limits) == AskModel()


def test_what_models_read_and_write_is_limited_before_the_next_call() -> None:
    limits = RunSection(max_tokens=100)
    turns = [replace(turn, tokens=50) for turn in _turns([READ], [READ])]
    assert next_action(turns[:1], limits) == AskModel()
    assert next_action(turns, limits) == GiveUp(Reason.TOKEN_LIMIT)
    assert next_action([*turns, RecordedTurn(3, "Done.", (), 50)], limits) == Finish("Done.")
    unread = replace(turns[1].calls[0], result=None)
    assert next_action([turns[0], replace(turns[1], calls=(unread,))], limits) == AnswerCalls(
        (unread,)
    ), "what was paid for is used"


@pytest.mark.parametrize("status", ["expired", "withdrawn"])
def test_the_same_words_that_come_to_nothing_again_and_again_are_limited(status: str) -> None:
    limits = RunSection(max_identical_proposals=3)
    words = {"ticket_id": "4101", "message": "All is well."}

    def proposed(*arguments: JsonObject, ended: str = status) -> list[RecordedTurn]:
        results: list[list[JsonObject | None]] = [
            [{"operation": f"op_{n}", "status": ended}] for n, _ in enumerate(arguments)
        ]
        turns = _turns(*results)
        return [
            replace(turn, calls=(replace(turn.calls[0], arguments=said),))
            for turn, said in zip(turns, arguments, strict=True)
        ]

    assert next_action(proposed(words, words), limits) == AskModel()
    assert next_action(proposed(words, words, words), limits) == GiveUp(Reason.REPEATED_PROPOSAL)
    assert next_action(proposed(words, words, {**words, "cc": []}), limits) == AskModel()
    stale = proposed(words, words, words, ended="stale")
    assert next_action(stale, limits) == AskModel(), "the ticket had moved: it is to ask again"


NEW = RecordedQuestion(UUID(int=1), 1, "U0REVIEWER", "Why?")
TAKEN = replace(NEW, step=2)
PROPOSAL = RecordedCall(1, 0, "c", "propose_closing", {}, None, is_pending=True)
WAITING = RecordedTurn(1, "", (PROPOSAL,))
ANSWER = RecordedTurn(3, "Because.", ())
READING = RecordedTurn(3, "", (RecordedCall(3, 0, "c", "read_ticket", {}, READ, 4),))
BETTER = RecordedTurn(3, "You are right.", (replace(PROPOSAL, step=3),))


@pytest.mark.parametrize(
    ("turns", "questions", "expected"),
    [
        ([WAITING], [], Wait()),
        ([WAITING], [NEW], TakeUp((NEW,))),
        ([WAITING], [TAKEN], AskModel((TAKEN,))),
        ([WAITING, READING], [TAKEN], AskModel((TAKEN,))),
        ([WAITING, ANSWER], [TAKEN], CloseQuestions((TAKEN,), "Because.")),
        ([WAITING, BETTER], [TAKEN], CloseQuestions((TAKEN,), "You are right.")),
        ([WAITING, ANSWER], [replace(TAKEN, is_open=False)], Wait()),
        # Asked while the answer was made: that answer is not its answer.
        ([WAITING, ANSWER], [NEW], TakeUp((NEW,))),
        ([WAITING, ANSWER], [replace(NEW, step=4)], AskModel((replace(NEW, step=4),))),
        (
            [WAITING, replace(ANSWER, text=" ")],
            [TAKEN],
            CloseQuestions((TAKEN,), None, Reason.MODEL_SILENT),
        ),
        (
            [WAITING, replace(BETTER, text="")],
            [TAKEN],
            CloseQuestions((TAKEN,), None, Reason.QUESTION_OVERTAKEN),
        ),
        (
            [WAITING],
            [replace(NEW, waits=False)],
            CloseQuestions((replace(NEW, waits=False),), None, Reason.QUESTION_OVERTAKEN),
        ),
    ],
)
def test_a_question_is_answered_before_the_run_waits_on(
    turns: list[RecordedTurn], questions: list[RecordedQuestion], expected: NextAction
) -> None:
    assert next_action(turns, LIMITS, questions) == expected


def test_what_is_called_is_answered_before_any_question() -> None:
    unread = replace(READING.calls[0], result=None, answered_at=None)
    turns = [WAITING, replace(READING, calls=(unread,))]
    assert next_action(turns, LIMITS, [TAKEN]) == AnswerCalls((unread,))


def test_a_limit_ends_a_question_and_not_the_run_that_waits() -> None:
    closed = CloseQuestions((TAKEN,), None, Reason.STEP_LIMIT)
    assert next_action([WAITING], RunSection(max_steps=2), [TAKEN]) == closed
    assert next_action([WAITING], RunSection(max_steps=2), []) == Wait()


def test_an_answer_is_the_last_word_only_where_nothing_came_after_it() -> None:
    ended = replace(PROPOSAL, result=SUCCEEDED, is_pending=False, answered_at=4)
    closed = replace(TAKEN, is_open=False)
    turns = [replace(WAITING, calls=(ended,)), ANSWER]
    assert next_action(turns, LIMITS, [closed]) == AskModel(), "it has not heard how it ended"
    last = RecordedTurn(5, "It is done.", ())
    assert next_action([*turns, last], LIMITS, [closed]) == Finish("It is done.")
