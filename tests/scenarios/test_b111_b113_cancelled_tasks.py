"""B111, B112, B113: cancelled tasks leak no connection, hold no lock, leave no hidden transaction.

Sources: sqlalchemy/sqlalchemy#6652, #8145 (B111), #12099 (B112), #13381 (B113).
"""

from __future__ import annotations

import asyncio
import random
import time

import asyncpg
import pytest
from sqlalchemy import text

from executor.store.address import asyncpg_dsn
from executor.store.database import Database


@pytest.fixture
async def worker(database: Database, database_url: str) -> Database:
    """A database with a row to lock and a table to write to; pool size 5, called ``worker``."""
    async with database.transaction() as conn:
        await conn.execute(
            text("CREATE TABLE rehearsals (id integer PRIMARY KEY, touched integer)")
        )
        await conn.execute(text("INSERT INTO rehearsals VALUES (1, 0)"))
        await conn.execute(text("CREATE TABLE rehearsed_approvals (id integer PRIMARY KEY)"))
    return Database.connect(database_url, pool_size=5, application_name="worker")


async def _work(database: Database) -> None:
    async with database.transaction() as conn:
        await conn.execute(text("SELECT set_config('signoff.tenant', 'tenant_1', true)"))
        await conn.execute(text("UPDATE rehearsals SET touched = touched + 1 WHERE id = 1"))
        await conn.execute(text("SELECT pg_sleep(0.002)"))


async def _cancel_at_random_moments(database: Database, count: int, seed: int) -> int:
    """Start ``count`` tasks, cancel each at its own moment, and return how many were cancelled."""
    moments = random.Random(seed)

    async def cancelled_soon() -> bool:
        task = asyncio.ensure_future(_work(database))
        # Some are cancelled before they begin, some in line, some at work, some at COMMIT.
        await asyncio.wait({task}, timeout=moments.choice([0, 0.001, 0.003, 0.01, 0.1]))
        for _ in range(moments.choice([1, 1, 2])):
            task.cancel()
            await asyncio.sleep(0)
        await asyncio.wait({task})
        if not task.cancelled():
            task.result()
        return task.cancelled()

    return sum(await asyncio.gather(*(cancelled_soon() for _ in range(count))))


async def _backends(observer: asyncpg.Connection) -> list[str]:
    rows = await observer.fetch(
        "SELECT state FROM pg_stat_activity "
        "WHERE application_name = 'worker' AND datname = current_database()"
    )
    return [row["state"] for row in rows]


@pytest.mark.parametrize("seed", range(3))
async def test_b111_two_hundred_cancelled_tasks_leak_no_connection(
    worker: Database, database_url: str, seed: int
) -> None:
    cancelled = await _cancel_at_random_moments(worker, 200, seed)
    assert cancelled > 100
    assert worker.connections_in_use == 0
    observer = await asyncpg.connect(dsn=asyncpg_dsn(database_url))
    try:
        deadline = time.monotonic() + 5
        while True:
            states = await _backends(observer)
            if len(states) <= 5 and set(states) <= {"idle"}:
                break
            assert time.monotonic() < deadline, states
        # The pool is whole: five transactions at once still find a connection each.
        await asyncio.gather(*(_work(worker) for _ in range(5)))
        assert len(await _backends(observer)) <= 5
    finally:
        await observer.close()
        await worker.dispose()


@pytest.mark.parametrize("in_the_middle_of", ["a statement", "its own work"])
async def test_b112_a_cancelled_worker_gives_its_row_lock_back_at_once(
    worker: Database, database: Database, in_the_middle_of: str
) -> None:
    locked = asyncio.Event()

    async def hold() -> None:
        async with worker.transaction() as conn:
            await conn.execute(text("SELECT id FROM rehearsals WHERE id = 1 FOR UPDATE"))
            locked.set()
            if in_the_middle_of == "a statement":
                await conn.execute(text("SELECT pg_sleep(600)"))
            await asyncio.Event().wait()

    holding = asyncio.ensure_future(hold())
    await locked.wait()
    await asyncio.sleep(0)
    holding.cancel()
    async with asyncio.timeout(2), database.transaction() as conn:
        await conn.execute(text("SELECT id FROM rehearsals WHERE id = 1 FOR UPDATE"))
    with pytest.raises(asyncio.CancelledError):
        await holding
    await worker.dispose()


async def test_b113_after_a_hundred_cancellations_each_commit_is_seen_at_once(
    worker: Database, database_url: str
) -> None:
    observer = await asyncpg.connect(dsn=asyncpg_dsn(database_url))
    try:
        await _cancel_at_random_moments(worker, 100, seed=113)
        for number in range(100):
            async with worker.transaction() as conn:
                await conn.execute(
                    text("INSERT INTO rehearsed_approvals VALUES (:id)"), {"id": number}
                )
            stored = await observer.fetchval(
                "SELECT true FROM rehearsed_approvals WHERE id = $1", number
            )
            assert stored, f"approval {number} was acknowledged and is not visible"
        # What is acknowledged outlives the death of the worker's connections.
        await observer.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE application_name = 'worker' AND datname = current_database()"
        )
        assert await observer.fetchval("SELECT count(*) FROM rehearsed_approvals") == 100
    finally:
        await observer.close()
        await worker.dispose()
