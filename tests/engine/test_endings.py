"""Every limit of a run ends it once, with its reason, and tells what was and was not done."""

from __future__ import annotations

import asyncio

import pytest

from executor.domain.transition import Reason
from executor.engine.endings import stop_for_time
from executor.engine.last_account import Standing
from executor.engine.ports import ModelReply
from executor.engine.sweeper import sweep
from executor.engine.waking import wake
from tests.support.fake_mail import applied
from tests.support.fake_model import FakeModel, calls, says
from tests.support.office import TENANT, Office, closing
from tests.support.run_ends import (
    PROPOSE,
    READ,
    account_of,
    card_of,
    ended,
    limited,
    paused,
    raises,
    waiting,
)
from tests.support.working import Working

# Tokens


async def test_what_models_read_and_write_ends_a_run(office: Office) -> None:
    await limited(office, max_tokens=240)
    working = await Working.start(office, FakeModel([READ, READ]))
    await working.drive()
    assert await ended(office, working.run_id) == ("failed", "token_limit")
    assert working.model.called == 2  # type: ignore[attr-defined]
    assert len(await working.told()) == 2, "what was paid for is used"


@pytest.mark.parametrize(("most", "asked"), [(300, 2), (40, 1)])
async def test_a_reply_that_does_not_say_what_it_took_counts_with_its_bound(
    office: Office, most: int, asked: int
) -> None:
    """It may have written 40 tokens, and read a token for each byte that was recorded before."""
    await limited(office, max_tokens=most, max_output_tokens=40)
    silent = ModelReply("", READ.tool_calls, None, None)
    model = FakeModel([silent, silent, silent])
    working = await Working.start(office, model)
    await working.drive()
    assert await ended(office, working.run_id) == ("failed", "token_limit")
    assert model.called == asked


async def test_the_same_tokens_are_counted_after_a_takeover(office: Office) -> None:
    await limited(office, max_tokens=240)
    stop = asyncio.Event()

    def first(_: object) -> ModelReply:
        stop.set()
        return READ

    working = await Working.start(office, FakeModel([first, READ]))
    await working.drive(stop=stop)
    await working.drive(office.colleague(), owner="w2")
    assert await ended(office, working.run_id) == ("failed", "token_limit")


async def test_the_agents_last_words_are_kept_however_its_run_ends(office: Office) -> None:
    await limited(office, max_steps=4)
    first = says("I read the ticket first.", *READ.tool_calls)
    working = await Working.start(office, FakeModel([first, READ]))
    assert (await card_of(office, working.run_id)).summary == ""
    await working.drive()
    assert await ended(office, working.run_id) == ("failed", "step_limit")
    assert (await card_of(office, working.run_id)).summary == "I read the ticket first."


# Agents that would never end by themselves


@pytest.mark.parametrize(
    ("reply", "limits", "reason"),
    [
        (READ, {"max_steps": 12}, Reason.STEP_LIMIT),
        (says("Let me think.", *READ.tool_calls), {"max_tokens": 700}, Reason.TOKEN_LIMIT),
        (says("x" * 100_000, *READ.tool_calls, output_tokens=50_000),
         {"max_tokens": 100_000}, Reason.TOKEN_LIMIT),
        (says("", calls("no_such_tool", {})), {}, Reason.TOOL_ERROR_LIMIT),
        (says("", calls("read_ticket", {"ticket_id": "none"})), {}, Reason.TOOL_ERROR_LIMIT),
        (says("", calls("propose_closing", {"ticket_id": ["4101"]})), {}, Reason.TOOL_ERROR_LIMIT),
        # An error now and then, so that there are never many in a row.
        (says("", calls("no_such_tool", {}), *READ.tool_calls), {"max_steps": 12},
         Reason.STEP_LIMIT),
    ],
)  # fmt: skip
async def test_an_agent_that_goes_on_for_ever_is_ended_with_a_reason(
    office: Office, reply: ModelReply, limits: dict[str, int], reason: Reason
) -> None:
    await limited(office, **limits)
    model = FakeModel([reply] * 30)
    working = await Working.start(office, model)
    await working.drive()
    assert await ended(office, working.run_id) == ("failed", reason.value)
    assert model.called < 30
    assert await account_of(office, working.run_id) == {}


async def test_an_agent_that_asks_again_for_what_nobody_decides_is_ended(office: Office) -> None:
    await limited(office, max_identical_proposals=2)
    working = await Working.start(office, FakeModel([READ, PROPOSE, PROPOSE]))
    for _ in range(2):
        await working.drive()
        await office.show()
        await office.later(days=1)
        await sweep(office.engine)
    await working.drive()
    assert await ended(office, working.run_id) == ("failed", "repeated_proposal")
    assert list(await account_of(office, working.run_id)) == [Standing.NOT_DONE]


# Waiting for too long


async def test_a_run_that_nobody_wakes_is_ended_with_what_it_waits_for(office: Office) -> None:
    await limited(office, max_parked_seconds=600)
    working = await waiting(office)
    await office.later(seconds=590)
    await sweep(office.engine)
    assert await ended(office, working.run_id) == ("waiting", None)
    await office.later(seconds=11)
    await sweep(office.engine)
    await sweep(office.engine)
    assert await ended(office, working.run_id) == ("failed", "parked_too_long")
    [operation] = await working.operations()
    assert (await office.status(operation), await office.reason(operation)) == (
        "withdrawn",
        "parked_too_long",
    )
    stops = "SELECT actor FROM journal WHERE entity_id = :r AND event = 'stopped'"
    assert await office.rows(stops, r=working.run_id) == [("clock",)]
    assert list(await account_of(office, working.run_id)) == [Standing.NOT_DONE]


async def test_a_paused_run_is_ended_in_its_time_as_well(office: Office) -> None:
    working = await paused(office, max_parked_seconds=600)
    assert await raises(office) == [("awaiting", None)]
    await office.later(seconds=601)
    await sweep(office.engine)
    assert await ended(office, working.run_id) == ("failed", "parked_too_long")
    assert [status for status, _ in await raises(office)] == ["withdrawn"]
    assert working.model.called == 1  # type: ignore[attr-defined]


async def test_what_is_opened_when_the_wait_is_over_is_told_truthfully(office: Office) -> None:
    await limited(office, max_parked_seconds=600)
    working = await Working.propose(office, closing("4101"), closing("4102"))
    await working.drive()
    await office.show()
    opened, unopened = await working.operations()
    await office.later(seconds=590)
    await office.click(opened)
    claimed = await office.claim_operation(opened)
    attempt = await office.open_one(claimed)
    await office.later(seconds=11)
    await sweep(office.engine)
    assert await ended(office, working.run_id) == ("cancelling", "parked_too_long")
    assert await office.status(unopened) == "withdrawn"
    told = await account_of(office, working.run_id)
    assert set(told) == {Standing.NOT_KNOWN, Standing.NOT_DONE}
    await office.report(claimed, attempt, applied())  # type: ignore[arg-type]
    await wake(office.engine)
    assert await ended(office, working.run_id) == ("failed", "parked_too_long")
    assert set(await account_of(office, working.run_id)) == {Standing.DONE, Standing.NOT_DONE}


async def test_the_time_counts_anew_when_the_run_waits_again(office: Office) -> None:
    await limited(office, max_parked_seconds=600)
    working = await Working.start(office, FakeModel([READ, PROPOSE, PROPOSE]))
    await working.drive()
    await office.later(seconds=500)
    await office.rows("UPDATE runs SET due_at = signoff_clock() RETURNING 1")
    await working.drive()
    assert await ended(office, working.run_id) == ("waiting", None)
    await office.later(seconds=500)
    await sweep(office.engine)
    assert await ended(office, working.run_id) == ("waiting", None)


async def test_a_run_that_only_waits_for_a_worker_is_not_ended_for_it(office: Office) -> None:
    await limited(office, max_parked_seconds=600)
    working = await waiting(office)
    await office.later(seconds=590)
    await office.rows("UPDATE runs SET due_at = signoff_clock() RETURNING 1")
    await office.later(seconds=20)
    await sweep(office.engine)
    assert await ended(office, working.run_id) == ("waiting", None)


async def test_whoever_wakes_a_run_first_keeps_it(office: Office) -> None:
    await limited(office, max_parked_seconds=600)
    working = await waiting(office)
    await office.later(seconds=601)
    await office.rows("UPDATE runs SET due_at = signoff_clock() RETURNING 1")
    await office.claim_run(working.run_id)
    await stop_for_time(office.engine, (TENANT, working.run_id))
    assert await ended(office, working.run_id) == ("running", None)


# What is asked for beside a run


async def test_what_others_have_asked_for_as_well_goes_on_and_is_told(office: Office) -> None:
    first = await Working.propose(office, closing())
    second = await Working.propose(office, closing())
    await office.show()
    assert await first.operations() == await second.operations()
    await office.cancel(second.run_id)
    assert await account_of(office, second.run_id) == {Standing.ELSEWHERE: [1]}
    [told] = (await card_of(office, second.run_id)).accounted
    [number] = await office.rows("SELECT number FROM runs WHERE id = :r", r=first.run_id)
    assert told.of_run == number[0]


async def test_the_last_account_follows_what_turns_out_after_the_end(office: Office) -> None:
    claimed, opened = await office.opened()
    operation = claimed.claim.key[1]
    run_id = await office.run_of(operation)
    await office.cancel(run_id)
    assert list(await account_of(office, run_id)) == [Standing.NOT_KNOWN]
    await office.report(claimed, opened, applied())
    await wake(office.engine)
    assert await ended(office, run_id) == ("cancelled", "cancelled")
    assert list(await account_of(office, run_id)) == [Standing.DONE]
