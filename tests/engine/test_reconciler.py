"""T6: the attempt's own last moment counts and not the lease; an answer that comes first wins."""

from __future__ import annotations

import asyncio

from sqlalchemy import text

from executor.engine.reconciler import reconcile
from executor.engine.sweeper import sweep
from executor.store import operation_leases, operations
from tests.support.failpoints import Gate
from tests.support.fake_mail import applied
from tests.support.office import Office
from tests.support.waiting import another_pool, until_blocked


async def test_an_attempt_without_an_answer_becomes_unknown_after_its_last_moment(
    office: Office,
) -> None:
    claimed, opened = await office.opened()
    last = (opened.attempt.conclude_at - opened.attempt.opened_at).total_seconds()
    await office.later(seconds=last - 5)
    assert await reconcile(office.engine) == 0
    await office.later(seconds=6)
    assert await reconcile(office.engine) == 1
    assert await office.status(claimed.claim.key[1]) == "unknown"
    assert await reconcile(office.engine) == 0


async def test_a_worker_that_lost_its_call_and_goes_on_beating_does_not_delay_the_truth(
    office: Office,
) -> None:
    claimed, _ = await office.opened()
    await office.later(minutes=1)
    async with office.database.transaction() as conn:
        row = (await operations.lock(conn, [claimed.claim.key]))[claimed.claim.key]
        assert row.lease_owner == "w1"
        now = await conn.execute(text("SELECT signoff_clock() + interval '1 hour'"))
        assert await operation_leases.renew(
            conn,
            claimed.claim.key,
            owner="w1",
            epoch=claimed.claim.epoch,
            until=now.scalar_one(),
        )
    assert await reconcile(office.engine) == 1
    assert await office.status(claimed.claim.key[1]) == "unknown"


async def test_an_answer_that_comes_first_wins(office: Office, database_url: str) -> None:
    claimed, opened = await office.opened()
    await office.later(minutes=1)
    gate = Gate("report.before")
    async with another_pool(database_url) as second:
        reporting = office.colleague(second, failpoints=gate)
        fact = asyncio.create_task(reporting.report(claimed, opened, applied()))
        await gate.reached.wait()
        sweeping = asyncio.create_task(reconcile(office.engine))
        await until_blocked(database_url)
        gate.open()
        assert await fact == "succeeded"
        await sweeping
    assert await office.status(claimed.claim.key[1]) == "succeeded"


async def test_an_answer_that_comes_second_is_still_recorded(office: Office) -> None:
    claimed, opened = await office.opened()
    await office.later(minutes=1)
    await reconcile(office.engine)
    assert await office.report(claimed, opened, applied()) == "succeeded"


async def test_one_record_that_cannot_be_moved_does_not_keep_the_others_in_the_dark(
    office: Office,
) -> None:
    claims = [(await office.opened(ticket))[0] for ticket in ("4101", "4102")]
    bad, good = (claimed.claim.key[1] for claimed in claims)
    run_id = await office.run_of(bad)
    await office.later(minutes=1)
    shift = "UPDATE journal_heads SET position = position + :by WHERE subject = :run"
    async with office.database.transaction() as conn:
        await conn.execute(text(shift), {"run": run_id, "by": -1})
    await sweep(office.engine)
    assert [await office.status(o) for o in (bad, good)] == ["executing", "unknown"]
    async with office.database.transaction() as conn:
        await conn.execute(text(shift), {"run": run_id, "by": 1})
    await sweep(office.engine)
    assert await office.status(bad) == "unknown"
