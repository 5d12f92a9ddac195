"""A driven run tells what it does from its first claim on: after each step, last of all cards."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from executor.adapters.host_clock import mint_id
from executor.domain.approval import Vote
from executor.domain.ids import RunId
from executor.domain.operation import OperationStatus
from executor.domain.payloads import JsonObject
from executor.domain.transition import Reason
from executor.engine.asking import Ask, Asked
from executor.engine.asking import ask as put
from executor.engine.card_record import RunRecord
from executor.engine.card_turns import DueCard, due_cards
from executor.engine.ports import ModelFailed
from executor.engine.presenting import Shown, begin_posting, finish_drawing, present
from executor.engine.progress_record import FailedCallStep, QuestionStep, Step, ToolStep
from executor.engine.records import read_run
from executor.engine.start import Started, StartRequest, start
from executor.engine.sweeper import sweep
from executor.engine.waking import wake
from executor.store.cards import SubjectKind
from tests.support.agent_scene import admit, ask, closing_of, run_of
from tests.support.fake_model import FakeModel, calls, says
from tests.support.office import CHANNEL, DELIVERY, RIKO, SAM, TENANT, Office, closing
from tests.support.working import Working

PROPOSAL: JsonObject = {
    "ticket_id": "4101",
    "language": "en",
    "subject": "Ticket 4101 closed",
    "message": "Your invoice is corrected.",
}


async def taken(office: Office) -> list[DueCard]:
    """Every card whose turn it is."""
    return list((await due_cards(office.engine, DELIVERY, 50)).cards)


async def draw(office: Office, due: DueCard, rest_seconds: float | None = None) -> None:
    """Post a card, or draw it again, as a bot would."""
    shown = Shown(b"\1" * 32, [], getattr(due.record, "content_revision", 0))
    if due.card.ts is None:
        nonce, ts = mint_id(), f"ts-{due.card.subject_id}"
        await begin_posting(office.engine, due.card, nonce, CHANNEL, shown)
        await present(office.engine, due.card, nonce, channel=CHANNEL, ts=ts, shown=shown)
    await finish_drawing(office.engine, due.card, shown, rest_seconds=rest_seconds)


async def draw_all(office: Office) -> list[tuple[SubjectKind, RunRecord | None]]:
    """Draw until nothing is due; returns what was drawn, in order."""
    drawn: list[tuple[SubjectKind, RunRecord | None]] = []
    while turn := await taken(office):
        for due in turn:
            await draw(office, due)
            record = due.record if isinstance(due.record, RunRecord) else None
            drawn.append((due.card.kind, record))
    return drawn


async def wanted(office: Office, run_id: RunId) -> int | None:
    """How often the progress of a run was asked for; ``None``: never."""
    rows = await office.rows("SELECT wanted_revision FROM cards WHERE subject_id = :r", r=run_id)
    return rows[0][0] if rows else None


async def steps(office: Office, run_id: RunId) -> Sequence[Step]:
    """What a run has done, as its card would tell it."""
    async with office.database.transaction() as conn:
        return (await read_run(conn, TENANT, run_id)).progress.steps


async def test_it_is_asked_for_when_the_run_is_claimed_and_after_each_step(office: Office) -> None:
    run_id = await office.start_run()
    assert await wanted(office, run_id) is None, "it has done nothing yet"
    model = FakeModel(
        [
            says("", calls("search_tickets", {"query": "invoice"})),
            says("", calls("read_ticket", {"ticket_id": "4101"})),
            says("", calls("propose_closing", PROPOSAL)),
        ],
        held=True,
    )
    working = Working(office, run_id, model)
    await office.claim_run(run_id)
    counted = [await wanted(office, run_id)]
    assert counted == [1]
    model.release(3)
    await working.drive()
    # Three replies, two results, what was proposed, and that it waits.
    assert await wanted(office, run_id) == 1 + 3 + 2 + 1 + 1
    told = await steps(office, run_id)
    assert [(s.tool, s.ticket, s.is_answered) for s in told if isinstance(s, ToolStep)] == [
        ("search_tickets", "", True),
        ("read_ticket", "4101", True),
        ("propose_closing", "4101", False),
    ]
    assert isinstance(told[0], ToolStep)
    assert told[0].found == (2, False)
    assert isinstance(told[2], ToolStep)
    assert told[2].operation is not None
    assert told[2].operation[1] is OperationStatus.AWAITING


async def test_a_step_under_way_is_told_before_it_has_a_result(office: Office) -> None:
    working = await Working.start(office, FakeModel([]))
    claimed = await office.claim_run(working.run_id)
    await office.record_reply(working.run_id, 1, 2)
    told = await steps(office, working.run_id)
    assert [(s.is_answered, s.operation) for s in told if isinstance(s, ToolStep)] == [
        (False, None),
        (False, None),
    ]
    assert claimed.lease.epoch == 1


async def test_a_call_of_the_model_that_failed_is_a_step_and_money_is_counted(
    office: Office,
) -> None:
    failed = ModelFailed("overloaded", not_sent=True, retryable=True)
    model = FakeModel([failed, says("Nothing to do.", cost_microusd=700)])
    working = await Working.start(office, model)
    await working.drive()
    async with office.database.transaction() as conn:
        record = await read_run(conn, TENANT, working.run_id)
    assert [type(step) for step in record.progress.steps] == [FailedCallStep]
    assert record.progress.money is not None
    assert record.progress.money.spent_microusd == 700
    assert record.summary == "Nothing to do."


async def test_refusals_of_tools_are_told_by_their_reason(office: Office) -> None:
    model = FakeModel(
        [
            says("", calls("read_ticket", {"ticket_id": "9999"}), calls("delete_all", {})),
            says("", calls("propose_closing", PROPOSAL)),
            says("I give up."),
        ]
    )
    working = await Working.start(office, model)
    await working.drive()
    told = await steps(office, working.run_id)
    assert [s.refused for s in told if isinstance(s, ToolStep)] == [
        Reason.TICKET_UNKNOWN,
        Reason.TOOL_UNKNOWN,
        Reason.VERSION_NOT_READ,
    ]


@pytest.mark.parametrize("vote", list(Vote))
async def test_what_an_operations_card_shows_is_told_by_its_run_next(
    office: Office, vote: Vote
) -> None:
    working = await Working.propose(office, closing())
    [operation] = await working.operations()
    await draw_all(office)
    await office.click(operation, vote=vote, note="No.")
    drawn = await draw_all(office)
    assert [kind for kind, _ in drawn] == [SubjectKind.OPERATION, SubjectKind.RUN]
    record = drawn[-1][1]
    assert record is not None
    [step] = record.progress.steps
    assert isinstance(step, ToolStep)
    became = OperationStatus.APPROVED if vote is Vote.APPROVE else OperationStatus.REJECTED
    assert step.operation is not None
    assert step.operation[1] is became


async def test_every_run_that_proposed_it_tells_what_becomes_of_an_operation(
    office: Office,
) -> None:
    first = await Working.propose(office, closing())
    second = await Working.propose(office, closing(), requester=SAM)
    assert await first.operations() == await second.operations()
    await draw_all(office)
    [operation] = await first.operations()
    await office.click(operation, vote=Vote.REJECT, note="No.")
    told = {record.id for _, record in await draw_all(office) if record is not None}
    assert told == {first.run_id, second.run_id}


async def test_an_operation_that_ends_after_its_run_still_changes_what_the_run_says(
    office: Office,
) -> None:
    working = await Working.propose(office, closing())
    await draw_all(office)
    await office.cancel(working.run_id, RIKO)
    drawn = await draw_all(office)
    record = drawn[-1][1]
    assert record is not None
    assert (record.reason, record.operations[0][1]) == (
        Reason.CANCELLED,
        OperationStatus.WITHDRAWN,
    )


async def test_a_question_is_told_when_it_is_put_and_when_it_is_answered(office: Office) -> None:
    working = await Working.propose(office, closing())
    await draw_all(office)
    [operation] = await working.operations()
    asking = Ask(TENANT, operation, SAM, "Why?", CHANNEL, "U0SECOND", b"\2" * 32)
    [asked] = await put(office.engine, [asking])
    assert isinstance(asked, Asked)
    told = await steps(office, working.run_id)
    assert [(s.by, s.is_answered) for s in told if isinstance(s, QuestionStep)] == [(SAM, None)]
    await working.drive()
    told = await steps(office, working.run_id)
    assert [s.is_answered for s in told if isinstance(s, QuestionStep)] == [True]


async def test_it_is_shown_where_the_run_was_asked_for(office: Office) -> None:
    place: JsonObject = {"channel": "C0SUPPORT", "thread_ts": "17.5"}
    [started] = await start(office.engine, [StartRequest(TENANT, RIKO, "close", "key", place)])
    assert isinstance(started, Started)
    claimed = await office.claim_run(started.run_id)
    await office.ask(started.run_id, claimed, closing())
    places = {
        due.card.kind: (due.turn.channel, due.turn.thread_ts)
        for due in await taken(office)
        if due.turn is not None
    }
    assert places == {
        SubjectKind.OPERATION: (CHANNEL, None),
        SubjectKind.RUN: ("C0SUPPORT", "17.5"),
    }


async def test_it_rests_between_two_drawings_and_loses_nothing(office: Office) -> None:
    run_id = await office.start_run()
    await office.claim_run(run_id)
    [due] = await taken(office)
    await office.record_reply(run_id, 1, 1)
    await draw(office, due, rest_seconds=2)
    await office.later(seconds=31)
    await office.claim_run(run_id, "w2")
    [due] = await taken(office)
    await draw(office, due, rest_seconds=2)
    await office.later(seconds=1)
    await office.cancel(run_id, RIKO)
    assert await taken(office) == [], "it was drawn a second ago"
    await office.later(seconds=1)
    [due] = await taken(office)
    assert isinstance(due.record, RunRecord)
    assert due.record.reason is Reason.CANCELLED


async def test_what_changes_while_it_is_drawn_waits_for_the_rest_as_well(office: Office) -> None:
    run_id = await office.start_run()
    await office.claim_run(run_id)
    [due] = await taken(office)
    await office.cancel(run_id, RIKO)
    await draw(office, due, rest_seconds=2)
    assert await taken(office) == []
    await office.later(seconds=2)
    assert len(await taken(office)) == 1


async def test_runs_of_agents_and_those_without_a_driver_tell_no_progress(office: Office) -> None:
    await admit(office)
    await ask(office, run_of("close 4102"))
    await ask(office, closing_of(key="other"))
    assert len(await office.claim_run_if_any()) == 1
    kinds = await office.rows("SELECT DISTINCT subject_kind FROM cards ORDER BY 1")
    assert kinds == [("operation",), ("request",)]


async def test_nothing_of_the_record_says_what_the_model_wrote_or_read(office: Office) -> None:
    secret = "a secret of the model"
    model = FakeModel(
        [
            says(secret, calls("search_tickets", {"query": secret})),
            says("", calls("read_ticket", {"ticket_id": "4101", "why": secret})),
            says("", calls("propose_closing", {**PROPOSAL, "message": secret})),
            says("Done."),
        ]
    )
    working = await Working.start(office, model)
    await working.drive()
    assert secret not in repr(await steps(office, working.run_id))


async def test_a_run_that_was_told_of_is_told_of_to_its_end(office: Office) -> None:
    working = await Working.propose(office, closing())
    [operation] = await working.operations()
    await draw_all(office)
    await office.click(operation, vote=Vote.REJECT, note="No.")
    await wake(office.engine)
    await working.drive()
    await sweep(office.engine)
    records = [record for _, record in await draw_all(office) if record is not None]
    assert records[-1].ended_at is not None
    assert records[-1].summary == "All done."
    ours = await office.rows("SELECT count(*) FROM card_postings WHERE subject_id = :r",
                             r=working.run_id)  # fmt: skip
    assert ours == [(1,)], "one message from beginning to end"
