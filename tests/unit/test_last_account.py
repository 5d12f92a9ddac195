"""What a run has come to is told by its record: nothing is left out, and nothing made up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.card_account import MOST_LINES, account_of
from bot.cards import CardPainter, card_environment
from executor.domain.effect import EffectKind, EffectStatus
from executor.domain.operation import OperationStatus
from executor.domain.run import ENDED, RunStatus
from executor.domain.transition import Reason
from executor.engine.card_record import RunRecord
from executor.engine.last_account import (
    AccountedOperation,
    NeverProposed,
    Standing,
    last_account,
    standing_of,
)
from tests.support.card_reading import outside_literals
from tests.support.progress_records import proposed, read, refused, way
from tests.support.records import NONCE, accounted, run_record

S = OperationStatus
E = EffectStatus


def told(record: RunRecord) -> dict[str, list[str]]:
    """What stands under each heading."""
    return {
        part.title: ["".join(getattr(p, "text", "") for p in line.pieces) for line in part.lines]
        for part in account_of(record)
    }


def ended(*operations: object, **changes: object) -> RunRecord:
    return run_record(operations=(), accounted=operations, **changes)


@pytest.mark.parametrize(
    ("operation", "heading", "line"),
    [
        (accounted(3, S.SUCCEEDED), "Done", "op_3: ticket 4101 closed, email sent"),
        (
            accounted(3, S.PARTIAL, E.APPLIED, E.NOT_APPLIED),
            "Done in part",
            "op_3: ticket 4101 closed, email not sent",
        ),
        (
            accounted(3, S.UNKNOWN, E.APPLIED, E.UNKNOWN),
            "Not known yet",
            "op_3: ticket 4101 closed, email may have been sent",
        ),
        (
            accounted(3, S.EXECUTING, E.DISPATCHED, E.PLANNED),
            "Not known yet",
            "op_3: ticket 4101 may have been closed, email not sent",
        ),
        (accounted(3, S.REJECTED), "Not done", "op_3 (ticket 4101): rejected"),
        (accounted(3, S.WITHDRAWN, ticket=""), "Not done", "op_3: withdrawn"),
        (
            accounted(3, S.AWAITING, of_run=2),
            "Goes on in another run",
            "op_3 of run_2 (ticket 4101): waiting for a decision",
        ),
    ],
)
def test_each_operation_stands_under_what_has_become_of_it(
    operation: object, heading: str, line: str
) -> None:
    assert told(ended(operation))[heading] == [line]


def test_what_only_prepares_is_not_told_as_done() -> None:
    note = (EffectKind.TICKET_NOTE, E.APPLIED)
    noted = accounted(3, S.PARTIAL, E.NOT_APPLIED, E.SKIPPED)
    with_note = replace(noted, effects=(note, *noted.effects))
    assert told(ended(with_note))["Done in part"] == [
        "op_3: ticket 4101 not closed, email not sent"
    ]


@pytest.mark.parametrize(
    ("kind", "about", "done"),
    [
        (EffectKind.BUDGET_RAISE, "a higher limit", "limit raised"),
        (EffectKind.TOOL_CALL, "a call of a tool", "tool called"),
    ],
)
def test_an_operation_without_a_ticket_is_told_as_what_it_is(
    kind: EffectKind, about: str, done: str
) -> None:
    did = AccountedOperation(3, S.SUCCEEDED, "", ((kind, E.APPLIED),))
    did_not = AccountedOperation(4, S.REJECTED, "", ((kind, E.PLANNED),))
    assert told(ended(did, did_not)) == {
        "Done": [f"op_3: {done}"],
        "Not done": [f"op_4 ({about}): rejected"],
    }


def test_what_held_a_run_up_is_not_told_when_it_works_again() -> None:
    again = run_record(status=RunStatus.RUNNING, reason=Reason.BUDGET_LIMIT, ended_at=None)
    text = CardPainter(card_environment()).draw(again, render_no=1, nonce=NONCE).blocks
    assert "The money for this is used up" not in str(text)


@pytest.mark.parametrize("status", [status for status in S if status is not S.SUPERSEDED])
def test_no_operation_is_left_out(status: OperationStatus) -> None:
    assert standing_of(status) is not None
    assert "op_3" in str(told(ended(accounted(3, status))))


def test_what_was_replaced_is_told_as_what_took_its_place() -> None:
    both = ended(accounted(3, S.SUPERSEDED), accounted(4, S.SUCCEEDED))
    assert told(both) == {"Done": ["op_4: ticket 4101 closed, email sent"]}


def test_a_run_that_has_done_nothing_says_so() -> None:
    assert told(ended()) == {"Done": ["Nothing."]}
    assert told(ended(accounted(3, S.EXPIRED)))["Done"] == ["Nothing."]
    assert "Done" not in told(ended(accounted(3, S.UNKNOWN)))


def test_what_was_never_proposed_is_told_once_for_each_ticket() -> None:
    unread = refused(1, Reason.VERSION_NOT_READ)
    taken_up = proposed(3, S.SUCCEEDED)
    lost = replace(unread, ticket="4102", is_answered=False, refused=None)
    account = last_account((), (unread, unread, read(2), lost))
    assert account.never_proposed == (
        NeverProposed("4101", Reason.VERSION_NOT_READ),
        NeverProposed("4102", None),
    )
    assert last_account((), (unread, taken_up)).never_proposed == ()
    record = ended(progress=way(unread, lost))
    assert told(record)["Not done"] == [
        "A proposal to close ticket 4101 was refused: the ticket had not been read before",
        "Did not come to propose to close ticket 4102",
    ]


def test_of_many_the_newest_are_told_and_the_others_counted() -> None:
    many = ended(*(accounted(number, S.REJECTED) for number in range(1, MOST_LINES + 4)))
    lines = told(many)["Not done"]
    assert (lines[0], len(lines), lines[-1]) == (
        "(3 earlier)",
        MOST_LINES + 1,
        f"op_{MOST_LINES + 3} (ticket 4101): rejected",
    )


def test_what_a_model_wrote_for_a_ticket_is_not_repeated_unless_it_looks_like_one() -> None:
    wrong = replace(refused(1, Reason.TICKET_UNKNOWN), ticket="<!channel> *4101*")
    record = ended(progress=way(wrong))
    assert told(record)["Not done"] == [
        "A proposal to close a ticket was refused: there is no such ticket"
    ]
    drawing = CardPainter(card_environment()).draw(record, render_no=1, nonce=NONCE)
    assert all("channel" not in text for text in outside_literals(drawing.blocks))


@pytest.mark.parametrize("status", list(RunStatus))
def test_it_is_told_when_the_run_ends_and_not_before(status: RunStatus) -> None:
    record = run_record(status=status)
    assert bool(account_of(record)) == (status in ENDED or status is RunStatus.CANCELLING)


def test_every_standing_has_its_heading() -> None:
    every = [accounted(n, status) for n, status in enumerate(S, start=1)]
    assert len(told(ended(*every))) == len(Standing)
