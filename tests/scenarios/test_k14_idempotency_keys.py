"""K14: what one start asks for is started once, and another wish is another run."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import text

from executor.domain.transition import Reason, Refused
from executor.engine.start import Started, StartRequest, StartResult, start
from tests.support import crowd
from tests.support.failpoints import Crashed, Trap
from tests.support.fake_mail import applied
from tests.support.office import RIKO, TENANT, Office
from tests.support.waiting import another_pool, until_blocked


def _request(key: str, goal: str = "close 4101") -> StartRequest:
    return StartRequest(TENANT, RIKO, goal, key, {})


async def _one(office: Office, request: StartRequest) -> StartResult:
    [result] = await start(office.engine, [request])
    return result


async def _started(office: Office, key: str) -> Started:
    result = await _one(office, _request(key))
    assert isinstance(result, Started), result
    return result


async def test_b187_one_key_with_two_contents_starts_one_run_and_leaves_nothing_of_the_other(
    office: Office, database_url: str
) -> None:
    async with another_pool(database_url) as second:
        colleague = office.colleague(second)
        for number in range(20):
            key = f"k1-{number}"
            results = await asyncio.gather(
                _one(office, _request(key, "close 4101")),
                _one(colleague, _request(key, "close 4102")),
            )
            [refused] = [r for r in results if isinstance(r, Refused)]
            [started] = [r for r in results if isinstance(r, Started)]
            assert refused == Refused(Reason.ALREADY_STARTED, {"run": started.number})
    assert await office.rows("SELECT count(*), count(DISTINCT origin_key) FROM runs") == [(20, 20)]
    for table in ("operations", "cards", "reservations"):
        assert await office.rows(f"SELECT count(*) FROM {table}") == [(0,)]  # noqa: S608


async def test_b188_the_loser_of_a_race_gets_the_same_run_and_no_error(
    office: Office, database_url: str
) -> None:
    async with another_pool(database_url) as second:
        colleague = office.colleague(second)
        for number in range(200):
            key = f"k2-{number}"
            ours, theirs = await asyncio.gather(_started(office, key), _started(colleague, key))
            assert ours.run_id == theirs.run_id
            assert sorted([ours.again, theirs.again]) == [False, True]


async def test_b188_two_processes_that_are_asked_for_the_same_start_it_once(
    office: Office, database_url: str
) -> None:
    async with office.database.transaction() as conn:
        await conn.execute(text("SELECT id FROM tenants FOR UPDATE"))
        processes = await crowd.two_processes("start_the_same", database_url)
        await until_blocked(database_url, 4)
    assert await crowd.counts(processes) == [crowd.AT_ONCE] * 2
    assert await office.rows("SELECT count(*) FROM runs") == [(crowd.AT_ONCE,)]


async def test_b191_the_same_words_tomorrow_are_a_new_run_with_a_new_proposal(
    office: Office,
) -> None:
    claimed, opened = await office.opened()
    first = claimed.claim.key[1]
    assert await office.report(claimed, opened, applied()) == "succeeded"
    await office.later(days=1)
    await office.customer_writes()
    [(version,)] = await office.rows("SELECT version FROM desk_tickets WHERE id = '4101'")
    run_id = await office.start_run("close 4101")
    assert run_id != await office.run_of(first)
    assert await office.rows("SELECT number FROM steps WHERE run_id = :r", r=run_id) == []
    second = await office.propose(run_id, await office.claim_run(run_id), version=version)
    assert second != first
    assert await office.status(second) == "awaiting"
    rows = await office.rows("SELECT intent_key, ticket_version, digest FROM operations")
    assert [len(set(column)) for column in zip(*rows, strict=True)] == [2, 2, 2]
    [(decisions,)] = await office.rows(
        "SELECT count(*) FROM decisions d JOIN approvals a ON a.id = d.approval_id "
        "WHERE a.operation_id = :o",
        o=second,
    )
    assert decisions == 0


async def test_b192_a_start_whose_answer_was_lost_names_the_same_run_ever_after(
    office: Office,
) -> None:
    with pytest.raises(Crashed):
        await _one(office.colleague(failpoints=Trap("start.after")), _request("k3"))
    [(run_id,)] = await office.rows("SELECT id FROM runs")
    for seconds in (3, 180):
        await office.later(seconds=seconds)
        again = await _started(office, "k3")
        assert (again.run_id, again.again) == (run_id, True)
    assert await office.rows("SELECT count(*) FROM runs") == [(1,)]
