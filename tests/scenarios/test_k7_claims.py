"""K7: claims, leases, double execution; B080, B081 and B096 are in tests/engine/test_worker.py."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from executor.engine.engine import Engine
from executor.engine.opening import NotOpened
from executor.engine.reconciler import reconcile
from executor.engine.status import history, newest_runs, one_run
from executor.engine.sweeper import sweep
from executor.engine.waking import wake
from tests.support.failpoints import Crashed, Gate, Trap
from tests.support.fake_mail import applied, unknown
from tests.support.office import TENANT, Office, closing
from tests.support.waiting import another_pool, until_blocked
from tests.support.working import Working


class _ClockOff:
    """A host whose clocks are minutes away from the database's."""

    def __init__(self, by: timedelta) -> None:
        self._by = by

    def boottime(self) -> float:
        return 1_000.0 + self._by.total_seconds()

    def wall(self) -> datetime:
        return datetime.now(UTC) + self._by


async def test_b082_a_sweep_that_slept_does_not_overwrite_what_was_stored_meanwhile(
    office: Office, database_url: str
) -> None:
    claimed, opened = await office.opened()
    await office.later(minutes=1)
    gate = Gate("report.before")
    async with another_pool(database_url) as pool:
        reporting = asyncio.create_task(
            office.colleague(pool, failpoints=gate).report(claimed, opened, applied())
        )
        await gate.reached.wait()
        sweeping = asyncio.create_task(sweep(office.engine))
        await until_blocked(database_url)
        gate.open()
        await asyncio.gather(reporting, sweeping)
    assert await office.status(claimed.claim.key[1]) == "succeeded"


async def test_b085_a_sweep_that_died_half_way_leaves_nothing_in_the_way(office: Office) -> None:
    claimed, _ = await office.opened()
    await office.later(minutes=1)
    dying = office.colleague(failpoints=Trap("reconcile.before"))
    try:
        await reconcile(dying.engine)
    except Crashed as error:
        raise AssertionError("a sweep reports and goes on") from error
    assert await office.status(claimed.claim.key[1]) == "executing"
    await sweep(office.engine)
    assert await office.status(claimed.claim.key[1]) == "unknown"


async def test_b086_a_lease_is_judged_by_the_database_whatever_the_hosts_clock(
    office: Office,
) -> None:
    await office.claimed(owner="w1")
    for minutes in (5, -5):
        clock = _ClockOff(timedelta(minutes=minutes))
        engine = Engine(office.database, clock, office.engine.mint, office.engine.durations)
        other = Office(office.database, engine, office.mail, office.emails)
        assert await other.claim_operations("w2") == []
    await office.later(seconds=31)
    assert len(await other.claim_operations("w2")) == 1


async def test_b087_a_start_and_a_recovery_at_once_claim_each_run_once(
    office: Office, database_url: str
) -> None:
    async with another_pool(database_url) as pool:
        colleague = office.colleague(pool)
        for _ in range(20):
            await asyncio.gather(
                office.start_run(), colleague.claim_run_if_any(), office.claim_run_if_any()
            )
        await office.claim_run_if_any()
    epochs = await office.rows("SELECT status, lease_epoch FROM runs")
    assert epochs == [("running", 1)] * 20


async def test_b089_two_recoveries_at_the_moment_of_the_decision_agree(
    office: Office, database_url: str
) -> None:
    working = await Working.propose(office, closing())
    await working.drive()
    await office.show()
    [operation] = await working.operations()
    async with another_pool(database_url) as pool:
        colleague = office.colleague(pool)
        await asyncio.gather(office.click(operation), wake(office.engine), wake(colleague.engine))
        claims = await asyncio.gather(
            office.claim_operations("w1"), colleague.claim_operations("w2")
        )
    assert sum(len(claimed) for claimed in claims) == 1
    assert await office.run_status(working.run_id) == "waiting"


async def test_b090_a_far_deadline_passes_once_over_any_number_of_restarts(
    office: Office,
) -> None:
    working = await Working.propose(office, closing())
    await working.drive()
    await office.show()
    for _ in range(5):
        await office.later(hours=4)
        await sweep(office.colleague().engine)
    await office.later(hours=5)
    for _ in range(3):
        await sweep(office.engine)
    await working.drive()
    events = await office.events(working.run_id)
    assert sum(event == "time_ran_out" for event, _, _ in events) == 1
    assert [result["status"] for result in await working.told()] == ["expired"]


async def test_b093_evidence_that_comes_after_an_error_still_counts(office: Office) -> None:
    claimed, opened = await office.opened()
    await office.report(claimed, opened, unknown())
    assert await office.report(claimed, opened, applied(), actor="lookup") == "succeeded"
    evidence = await office.rows(
        "SELECT detail -> 'evidence' FROM journal WHERE event = 'reported'"
    )
    assert len(evidence) == 2


async def test_b095_no_second_send_starts_while_the_first_may_still_arrive(
    office: Office,
) -> None:
    claimed, opened = await office.opened()
    operation = claimed.claim.key[1]
    await office.report(claimed, opened, unknown())
    await office.later(hours=1)
    await sweep(office.engine)
    assert await office.claim_operations("w2") == []
    assert await office.report(claimed, opened, applied()) == "succeeded"
    assert await office.rows("SELECT count(*) FROM attempts") == [(1,)]
    assert await office.status(operation) == "succeeded"


async def test_b098_looking_at_a_run_keeps_nothing_alive(office: Office) -> None:
    claimed, _ = await office.opened()
    run_id = await office.run_of(claimed.claim.key[1])
    leased = "SELECT lease_until FROM operations"
    before = await office.rows(leased)
    [line] = await newest_runs(office.engine, TENANT)
    await one_run(office.engine, TENANT, line.number)
    await history(office.engine, TENANT, run_id)
    assert await office.rows(leased) == before
    await office.later(minutes=1)
    successor = await office.claim_operation(claimed.claim.key[1], "w2")
    assert isinstance(await office.open_one(successor), NotOpened)
    await sweep(office.engine)
    assert await office.status(claimed.claim.key[1]) == "unknown"
