"""Sixty-four runs, two processes, money for ten calls: ten calls are made, and no eleventh."""

from __future__ import annotations

import asyncio
import multiprocessing
import traceback
from multiprocessing.connection import Connection
from threading import Barrier
from typing import Any

from executor.adapters.host_clock import SystemClock, mint_id
from executor.engine.closure_email import ClosureEmails
from executor.engine.driver import Crew
from executor.engine.engine import Engine
from executor.engine.start import Started, StartRequest, start
from executor.engine.worker import Worker
from executor.store.database import Database
from executor.store.wakeups import listening
from tests.support import invariants
from tests.support.fake_mail import FakeMail
from tests.support.fake_model import FakeModel, says
from tests.support.office import RIKO, SHORT, TENANT, Office, policy
from tests.support.waiting import until_true

RUNS, CALLS = 64, 10
COST = 1_000
OWNERS = ("w1", "w2")
NOBODY_WORKS = """
SELECT NOT EXISTS (SELECT FROM runs WHERE driven AND status IN ('queued', 'running'))
"""
_LONGEST_SECONDS = 90.0
# Forked by a process that has imported everything and has no threads.
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload([__name__])


async def test_sixty_four_runs_make_the_ten_calls_that_there_is_money_for(
    database: Database, database_url: str
) -> None:
    active = policy(budget={"day_microusd": CALLS * COST}, admission={"max_active_runs": RUNS})
    office = await Office.open(database, active=active)
    wishes = [StartRequest(TENANT, RIKO, "g", str(number), {}) for number in range(RUNS)]
    started = await start(office.engine, wishes)
    assert [type(one) for one in started] == [Started] * RUNS
    made = await asyncio.to_thread(_work_in_processes, database_url)
    assert sum(made) == CALLS
    counted = "SELECT count(*) FROM runs WHERE driven AND status = 'succeeded'"
    assert await office.rows(counted) == [(CALLS,)]
    accounts = "SELECT spent_microusd, held_microusd FROM tenant_days WHERE spent_microusd > 0"
    assert await office.rows(accounts) == [(CALLS * COST, 0)]
    claimed = "SELECT DISTINCT actor FROM journal WHERE actor LIKE 'w_' ORDER BY actor"
    assert await office.rows(claimed) == [(owner,) for owner in OWNERS]
    await invariants.check(database)


def _work_in_processes(url: str) -> list[int]:
    """Let two processes work until nothing is left, and return how often each asked a model."""
    barrier = _FORKS.Barrier(len(OWNERS), timeout=_LONGEST_SECONDS)
    processes, answers = [], []
    try:
        for owner in OWNERS:
            receiving, sending = _FORKS.Pipe(duplex=False)
            process = _FORKS.Process(target=_run, args=(url, owner, barrier, sending), daemon=True)
            process.start()
            sending.close()
            processes.append(process)
            answers.append(receiving)
        return [_made(answer) for answer in answers]
    finally:
        for process in processes:
            process.kill()
            process.join()
            process.close()


def _made(answer: Connection[Any, Any]) -> int:
    with answer:
        made = answer.recv() if answer.poll(_LONGEST_SECONDS) else "it is not done yet"
    assert isinstance(made, int), made
    return made


def _run(url: str, owner: str, barrier: Barrier, answering: Connection[Any, Any]) -> None:
    try:
        made: object = asyncio.run(_work(url, owner, barrier))
    except BaseException:
        barrier.abort()
        made = traceback.format_exc()
    answering.send(made)


async def _work(url: str, owner: str, barrier: Barrier) -> int:
    database = Database.connect(url, application_name=owner)
    model = FakeModel([says("Done.", cost_microusd=COST)] * RUNS, worst_case_microusd=COST)
    office = Office(
        database, Engine(database, SystemClock(), mint_id, SHORT), FakeMail(), ClosureEmails()
    )
    crew = Crew(model, office.providers, office.emails)
    try:
        async with listening(database) as listener:
            worker = Worker(office.engine, crew, listener, owner)
            barrier.wait()
            working = asyncio.create_task(worker.run())
            await until_true(database, NOBODY_WORKS, timeout_seconds=_LONGEST_SECONDS)
            worker.stop()
            await working
    finally:
        await database.dispose()
    return model.called
