"""Workers beside each other: each piece of work is one worker's; a death costs a lease at most."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from sqlalchemy import text

from executor.domain.lease import LeaseTerms
from executor.engine.claims import claim_operations, claim_runs
from executor.engine.driver import Crew
from executor.engine.engine import Durations
from executor.engine.ports import ModelPort
from executor.engine.sweeper import sweep
from executor.engine.worker import Worker, WorkerTerms
from executor.store.database import Database
from executor.store.wakeups import listening
from tests.support.fake_mail import applied
from tests.support.fake_model import FakeModel, calls, says
from tests.support.office import Office
from tests.support.waiting import another_pool, until_true

SHORT_LEASE = Durations(
    lease=LeaseTerms(ttl_seconds=2.0, margin_seconds=0.2, heartbeat_seconds=0.3),
    first_byte_seconds=1.0,
    clock_allowance_seconds=1.0,
    retry_seconds=1.0,
)
READ = says("", calls("read_ticket", {"ticket_id": "4101"}))
ALL_ENDED = "SELECT NOT EXISTS (SELECT FROM operations WHERE ended_at IS NULL)"
RENEWED = "SELECT lease_until > created_at + interval '8 seconds' FROM {} LIMIT 1"


@asynccontextmanager
async def _at_work(
    office: Office,
    owner: str,
    *,
    model: ModelPort | None = None,
    grace_seconds: float = 10.0,
) -> AsyncIterator[Worker]:
    """Run a worker; leaving the block stops it, with ``grace_seconds`` for what it holds."""
    crew = Crew(model or FakeModel([]), office.providers, office.emails)
    terms = WorkerTerms(grace_seconds=grace_seconds, poll_seconds=0.05)
    async with listening(office.database) as listener:
        worker = Worker(office.engine, crew, listener, owner, terms)
        working = asyncio.create_task(worker.run())
        try:
            yield worker
        finally:
            worker.stop()
            await working


async def test_b096_two_workers_send_each_of_twenty_once(office: Office, database_url: str) -> None:
    await office.approved_many(20)
    async with (
        another_pool(database_url) as pool,
        _at_work(office, "w1"),
        _at_work(office.colleague(pool), "w2"),
    ):
        await until_true(office.database, ALL_ENDED)
    assert office.mail.accepted == 20
    assert len({mail.payload for mail in office.mail.sent}) == 20
    assert await office.rows("SELECT count(*), max(number) FROM attempts") == [(20, 1)]


async def test_claims_take_what_is_free_and_skip_what_somebody_holds(
    office: Office, database_url: str
) -> None:
    await office.approved_many(6)
    async with another_pool(database_url) as pool:
        engines = [office.engine, office.colleague(pool).engine]
        claimed = await asyncio.gather(
            *(claim_operations(engines[n % 2], f"w{n}", 2) for n in range(4))
        )
    keys = [c.claim.key for claims in claimed for c in claims]
    assert len(keys) == len(set(keys)) == 6
    assert all(c.claim.epoch == 1 for claims in claimed for c in claims)


async def test_runs_are_claimed_once(office: Office, database_url: str) -> None:
    for _ in range(6):
        await office.start_run()
    async with another_pool(database_url) as pool:
        engines = [office.engine, office.colleague(pool).engine]
        claimed = await asyncio.gather(*(claim_runs(engines[n % 2], f"w{n}", 2) for n in range(4)))
    keys = [c.key for claims in claimed for c in claims]
    assert len(keys) == len(set(keys)) == 6


async def test_b080_a_call_four_leases_long_is_nobody_elses(
    database: Database, database_url: str
) -> None:
    office = await Office.open(database, durations=SHORT_LEASE)
    office.mail.gate = asyncio.Event()
    office.mail.longest_request_seconds = 60.0
    await office.approved()
    async with another_pool(database_url) as pool, _at_work(office, "w1"):
        await office.mail.arrived.wait()
        async with _at_work(office.colleague(pool), "w2"):
            await until_true(database, RENEWED.format("operations"))
        office.mail.gate.set()
        await until_true(database, ALL_ENDED)
    assert office.mail.accepted == 1
    assert await office.rows("SELECT status, lease_epoch FROM operations") == [("succeeded", 1)]


async def test_b081_a_model_call_four_leases_long_is_made_once(
    database: Database, database_url: str
) -> None:
    office = await Office.open(database, durations=SHORT_LEASE)
    model = FakeModel([says("Done.")], held=True)
    await office.start_run()
    async with another_pool(database_url) as pool, _at_work(office, "w1", model=model):
        await model.wait_called()
        async with _at_work(office.colleague(pool), "w2", model=model):
            await until_true(database, RENEWED.format("runs"))
            await sweep(office.engine)
        model.release()
        await until_true(database, "SELECT bool_and(ended_at IS NOT NULL) FROM runs")
    assert model.called == 1
    assert await office.rows("SELECT status FROM reservations") == [("settled",)]


async def test_many_calls_shorter_than_a_heartbeat_do_not_outlast_the_lease(
    database: Database, database_url: str
) -> None:
    office = await Office.open(database, durations=SHORT_LEASE)
    model = FakeModel([READ] * 12 + [says("Done.")], held=True)
    await office.start_run()
    passed = "SELECT pg_sleep(0.2) IS NOT NULL"
    async with another_pool(database_url) as pool:
        colleague = office.colleague(pool)
        async with _at_work(office, "w1", model=model), _at_work(colleague, "w2", model=model):
            for number in range(1, 14):
                await model.wait_called(number)
                await until_true(database, passed)
                model.release()
            await until_true(database, "SELECT bool_and(ended_at IS NOT NULL) FROM runs")
    assert model.called == 13
    assert await office.rows("SELECT status, lease_epoch FROM runs") == [("succeeded", 1)]


async def test_a_worker_that_died_in_a_call_leaves_the_truth_to_be_told_and_sends_nothing_again(
    office: Office, database_url: str
) -> None:
    office.mail.gate = asyncio.Event()
    await office.approved()
    async with _at_work(office, "w1", grace_seconds=0.01):
        await office.mail.arrived.wait()
    assert await office.rows("SELECT status FROM attempts") == [("dispatched",)]
    office.mail.gate.set()
    await office.later(seconds=31)
    async with another_pool(database_url) as pool, _at_work(office.colleague(pool), "w2"):
        await until_true(office.database, "SELECT lease_owner = 'w2' FROM operations")
        await sweep(office.engine)
        await until_true(office.database, "SELECT status = 'unknown' FROM operations")
    assert office.mail.accepted == 1


async def test_a_run_whose_worker_died_is_taken_when_its_lease_ends(
    office: Office, database_url: str
) -> None:
    model = FakeModel([says("Lost."), says("Done.")], held=True)
    run_id = await office.start_run()
    async with _at_work(office, "w1", model=model, grace_seconds=0.01):
        await model.wait_called(1)
    assert model.cancelled == 1
    assert await claim_runs(office.engine, "w2", 10) == []
    await office.later(seconds=31)
    model.release()
    async with (
        another_pool(database_url) as pool,
        _at_work(office.colleague(pool), "w2", model=model),
    ):
        await until_true(office.database, "SELECT ended_at IS NOT NULL FROM runs")
    assert await office.run_status(run_id) == "succeeded"
    await office.later(minutes=3)
    await sweep(office.engine)
    counts = await office.rows("SELECT status FROM reservations ORDER BY status")
    assert counts == [("settled",), ("unknown",)]


@pytest.mark.parametrize(("grace", "status"), [(20.0, "succeeded"), (0.01, "executing")])
async def test_b119_a_stop_lets_a_call_end_in_its_grace_and_never_sends_again(
    office: Office, grace: float, status: str
) -> None:
    office.mail.gate = asyncio.Event()
    operation = await office.approved()
    async with _at_work(office, "w1", grace_seconds=grace) as worker:
        await office.mail.arrived.wait()
        worker.stop()
        if status == "succeeded":
            office.mail.gate.set()
    assert await office.status(operation) == status
    await office.later(minutes=2)
    await sweep(office.engine)
    async with _at_work(office, "w2"):
        await until_true(office.database, "SELECT status <> 'executing' FROM operations")
    assert await office.status(operation) == {"executing": "unknown"}.get(status, status)
    assert office.mail.accepted == 1


async def test_a_stopped_worker_hands_its_run_back_between_two_steps(office: Office) -> None:
    model = FakeModel([READ], held=True)
    await office.start_run()
    async with _at_work(office, "w1", model=model) as worker:
        await model.wait_called()
        worker.stop()
        model.release()
    [row] = await office.rows("SELECT status, lease_owner, due_at <= signoff_clock() FROM runs")
    assert row == ("running", None, True)
    assert await office.rows("SELECT count(*) FROM steps") == [(1,)]


async def test_a_record_that_cannot_be_woken_for_does_not_stop_the_worker(office: Office) -> None:
    claimed, opened = await office.opened("4102")
    run_id = await office.run_of(claimed.claim.key[1])
    await office.cancel(run_id)
    await office.report(claimed, opened, applied())
    shift = text("UPDATE journal_heads SET position = position + :by WHERE subject = :run")
    async with office.database.transaction() as conn:
        await conn.execute(shift, {"by": -1, "run": run_id})
    operation = await office.approved("4101")
    async with _at_work(office, "w1"):
        done = "SELECT status = 'succeeded' FROM operations WHERE id = :id"
        await until_true(office.database, done, id=operation)
    assert await office.run_status(run_id) == "cancelling"
    async with office.database.transaction() as conn:
        await conn.execute(shift, {"by": 1, "run": run_id})
    await sweep(office.engine)
    assert await office.run_status(run_id) == "cancelled"
