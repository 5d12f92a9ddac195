"""Where the policy says so, a run ends with what nobody decided; silence is no rejection."""

from __future__ import annotations

import uuid

import pytest

from executor.domain.approval import Vote
from executor.domain.payloads import JsonObject
from executor.domain.transition import Reason, Refused
from executor.engine.asking import Ask, Asked, ask
from executor.engine.setup import activate_policy
from executor.engine.sweeper import sweep
from tests.support.failpoints import Crashed, Trap
from tests.support.fake_model import FakeModel, calls, says
from tests.support.office import CHANNEL, RENE, TENANT, Office, policy
from tests.support.working import Working

STOPS = {"decide_within_seconds": 600, "when_time_is_over": "stop_run"}
HURRY = {"name": "long texts", "text_above": 200, "decide_within_seconds": 60}


def _arguments(ticket: str, message: str) -> JsonObject:
    return {"ticket_id": ticket, "language": "en", "subject": "Closed", "message": message}


async def _waiting(office: Office, **proposed: str) -> Working:
    """A run whose proposals (message by ticket) are shown and wait for people."""
    tickets = [ticket.removeprefix("t") for ticket in proposed]
    asks = [
        calls("propose_closing", _arguments(ticket, message), f"c{ticket}")
        for ticket, message in zip(tickets, proposed.values(), strict=True)
    ]
    reads = [calls("read_ticket", {"ticket_id": ticket}, f"r{ticket}") for ticket in tickets]
    model = FakeModel([says("", *reads), says("", *asks), says("It is a pity.")])
    working = await Working.start(office, model)
    await working.drive()
    await office.show()
    return working


@pytest.fixture
async def strict(office: Office) -> Office:
    """An office whose policy stops runs that nobody decides on."""
    await activate_policy(office.engine, policy(approval=STOPS, rules=[HURRY]))
    return office


async def _called(working: Working) -> int:
    assert isinstance(working.model, FakeModel)
    return working.model.called


async def _run(working: Working) -> tuple[str, str | None]:
    [(status, reason)] = await working.office.rows(
        "SELECT status, reason FROM runs WHERE id = :r", r=working.run_id
    )
    return status, reason


async def _ends(working: Working) -> None:
    """What a sweep finds makes the run due, and it ends without a word to its model."""
    asked = await _called(working)
    await sweep(working.office.engine)
    assert await working.due()
    await working.drive()
    assert await _run(working) == ("failed", "nobody_decided")
    assert await _called(working) == asked


async def test_a_run_ends_with_what_nobody_decided(strict: Office) -> None:
    working = await _waiting(strict, t4101="All is well.")
    await strict.later(seconds=601)
    await _ends(working)
    [operation] = await working.operations()
    assert await strict.rows("SELECT status, reason, detail FROM operations") == [
        ("expired", "expired", {"stops_run": True})
    ]
    assert await strict.rows("SELECT * FROM decisions") == [], "nobody decided: silence is no vote"
    assert await strict.rows(
        "SELECT actor, detail FROM journal WHERE event = 'time_ran_out' AND entity_id = :o",
        o=operation,
    ) == [("clock", {"reason": "expired", "stops_run": True})]


@pytest.mark.parametrize("vote", list(Vote))
async def test_a_click_that_comes_too_late_stops_it_as_a_sweep_would(
    strict: Office, vote: Vote
) -> None:
    working = await _waiting(strict, t4101="All is well.")
    [operation] = await working.operations()
    await strict.later(seconds=601)
    late = await strict.click(operation, vote=vote, note="No!")
    assert isinstance(late, Refused)
    assert late.reason is Reason.EXPIRED
    await _ends(working)
    assert await strict.rows("SELECT * FROM decisions") == []


async def test_what_waits_beside_it_is_withdrawn_and_not_waited_for(strict: Office) -> None:
    working = await _waiting(strict, t4101="All is well. " * 40, t4102="All is well.")
    await strict.later(seconds=61)
    await _ends(working)
    assert await strict.rows("SELECT status, reason FROM operations ORDER BY number") == [
        ("expired", "expired"),
        ("withdrawn", "nobody_decided"),
    ]


async def test_a_question_does_not_keep_it_going(strict: Office) -> None:
    working = await _waiting(strict, t4101="All is well.")
    [operation] = await working.operations()
    asking = Ask(TENANT, operation, RENE, "Why?", CHANNEL, "U0REVIEWER", uuid.uuid4().bytes * 2)
    [asked] = await ask(strict.engine, [asking])
    assert isinstance(asked, Asked)
    await strict.later(seconds=601)
    await _ends(working)


async def test_a_driver_that_dies_with_the_result_leaves_the_end_to_the_next(
    strict: Office,
) -> None:
    working = await _waiting(strict, t4101="All is well.")
    await strict.later(seconds=601)
    await sweep(strict.engine)
    with pytest.raises(Crashed):
        await working.drive(strict.colleague(failpoints=Trap("record_result.after")))
    await strict.later(seconds=31)
    await working.drive(owner="w2")
    assert await _run(working) == ("failed", "nobody_decided")


async def test_what_was_approved_and_not_used_in_time_stops_nothing(strict: Office) -> None:
    working = await _waiting(strict, t4101="All is well.")
    [operation] = await working.operations()
    await strict.click(operation)
    await strict.later(hours=2)
    await sweep(strict.engine)
    assert await strict.rows("SELECT status, reason FROM operations") == [
        ("expired", "time_to_use_over")
    ]
    await working.drive()
    assert await _run(working) == ("succeeded", "completed")


async def test_elsewhere_the_agent_is_told_and_goes_on(office: Office) -> None:
    await activate_policy(office.engine, policy(approval={"decide_within_seconds": 600}))
    working = await _waiting(office, t4101="All is well.")
    await office.later(seconds=601)
    await sweep(office.engine)
    await working.drive()
    assert await _run(working) == ("succeeded", "completed")
    told = await working.told()
    assert told[-1]["status"] == "expired"
    assert "stops_run" not in told[-1]
