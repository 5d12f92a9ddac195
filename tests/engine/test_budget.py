"""TM: money is held before each call and charged to the actual; no concurrency makes more of it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest
from sqlalchemy import text

from executor.domain.budget import Account, Event, LoseSight, Settle, Void
from executor.domain.errors import StaleEpoch
from executor.domain.transition import Reason, Refused
from executor.engine.budget import reserve
from executor.engine.charging import charge_alone
from executor.engine.claims import ClaimedRun
from executor.engine.purse import Ask, Held
from executor.engine.setup import activate_policy
from executor.engine.sweeper import sweep
from executor.store import budgets, clock, statements
from executor.store.statements import statement
from tests.support.clock import move_clock
from tests.support.office import TENANT, Office, policy
from tests.support.waiting import another_pool, until_blocked

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
    await _charge(office, await _hold(office, claimed, 4 * CENT), LoseSight())
    await _charge(office, await _hold(office, claimed, CENT), Settle(CENT))
    await _hold(office, claimed, 5 * CENT)
    refused = await _hold(office, claimed, 5 * CENT)
    assert isinstance(refused, Refused)
    assert refused.reason is Reason.BUDGET_LIMIT
    detail = dict(refused.detail)
    if scope == "day":
        today, renews = str(detail.pop("day")), str(detail.pop("renews_at"))
        tomorrow = date.fromisoformat(today) + timedelta(days=1)
        assert renews == f"{tomorrow.isoformat()}T00:00:00+00:00"
    assert detail == {
        "limit": scope,
        "asked_microusd": 5 * CENT,
        "left_microusd": 2 * CENT,
        "limit_microusd": 12 * CENT,
        "spent_microusd": CENT,
        "held_microusd": 9 * CENT,
        "unknown_microusd": 4 * CENT,
    }


async def test_the_days_limit_is_the_active_policys_and_what_was_added_to_that_day(
    office: Office,
) -> None:
    claimed = await _run(office, day_limit=10 * CENT)
    assert isinstance(await _hold(office, claimed, 10 * CENT), Held)
    assert isinstance(await _hold(office, claimed, 1), Refused)
    await activate_policy(office.engine, policy(budget={"day_microusd": 12 * CENT}))
    assert isinstance(await _hold(office, claimed, 2 * CENT), Held)
    await activate_policy(office.engine, policy(budget={"day_microusd": 5 * CENT}))
    assert isinstance(await _hold(office, claimed, 0), Refused)
    [(day,)] = await office.rows("SELECT day FROM tenant_days WHERE held_microusd > 0")
    async with office.database.transaction() as conn:
        await budgets.raise_day(conn, TENANT, day, 10 * CENT)
        account = await budgets.account_of_day(conn, TENANT, day, 5 * CENT)
    assert account == Account(15 * CENT, 0, 12 * CENT)
    assert isinstance(await _hold(office, claimed, 3 * CENT), Held)
    assert isinstance(await _hold(office, claimed, 1), Refused)
    await office.later_unseen(days=1)
    assert isinstance(await _hold(office, claimed, 6 * CENT), Refused)
    assert isinstance(await _hold(office, claimed, 5 * CENT), Held)


async def test_a_runs_limit_is_raised_once_from_what_was_looked_at(office: Office) -> None:
    claimed = await _run(office, run_limit=5 * CENT)
    run_id = claimed.key[1]
    raised = []
    for _ in range(2):
        async with office.database.transaction() as conn:
            raised.append(
                await budgets.raise_run(
                    conn, TENANT, run_id, from_limit=5 * CENT, to_limit=8 * CENT
                )
            )
    assert raised == [True, False]
    # It binds this run for good: a policy that came later is for runs that are started later.
    await activate_policy(office.engine, policy(budget={"run_microusd": CENT}))
    assert isinstance(await _hold(office, claimed, 8 * CENT), Held)
    async with office.database.transaction() as conn:
        account = await budgets.account_of_run(conn, TENANT, run_id)
    assert account == Account(8 * CENT, 0, 8 * CENT)


async def test_what_is_unknown_is_listed_and_what_is_under_way_is_not(office: Office) -> None:
    claimed = await _run(office)
    held, _ = [await _hold(office, claimed, 5 * CENT) for _ in range(2)]
    assert isinstance(held, Held)
    await _charge(office, held, LoseSight())
    async with office.database.transaction() as conn:
        [unknown] = await budgets.unknown_charges(conn, TENANT)
        [of_run] = await budgets.unknown_charges(conn, TENANT, claimed.key[1], unknown.day)
        other_day = unknown.day + timedelta(days=1)
        assert await budgets.unknown_charges(conn, TENANT, day=other_day) == []
    assert of_run == unknown
    assert (unknown.id, unknown.amount_microusd) == (held.reservation_id, 5 * CENT)


_LOCKED = "FOR UPDATE OF d"


@pytest.mark.parametrize("locked", [True, False])
async def test_the_lock_on_the_day_is_what_keeps_two_runs_below_its_limit(
    office: Office, database_url: str, monkeypatch: pytest.MonkeyPatch, locked: bool
) -> None:
    if not locked:
        real = statement("lock_tenant_days")
        assert _LOCKED in real.sent
        unlocked = replace(real, sent=real.sent.replace(_LOCKED, ""))
        monkeypatch.setattr(
            statements, "statement", lambda name: unlocked if name == real.name else statement(name)
        )
    first = await _run(office, day_limit=10 * CENT)
    second = await office.claim_run(await office.start_run())
    # Whoever begins a day makes others wait for its row in any case.
    await _hold(office, first, 0)
    async with another_pool(database_url) as pool:
        async with pool.transaction() as conn:
            # The first has read what is left by then, and has written nothing yet.
            head = "SELECT 1 FROM journal_heads WHERE subject = :run FOR UPDATE"
            await conn.execute(text(head), {"run": first.key[1]})
            one = asyncio.create_task(_hold(office, first, 6 * CENT))
            await until_blocked(database_url)
            two = asyncio.create_task(_hold(office, second, 6 * CENT))
            if locked:
                await until_blocked(database_url, 2)
            else:
                await two
        results = await asyncio.gather(one, two)
    assert [type(r) for r in results] == [Held, Refused if locked else Held]


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
