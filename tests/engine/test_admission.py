"""How many runs of a workspace may wait, and how many may be at work: exactly, whoever asks."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from sqlalchemy import text

from executor.domain import run
from executor.domain.run import RunStatus
from executor.domain.transition import Reason, Refused, Transition
from executor.engine import endings
from executor.engine.claims import ClaimedRun, claim_runs
from executor.engine.home import Home, home_of
from executor.engine.setup import activate_policy
from executor.engine.start import Started, StartRequest, StartResult, start, start_in
from executor.engine.status import RunLoad, newest_runs, one_run, run_load
from executor.store import clock, journal, runs
from tests.support import crowd
from tests.support.neighbours import move_in, queue_runs
from tests.support.office import OTTO, RIKO, TENANT, Office, policy
from tests.support.waiting import another_pool, until_blocked

QUEUED = "SELECT count(*) FROM runs WHERE status = 'queued'"
AT_WORK = "SELECT count(*) FROM runs WHERE lease_owner IS NOT NULL"


def _request(key: str) -> StartRequest:
    return StartRequest(TENANT, RIKO, "close 4101", key, {})


async def _one(office: Office, key: str) -> StartResult:
    [result] = await start(office.engine, [_request(key)])
    return result


async def _allow(office: Office, *, queued: int = 1_000, active: int = 20) -> None:
    admission = {"max_queued_runs": queued, "max_active_runs": active}
    await activate_policy(office.engine, policy(admission=admission))


async def _count(office: Office, query: str = QUEUED) -> int:
    [(count,)] = await office.rows(query)
    return int(count)


async def _most_connections(office: Office) -> int:
    [(most,)] = await office.rows("SELECT current_setting('max_connections')")
    return int(most)


def _started(results: list[StartResult]) -> list[Started]:
    return [result for result in results if isinstance(result, Started)]


async def _let_go(office: Office, claimed: ClaimedRun, event: run.Event) -> None:
    """Move a run that is at work, as its worker does."""
    async with office.database.transaction() as conn:
        row = (await runs.lock(conn, [claimed.key]))[claimed.key]
        chain = await journal.lock_chain(conn, [claimed.key])
        moved = run.decide(row.status, event)
        assert isinstance(moved, Transition)
        await endings.move_run(conn, row, moved, "w1", chain)
        await journal.advance(conn, chain)


async def test_a_start_beyond_the_queue_is_refused_and_leaves_nothing(office: Office) -> None:
    await _allow(office, queued=3)
    for key in ("a", "b", "c"):
        assert isinstance(await _one(office, key), Started)
    kept = [await _count(office, f"SELECT count(*) FROM {t}") for t in _WRITTEN_BY_A_START]  # noqa: S608
    assert await _one(office, "d") == Refused(Reason.QUEUE_FULL, {"queued": 3, "limit": 3})
    for table, before in zip(_WRITTEN_BY_A_START, kept, strict=True):
        assert await _count(office, f"SELECT count(*) FROM {table}") == before  # noqa: S608
    await office.claim_run_if_any()
    admitted = await _one(office, "d")
    assert isinstance(admitted, Started)
    assert not admitted.again


_WRITTEN_BY_A_START = ("runs", "run_budgets", "journal", "journal_heads", "cards")


async def test_of_one_group_as_many_start_as_there_is_room_for(office: Office) -> None:
    await _allow(office, queued=2)
    first, twin, second, third = await start(
        office.engine, [_request(key) for key in ("a", "a", "b", "c")]
    )
    assert isinstance(first, Started)
    assert twin == first
    assert isinstance(second, Started)
    assert third == Refused(Reason.QUEUE_FULL, {"queued": 2, "limit": 2})


async def test_who_may_not_start_takes_no_room(office: Office) -> None:
    await _allow(office, queued=1)
    stranger = replace(_request("x"), requester=OTTO)
    refused, started = await start(office.engine, [stranger, _request("a")])
    assert isinstance(refused, Refused)
    assert refused.reason is Reason.NOT_PERMITTED
    assert isinstance(started, Started)


async def test_a_known_origin_gets_its_run_however_full_the_queue_is(office: Office) -> None:
    await _allow(office, queued=1)
    first = await _one(office, "a")
    assert isinstance(first, Started)
    assert await _one(office, "a") == replace(first, again=True)


async def test_who_waits_for_the_last_place_behind_its_twin_gets_the_twins_run(
    office: Office, database_url: str
) -> None:
    await _allow(office, queued=1)
    async with another_pool(database_url) as second:
        async with office.database.transaction() as conn:
            [first] = await start_in(conn, office.engine, [_request("a")])
            waiting = asyncio.create_task(_one(office.colleague(second), "a"))
            await until_blocked(database_url)
        assert isinstance(first, Started)
        assert await waiting == replace(first, again=True)


async def test_a_start_that_came_to_nothing_leaves_its_place_to_who_waits_for_it(
    office: Office, database_url: str
) -> None:
    await _allow(office, queued=1)
    async with another_pool(database_url) as second:
        with pytest.raises(ZeroDivisionError):
            async with office.database.transaction() as conn:
                await start_in(conn, office.engine, [_request("a")])
                waiting = asyncio.create_task(_one(office.colleague(second), "b"))
                await until_blocked(database_url)
                raise ZeroDivisionError
        assert isinstance(await waiting, Started)


@pytest.mark.parametrize("waiting", [0, 300])
async def test_of_64_starts_at_once_exactly_as_many_get_in_as_there_is_room_for(
    office: Office, database_url: str, waiting: int
) -> None:
    await _allow(office, queued=waiting + 10)
    await queue_runs(office, TENANT, waiting)
    async with another_pool(database_url) as second:
        both = (office, office.colleague(second))
        results = await asyncio.gather(*(_one(both[n % 2], f"s:{n}") for n in range(64)))
    assert len(_started(results)) == 10
    assert {r.reason for r in results if isinstance(r, Refused)} == {Reason.QUEUE_FULL}
    assert await _count(office) == waiting + 10


async def test_where_starts_come_near_the_limit_together_none_gets_in_beyond_it(
    office: Office, database_url: str
) -> None:
    """The first of them still find so much room that they need not wait for each other."""
    most = await _most_connections(office)
    await _allow(office, queued=most + 20)
    await queue_runs(office, TENANT, 15)
    async with another_pool(database_url) as second:
        both = (office, office.colleague(second))
        for wave in range(4):
            await asyncio.gather(*(_one(both[n % 2], f"{wave}:{n}") for n in range(64)))
    assert await _count(office) == min(most + 20, 15 + 4 * 64)


async def test_far_from_the_limit_no_start_waits_for_another_and_near_it_each_does(
    office: Office, database_url: str
) -> None:
    most = await _most_connections(office)
    async with another_pool(database_url) as second:
        colleague = office.colleague(second)
        for limit, waits in ((most + 2, False), (most + 1, True)):
            await _allow(office, queued=limit)
            async with office.database.transaction() as conn:
                [held] = await start_in(conn, office.engine, [_request(f"held:{limit}")])
                assert isinstance(held, Started)
                other = asyncio.create_task(_one(colleague, f"other:{limit}"))
                if waits:
                    await until_blocked(database_url)
                else:
                    assert isinstance(await other, Started)
            assert isinstance(await other, Started)


async def test_what_nobody_drives_takes_no_place(office: Office) -> None:
    await _allow(office, queued=1, active=1)
    await office.start_run()
    async with office.database.transaction() as conn:
        await conn.execute(text("UPDATE runs SET driven = false, due_at = NULL"))
    driven = await office.start_run()
    assert [c.key[1] for c in await office.claim_run_if_any()] == [driven]


async def test_only_so_many_runs_are_at_work_and_what_waits_takes_no_place(
    office: Office,
) -> None:
    await _allow(office, active=2)
    await queue_runs(office, TENANT, 5)
    first, second = await office.claim_run_if_any()
    assert await office.claim_run_if_any() == []
    await _let_go(office, first, run.MustWait())
    [third] = await office.claim_run_if_any()
    await _let_go(office, second, run.Completed())
    [fourth] = await office.claim_run_if_any()
    assert await office.claim_run_if_any() == []
    assert len({c.key[1] for c in (first, second, third, fourth)}) == 4


async def test_a_run_that_goes_on_needs_a_place_like_one_that_begins(office: Office) -> None:
    await _allow(office, active=1)
    await queue_runs(office, TENANT, 2)
    [first] = await office.claim_run_if_any()
    await _let_go(office, first, run.MustWait())
    [second] = await office.claim_run_if_any()
    async with office.database.transaction() as conn:
        assert await runs.make_due(conn, [first.key], await clock.now(conn)) == 1
    assert await office.claim_run_if_any() == []
    await _let_go(office, second, run.Completed())
    assert [c.key for c in await office.claim_run_if_any()] == [first.key]


async def test_who_takes_over_needs_no_place_for_it_has_one(office: Office) -> None:
    await _allow(office, active=1)
    await queue_runs(office, TENANT, 2)
    [first] = await office.claim_run_if_any("w1")
    await office.later(seconds=31)
    [again] = await office.claim_run_if_any("w2")
    assert (again.key, again.lease.epoch) == (first.key, 2)
    assert await office.claim_run_if_any("w3") == []


async def test_a_lower_limit_stops_new_claims_and_nothing_at_work(office: Office) -> None:
    await _allow(office, active=3)
    await queue_runs(office, TENANT, 5)
    claimed = await office.claim_run_if_any()
    assert len(claimed) == 3
    await _allow(office, active=2)
    await _let_go(office, claimed[0], run.Completed())
    assert await office.claim_run_if_any() == []
    await _let_go(office, claimed[1], run.Completed())
    assert len(await office.claim_run_if_any()) == 1


async def test_a_full_tenant_does_not_keep_another_from_its_places(office: Office) -> None:
    await _allow(office, active=1)
    await queue_runs(office, TENANT, 2)
    other = await move_in(office, "T0TEAM2")
    [full] = await claim_runs(office.engine, "w1", 1)
    [run_id] = await queue_runs(office, other, 1)
    assert full.key[0] == TENANT
    assert [c.key for c in await claim_runs(office.engine, "w1", 1)] == [(other, run_id)]


async def test_claims_at_once_over_two_pools_never_exceed_the_limit(
    office: Office, database_url: str
) -> None:
    await _allow(office, active=5)
    await queue_runs(office, TENANT, 12)
    async with another_pool(database_url) as second:
        engines = (office.engine, office.colleague(second).engine)
        claims = await asyncio.gather(*(claim_runs(engines[n % 2], f"w{n}", 2) for n in range(8)))
    keys = [c.key for claimed in claims for c in claimed]
    assert len(keys) == len(set(keys)) == 5
    assert await _count(office, AT_WORK) == 5


async def test_two_processes_admit_and_claim_exactly_as_many_as_may_be(
    office: Office, database_url: str
) -> None:
    await _allow(office, queued=10, active=4)
    barriers = {
        "start": "SELECT id FROM tenants FOR UPDATE",
        "claim": "SELECT tenant_id FROM turns FOR UPDATE",
    }
    got = {}
    for deed, barrier in barriers.items():
        async with office.database.transaction() as conn:
            await conn.execute(text(barrier))
            processes = await crowd.two_processes(deed, database_url)
            await until_blocked(database_url, 4)
        got[deed] = await crowd.counts(processes)
    assert (sum(got["start"]), sum(got["claim"])) == (10, 4)
    assert await _count(office, AT_WORK) == 4


async def test_a_run_that_waits_for_a_place_says_how_many_runs_have_one(office: Office) -> None:
    await _allow(office, active=1)
    first = await office.start_run()
    [line] = await newest_runs(office.engine, TENANT)
    assert (line.status, line.at_work) == (RunStatus.QUEUED, None)
    await office.claim_run(first)
    await office.start_run()
    waiting, working = await newest_runs(office.engine, TENANT)
    assert (waiting.at_work, working.at_work) == (1, None)
    assert await one_run(office.engine, TENANT, waiting.number) == waiting
    home = await home_of(office.engine, TENANT, RIKO, most=5)
    assert isinstance(home, Home)
    assert [own.at_work for own in home.runs] == [1, None]
    assert await run_load(office.engine, TENANT) == RunLoad(queued=1, at_work=1, most_at_work=1)


async def test_numbers_far_apart_are_no_long_queue(office: Office, database_url: str) -> None:
    """What other tenants start between two runs takes no room beside them."""
    most = await _most_connections(office)
    await _allow(office, queued=most + 9)
    await office.start_run()
    await queue_runs(office, await move_in(office, "T0TEAM2"), 20)
    await office.start_run()
    async with another_pool(database_url) as second, office.database.transaction() as conn:
        await start_in(conn, office.engine, [_request("held")])
        assert isinstance(await _one(office.colleague(second), "other"), Started)
