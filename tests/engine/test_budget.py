"""TM: money is held before each call and charged to the actual; no concurrency makes more of it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from executor.domain.budget import Event, LoseSight, Settle, Void
from executor.domain.errors import StaleEpoch
from executor.domain.transition import Reason, Refused
from executor.engine.budget import Ask, Held, charge_alone, reserve
from executor.engine.claims import ClaimedRun
from executor.engine.setup import activate_policy
from executor.engine.sweeper import sweep
from executor.store import clock
from tests.support.clock import move_clock
from tests.support.office import TENANT, Office, policy
from tests.support.waiting import another_pool

CENT = 10_000


async def _run(office: Office, *, run_limit: int = 10**9, day_limit: int = 10**9) -> ClaimedRun:
    limits = {"run_microusd": run_limit, "day_microusd": day_limit}
    await activate_policy(office.engine, policy(budget=limits))
    return await office.claim_run(await office.start_run())


def _ask(claimed: ClaimedRun, amount: int) -> Ask:
    return Ask(claimed.key, claimed.lease.epoch, "model:test", amount, 60.0)


async def _hold(office: Office, claimed: ClaimedRun, amount: int) -> Held | Refused:
    [result] = await reserve(office.engine, [_ask(claimed, amount)])
    return result


async def _charge(office: Office, held: Held | Refused, event: Event) -> None:
    assert isinstance(held, Held)
    await charge_alone(office.engine, {(TENANT, held.reservation_id): event})


async def _accounts(office: Office) -> list[tuple[int, int]]:
    rows = await office.rows(
        "SELECT spent_microusd, held_microusd FROM run_budgets "
        "UNION ALL SELECT spent_microusd, held_microusd FROM tenant_days"
    )
    return [(spent, held) for spent, held in rows]


async def test_money_is_held_settled_and_voided(office: Office) -> None:
    claimed = await _run(office)
    held = [await _hold(office, claimed, 5 * CENT) for _ in range(3)]
    assert await _accounts(office) == [(0, 15 * CENT)] * 2
    events: list[Event] = [Settle(CENT), Void(), LoseSight()]
    for one, event in zip(held, events, strict=True):
        await _charge(office, one, event)
    assert await _accounts(office) == [(CENT, 5 * CENT)] * 2
    await _charge(office, held[0], Settle(4 * CENT))
    await _charge(office, held[2], Settle(2 * CENT))
    assert await _accounts(office) == [(3 * CENT, 0)] * 2


async def test_an_actual_cost_above_what_was_held_is_charged_in_full(office: Office) -> None:
    claimed = await _run(office, run_limit=5 * CENT)
    held = await _hold(office, claimed, 5 * CENT)
    await _charge(office, held, Settle(9 * CENT))
    assert await _accounts(office) == [(9 * CENT, 0)] * 2
    refused = await _hold(office, claimed, 1)
    assert isinstance(refused, Refused)
    assert refused.detail["left_microusd"] == 0


@pytest.mark.parametrize("scope", ["run", "day"])
async def test_a_refusal_names_the_limit_and_what_is_left(office: Office, scope: str) -> None:
    claimed = await _run(office, **{f"{scope}_limit": 12 * CENT})
    await _hold(office, claimed, 10 * CENT)
    assert await _hold(office, claimed, 5 * CENT) == Refused(
        Reason.BUDGET_LIMIT,
        {
            "limit": scope,
            "asked_microusd": 5 * CENT,
            "left_microusd": 2 * CENT,
            "limit_microusd": 12 * CENT,
        },
    )


async def test_b162_calls_that_ask_at_once_at_two_workers_never_pass_the_limit(
    office: Office, database_url: str
) -> None:
    claimed = await _run(office, day_limit=100 * CENT)
    await _charge(office, await _hold(office, claimed, 90 * CENT), Settle(90 * CENT))
    async with another_pool(database_url) as pool:
        offices = [office, office.colleague(pool)]
        results = await asyncio.gather(
            *(_hold(offices[n % 2], claimed, 5 * CENT) for n in range(10))
        )
    assert sum(isinstance(result, Held) for result in results) == 2
    assert await _accounts(office) == [(90 * CENT, 10 * CENT)] * 2


async def test_b163_the_first_calls_of_a_new_day_are_not_free(
    office: Office, database_url: str
) -> None:
    claimed = await _run(office, day_limit=10 * CENT)
    assert await office.rows("SELECT 1 FROM tenant_days") == []
    async with another_pool(database_url) as pool:
        offices = [office, office.colleague(pool)]
        results = await asyncio.gather(
            *(_hold(offices[n % 2], claimed, 5 * CENT) for n in range(8))
        )
    assert sum(isinstance(result, Held) for result in results) == 2


async def test_b169_a_charge_belongs_to_the_day_of_its_reservation(
    office: Office, database_url: str
) -> None:
    await activate_policy(
        office.engine, policy(tenant={"name": "Acme", "timezone": "Europe/Amsterdam"})
    )
    claimed = await office.claim_run(await office.start_run())
    async with office.database.transaction() as conn:
        now = await clock.now(conn)
        midnight = datetime(2027, 1, 10, 23, 0, tzinfo=UTC)  # 00:00 in Amsterdam
        await move_clock(conn, midnight - timedelta(minutes=1) - now)
    held = [await _hold(office, claimed, 10 * CENT) for _ in range(5)]
    await office.later_unseen(minutes=2)
    async with another_pool(database_url) as pool:
        offices = [office, office.colleague(pool)]
        await asyncio.gather(
            *(_charge(offices[n % 2], one, Settle(10 * CENT)) for n, one in enumerate(held))
        )
    await _hold(office, claimed, CENT)
    days = await office.rows(
        "SELECT CAST(day AS text), spent_microusd, held_microusd FROM tenant_days "
        "WHERE spent_microusd + held_microusd > 0 ORDER BY day"
    )
    assert days == [("2027-01-10", 50 * CENT, 0), ("2027-01-11", 0, CENT)]


async def test_b170_another_worker_sees_the_spending(office: Office, database_url: str) -> None:
    claimed = await _run(office, day_limit=5 * CENT)
    await _charge(office, await _hold(office, claimed, 5 * CENT), Settle(5 * CENT))
    async with another_pool(database_url) as pool:
        assert isinstance(await _hold(office.colleague(pool), claimed, 1), Refused)


async def test_b171_what_was_held_is_counted_once(office: Office, database_url: str) -> None:
    claimed = await _run(office)
    async with another_pool(database_url) as pool:
        offices = [office, office.colleague(pool)]

        async def one(number: int) -> None:
            held = await _hold(offices[number % 2], claimed, 2 * CENT)
            event: Event = Void() if number % 5 == 0 else Settle(CENT)
            await _charge(offices[number % 2], held, event)
            await _charge(offices[(number + 1) % 2], held, event)

        await asyncio.gather(*(one(number) for number in range(100)))
    assert await _accounts(office) == [(80 * CENT, 0)] * 2


async def test_b183_a_refused_reservation_releases_nothing(office: Office) -> None:
    claimed = await _run(office, run_limit=CENT)
    for _ in range(20):
        assert isinstance(await _hold(office, claimed, 2 * CENT), Refused)
    assert await office.rows("SELECT 1 FROM reservations") == []
    assert [account for account in await _accounts(office) if account != (0, 0)] == []


async def test_reservations_of_one_group_are_folded(office: Office) -> None:
    claimed = await _run(office, run_limit=10 * CENT)
    results = await reserve(office.engine, [_ask(claimed, 4 * CENT) for _ in range(3)])
    assert [type(result) for result in results] == [Held, Held, Refused]


async def test_a_call_that_nobody_told_of_stays_counted(office: Office) -> None:
    claimed = await _run(office)
    held = await _hold(office, claimed, 5 * CENT)
    await office.later(seconds=61)
    await sweep(office.engine)
    assert await office.rows("SELECT status FROM reservations") == [("unknown",)]
    assert await _accounts(office) == [(0, 5 * CENT)] * 2
    await _charge(office, held, Settle(CENT))
    assert await _accounts(office) == [(CENT, 0)] * 2


async def test_a_stale_worker_holds_no_money(office: Office) -> None:
    claimed = await _run(office)
    await office.later(seconds=31)
    await office.claim_run(claimed.key[1], "w2")
    with pytest.raises(StaleEpoch):
        await _hold(office, claimed, CENT)
    async with office.database.transaction() as conn:
        assert (await conn.execute(text("SELECT 1 FROM reservations"))).all() == []
