"""A raise that comes too late, or to a policy that has changed, raises nothing that it may not."""

from __future__ import annotations

import asyncio

from sqlalchemy import text

from executor.domain.approval import Vote
from executor.engine.failpoint import Commit, Side, point
from executor.engine.pausing import resume
from executor.engine.setup import activate_policy
from executor.engine.waking import wake
from tests.support.failpoints import Away
from tests.support.fake_model import FakeModel, calls, says
from tests.support.money import raises
from tests.support.office import RENE, SAM, TENANT, Office, policy
from tests.support.waiting import another_pool, until_blocked
from tests.support.working import Working

LAST = says("All is well.")
LOOK = says("I look first.", calls("read_ticket", {"ticket_id": "4101"}))


async def _let_spend(office: Office, **limits: object) -> None:
    budget = {"run_microusd": 1_000, "day_microusd": 100_000, **limits}
    await activate_policy(office.engine, policy(budget=budget))


async def _paused(office: Office, **limits: object) -> Working:
    """Drive a run whose second call of a model does not fit any more."""
    await _let_spend(office, **limits)
    working = await Working.start(office, FakeModel([LOOK, LAST]))
    await working.drive()
    return working


async def test_a_raise_that_was_approved_binds_to_the_cap_of_the_policy_of_now(
    office: Office,
) -> None:
    working = await _paused(office)
    [raised] = await raises(office)
    await office.show()
    await office.click(raised)
    await _let_spend(office, most_run_microusd=1_600)
    await office.open_one(await office.claim_operation(raised))
    await wake(office.engine)
    assert (await office.status(raised), await office.reason(raised)) == ("stale", "limit_changed")
    assert await office.rows(
        "SELECT limit_microusd FROM run_budgets WHERE run_id = :id", id=working.run_id
    ) == [(1_000,)]
    await working.drive()
    [_, capped] = await raises(office)
    await office.show()
    await office.click(capped)
    await office.open_one(await office.claim_operation(capped))
    assert await office.status(capped) == "succeeded"
    assert await office.rows(
        "SELECT limit_microusd FROM run_budgets WHERE run_id = :id", id=working.run_id
    ) == [(1_600,)]


async def test_the_end_of_an_earlier_raise_ends_no_run_that_waits_for_another_by_now(
    office: Office, database_url: str
) -> None:
    working = await _paused(office)
    [first] = await raises(office)
    await office.show()
    await office.click(first, RENE, Vote.REJECT, "enough")
    other = await Working.start(office, FakeModel([LOOK]), requester=SAM)
    await other.drive()
    [_, second] = await raises(office)
    async with another_pool(database_url) as pool, pool.transaction() as conn:
        # Stands for all that may happen to the run before the one who wakes it has its lock.
        mine = {"run": working.run_id, "raise": second}
        await conn.execute(text("SELECT 1 FROM runs WHERE id = :run FOR UPDATE"), mine)
        waking = asyncio.create_task(wake(office.engine))
        await until_blocked(database_url)
        await conn.execute(text("UPDATE pauses SET raise_id = :raise WHERE run_id = :run"), mine)
    await waking
    assert await office.run_status(working.run_id) == "paused"


async def test_the_largest_amounts_of_a_policy_are_counted(office: Office) -> None:
    most = 1_000_000_000_000_000
    await _let_spend(office, run_microusd=most, day_microusd=most)
    working = await Working.start(office, FakeModel([LAST], worst_case_microusd=most + 1))
    await working.drive()
    assert await office.run_status(working.run_id) == "paused"
    [raised] = await raises(office)
    await office.show()
    await office.click(raised)
    await office.open_one(await office.claim_operation(raised))
    await wake(office.engine)
    await working.drive()
    assert await office.rows("SELECT limit_microusd FROM run_budgets ORDER BY 1 DESC LIMIT 1") == [
        (2 * most,)
    ]
    assert await resume(office.engine, TENANT) == 0


async def test_a_days_limit_that_a_policy_takes_back_can_be_raised_again(office: Office) -> None:
    limits = {"run_microusd": 90_000, "most_day_microusd": 1_500}
    working = await _paused(office, day_microusd=1_000, **limits)
    for nth in range(2):
        raised = (await raises(office))[nth]
        await office.show()
        await office.click(raised)
        await office.open_one(await office.claim_operation(raised))
        assert await office.status(raised) == "succeeded"
        if nth == 0:
            await _let_spend(office, day_microusd=500, **limits)
        await wake(office.engine)
        await working.drive()
    assert await office.run_status(working.run_id) == "succeeded"


async def test_a_policy_is_active_though_the_paused_runs_cannot_be_woken(office: Office) -> None:
    working = await _paused(office)
    away = Away(point(Commit.RESUME, Side.BEFORE))
    active = policy(budget={"run_microusd": 5_000})
    assert await activate_policy(office.colleague(failpoints=away).engine, active)
    assert away.reached
    assert await office.run_status(working.run_id) == "paused"
    assert not await activate_policy(office.engine, active)
