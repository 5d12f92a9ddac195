"""The reference job by a worker: propose, show, approve, open, send once, tell."""

from __future__ import annotations

import asyncio

from executor.domain.ids import OperationId, RunId
from executor.engine.driver import Crew
from executor.engine.ports import ModelPort
from executor.engine.status import history, newest_runs
from executor.engine.worker import Worker, WorkerTerms
from executor.store.database import Database
from executor.store.wakeups import listening
from tests.support.office import RENE, TENANT, Office
from tests.support.waiting import until_true


async def close_a_ticket(office: Office, database: Database, model: ModelPort) -> None:
    """Have a ticket closed with ``model``; its mail is sent once, and the record holds."""
    run_id, operation = await work_to_its_end(office, database, model)
    assert await office.status(operation) == "succeeded"
    assert office.mail.accepted == 1
    [line] = await newest_runs(office.engine, TENANT)
    assert line.status == "succeeded"
    assert (await history(office.engine, TENANT, run_id)).broken is None


async def work_to_its_end(
    office: Office, database: Database, model: ModelPort
) -> tuple[RunId, OperationId]:
    """Let a worker close a ticket with ``model``; whoever may approves what it proposes."""
    crew = Crew(model, office.providers, office.emails)
    async with listening(database) as listener:
        worker = Worker(office.engine, crew, listener, "w1", WorkerTerms(poll_seconds=0.1))
        working = asyncio.create_task(worker.run())
        run_id = await office.start_run("close 4101")
        await until_true(database, "SELECT count(*) = 1 FROM approvals")
        await office.show()
        [(operation,)] = await office.rows("SELECT id FROM operations")
        await office.click(operation, RENE)
        await until_true(database, "SELECT bool_and(ended_at IS NOT NULL) FROM runs")
        worker.stop()
        await working
    return run_id, operation
