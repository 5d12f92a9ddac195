"""A run that stops whoever works on it ends in a sentence, not in an endless row of takeovers."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from executor.domain.transition import Reason
from executor.engine.claims import claim_runs
from executor.engine.driver import Crew
from executor.engine.status import newest_runs
from executor.engine.worker import Worker, WorkerTerms
from executor.store import clock, runs
from executor.store.wakeups import listening
from tests.support.clock import move_clock
from tests.support.fake_model import FakeModel
from tests.support.office import TENANT, Office
from tests.support.waiting import until_true

ENDED = "SELECT EXISTS (SELECT FROM runs WHERE ended_at IS NOT NULL)"


async def _abandon(office: Office) -> int:
    """Claim the run as a worker that then dies, let its lease pass, and say who did so before."""
    [claimed] = await claim_runs(office.engine, "doomed", 10)
    async with office.database.transaction() as conn:
        await move_clock(conn, timedelta(seconds=office.engine.durations.lease.ttl_seconds + 1))
    return claimed.takeovers


async def test_takeovers_without_a_step_are_counted_and_a_step_clears_them(office: Office) -> None:
    run_id = await office.start_run()
    assert [await _abandon(office) for _ in range(3)] == [0, 1, 2]
    async with office.database.transaction() as conn:
        step = runs.Step(1, "model", None, {"text": "", "tool_calls": []}, await clock.now(conn))
        await runs.record_step(conn, (TENANT, run_id), step)
    assert await _abandon(office) == 1


async def test_a_run_that_keeps_stopping_its_workers_is_ended(office: Office) -> None:
    run_id = await office.start_run()
    for _ in range(3):
        await _abandon(office)
    crew = Crew(FakeModel([]), office.providers, office.emails)
    terms = WorkerTerms(most_takeovers=3, poll_seconds=0.05)
    async with listening(office.database) as listener:
        worker = Worker(office.engine, crew, listener, "w1", terms)
        working = asyncio.create_task(worker.run())
        await until_true(office.database, ENDED)
        worker.stop()
        await working
    [line] = await newest_runs(office.engine, TENANT)
    assert (line.id, line.reason) == (run_id, Reason.KEEPS_FAILING)
