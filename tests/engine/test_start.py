"""T0: what started a run once starts it once, however often and from wherever it comes."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from executor.domain.transition import Reason, Refused
from executor.engine.setup import activate_policy
from executor.engine.start import LONGEST_GOAL, Started, StartRequest, start
from tests.support.failpoints import Crashed, Trap
from tests.support.office import OTTO, RIKO, TENANT, Office, policy
from tests.support.waiting import another_pool

REQUEST = StartRequest(TENANT, RIKO, "close 4101", "slash:1", {"channel": "C1"})


async def _one(office: Office, request: StartRequest = REQUEST) -> Started | Refused:
    [result] = await start(office.engine, [request])
    return result


async def test_a_start_is_queued_due_and_has_its_budget(office: Office) -> None:
    result = await _one(office)
    assert isinstance(result, Started)
    [row] = await office.rows(
        "SELECT r.status, r.due_at IS NOT NULL, r.reply_to ->> 'channel', b.limit_microusd "
        "FROM runs r JOIN run_budgets b ON b.run_id = r.id"
    )
    assert row == ("queued", True, "C1", 2_000_000)


async def test_the_same_origin_again_names_the_same_run(office: Office) -> None:
    first = await _one(office)
    assert isinstance(first, Started)
    assert await _one(office) == replace(first, again=True)
    both = await start(office.engine, [REQUEST, REQUEST])
    assert both == [replace(first, again=True)] * 2


async def test_two_equal_wishes_in_one_group_start_one_run(office: Office) -> None:
    first, second = await start(office.engine, [REQUEST, REQUEST])
    assert isinstance(first, Started)
    assert isinstance(second, Started)
    assert first.run_id == second.run_id
    assert len(await office.rows("SELECT id FROM runs")) == 1


@pytest.mark.parametrize("together", [True, False])
async def test_other_content_under_the_same_origin_is_refused(
    office: Office, together: bool
) -> None:
    other = replace(REQUEST, goal="close 4102")
    if together:
        _, refused = await start(office.engine, [REQUEST, other])
    else:
        await _one(office)
        refused = await _one(office, other)
    assert isinstance(refused, Refused)
    assert refused.reason is Reason.ALREADY_STARTED
    assert "run" in refused.detail


async def test_a_redelivery_is_told_of_its_run_though_the_requester_lost_the_permission(
    office: Office,
) -> None:
    first = await _one(office)
    people = {"requesters": ["U0SECOND"], "approvers": ["U0REVIEWER"]}
    await activate_policy(office.engine, policy(people=people))
    assert isinstance(first, Started)
    assert await _one(office) == replace(first, again=True)


async def test_who_may_not_ask_starts_nothing(office: Office) -> None:
    refused = await _one(office, replace(REQUEST, requester=OTTO))
    assert isinstance(refused, Refused)
    assert refused.reason is Reason.NOT_PERMITTED
    await office.later_unseen(seconds=61)
    stale = await _one(office)
    assert isinstance(stale, Refused)
    assert stale.reason is Reason.IDENTITY_UNKNOWN
    assert await office.rows("SELECT id FROM runs") == []


async def test_a_goal_is_bounded_and_storable(office: Office) -> None:
    await _one(office, replace(REQUEST, goal="a\0b" + "x" * LONGEST_GOAL))
    [(goal,)] = await office.rows("SELECT goal FROM runs")
    assert (len(goal), goal[:3]) == (LONGEST_GOAL, "a\ufffdb")


async def test_a_crash_before_the_commit_leaves_nothing_and_after_it_the_run(
    office: Office,
) -> None:
    for point, expected in (("start.before", 0), ("start.after", 1)):
        dying = office.colleague(failpoints=Trap(point))
        with pytest.raises(Crashed):
            await _one(dying)
        assert len(await office.rows("SELECT id FROM runs")) == expected
    again = await _one(office)
    assert isinstance(again, Started)
    assert again.again


async def test_200_pairs_of_equal_starts_at_two_processes_start_200_runs(
    office: Office, database_url: str
) -> None:
    async with another_pool(database_url) as second:
        colleague = office.colleague(second)
        pairs = [replace(REQUEST, origin_key=f"slash:{number}") for number in range(200)]
        results = []
        for some in (pairs[n : n + 50] for n in range(0, len(pairs), 50)):
            results += await asyncio.gather(
                *(_one(office, request) for request in some),
                *(_one(colleague, request) for request in some),
            )
    started = [result for result in results if isinstance(result, Started)]
    assert len(started) == 400
    assert len({result.run_id for result in started}) == 200
    assert sum(not result.again for result in started) == 200


async def test_groups_that_name_the_same_origins_in_opposite_order_do_not_deadlock(
    office: Office, database_url: str
) -> None:
    async with another_pool(database_url) as second:
        for round_number in range(10):
            group = [replace(REQUEST, origin_key=f"e:{round_number}:{n}") for n in range(20)]
            ours, theirs = await asyncio.gather(
                start(office.engine, group),
                start(office.colleague(second).engine, group[::-1]),
            )
            assert {r.run_id for r in ours if isinstance(r, Started)} == {
                r.run_id for r in theirs if isinstance(r, Started)
            }
