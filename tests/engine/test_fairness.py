"""Tenants take turns: a flood in one keeps another waiting for one claim, and nothing is lost."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import text

from executor.domain.ids import TenantId
from executor.engine.claims import ClaimedRun, claim_runs
from executor.engine.engine import Engine
from executor.store import admission
from executor.store.admission import Work
from tests.support.neighbours import move_in, queue_runs
from tests.support.office import TENANT, Office
from tests.support.waiting import another_pool, until_blocked

SECOND, THIRD = TenantId("T0TEAM2"), TenantId("T0TEAM3")


async def _claim(engine: Engine, most: int) -> list[ClaimedRun]:
    return await claim_runs(engine, "w1", most)


async def _whose(engine: Engine, most: int) -> list[TenantId]:
    return [claimed.key[0] for claimed in await _claim(engine, most)]


@pytest.mark.parametrize("flooding", [TENANT, SECOND])
async def test_one_tenants_flood_delays_anothers_first_step_by_one_claim_at_most(
    office: Office, flooding: TenantId
) -> None:
    """Whichever of the two would come first by its name."""
    await move_in(office, SECOND)
    [quiet] = {TENANT, SECOND} - {flooding}
    await queue_runs(office, flooding, 60)
    for _ in range(3):
        await _claim(office.engine, 1)
    [wanted] = await queue_runs(office, quiet, 1)
    [first] = await _claim(office.engine, 1)
    assert first.key == (quiet, wanted)


async def test_a_claim_deals_its_places_to_tenants_in_turn(office: Office) -> None:
    await move_in(office, SECOND)
    await move_in(office, THIRD)
    for tenant, count in ((TENANT, 20), (SECOND, 2), (THIRD, 20)):
        await queue_runs(office, tenant, count)
    claimed = await _whose(office.engine, 8)
    assert sorted(claimed) == [TENANT] * 3 + [SECOND] * 2 + [THIRD] * 3


async def test_of_three_floods_each_is_served_every_third_time(office: Office) -> None:
    for team in (SECOND, THIRD):
        await move_in(office, team)
    for tenant in (TENANT, SECOND, THIRD):
        await queue_runs(office, tenant, 5)
    served = [tenant for _ in range(9) for tenant in await _whose(office.engine, 1)]
    for since in range(7):
        assert set(served[since : since + 3]) == {TENANT, SECOND, THIRD}


async def test_within_a_tenant_the_oldest_is_first(office: Office) -> None:
    queued = [await office.start_run() for _ in range(4)]
    claimed = [c.key[1] for most in (1, 1, 2) for c in await _claim(office.engine, most)]
    assert claimed == queued


async def test_of_claims_at_once_each_takes_something_else_and_nothing_is_left(
    office: Office, database_url: str
) -> None:
    await move_in(office, SECOND)
    for tenant in (TENANT, SECOND):
        await queue_runs(office, tenant, 6)
    async with another_pool(database_url) as second:
        engines = (office.engine, office.colleague(second).engine)
        claims = await asyncio.gather(*(_claim(engines[n % 2], 3) for n in range(4)))
    keys = [c.key for claimed in claims for c in claimed]
    assert [len(claimed) for claimed in claims] == [3] * 4
    assert len(set(keys)) == 12


async def test_a_claim_whose_tenant_is_being_served_waits_and_takes_what_is_left(
    office: Office, database_url: str
) -> None:
    await queue_runs(office, TENANT, 2)
    async with another_pool(database_url) as second:
        colleague = office.colleague(second).engine
        async with office.database.transaction() as conn:
            assert await admission.take_turns(conn, Work.RUN, [TENANT]) == [TENANT]
            waiting = asyncio.create_task(_claim(colleague, 1))
            await until_blocked(database_url)
        assert len(await waiting) == 1


async def test_a_claim_passes_by_a_tenant_that_is_being_served(
    office: Office, database_url: str
) -> None:
    await move_in(office, SECOND)
    for tenant in (TENANT, SECOND):
        await queue_runs(office, tenant, 1)
    async with another_pool(database_url) as second, office.database.transaction() as conn:
        await admission.take_turns(conn, Work.RUN, [TENANT])
        assert await _whose(office.colleague(second).engine, 2) == [SECOND]


@pytest.mark.parametrize(("mine", "next_is"), [(2, TENANT), (1, SECOND)])
async def test_a_run_that_somebody_holds_keeps_nobody_waiting(
    office: Office, database_url: str, mine: int, next_is: TenantId
) -> None:
    """The tenant's next run comes instead, or else the next tenant's."""
    await move_in(office, SECOND)
    held, *_ = await queue_runs(office, TENANT, mine)
    await queue_runs(office, SECOND, 1)
    lock = text("SELECT id FROM runs WHERE id = :id FOR UPDATE")
    async with another_pool(database_url) as second:
        colleague = office.colleague(second).engine
        async with office.database.transaction() as conn:
            await conn.execute(lock, {"id": held})
            assert await _whose(colleague, 1) == [next_is]
            await _claim(colleague, 3)
            assert await _claim(colleague, 3) == []
        assert [c.key[1] for c in await _claim(colleague, 1)] == [held]
