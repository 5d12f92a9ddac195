"""Waits until PostgreSQL says that somebody waits for a lock; and a second process's pool."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
from sqlalchemy import text

from executor.store.address import asyncpg_dsn
from executor.store.database import Database

_BLOCKED = (
    "SELECT count(*) FROM pg_stat_activity "
    "WHERE datname = current_database() AND wait_event_type = 'Lock'"
)


async def until_blocked(url: str, backends: int = 1, *, timeout_seconds: float = 20) -> None:
    """Wait until ``backends`` connections to the database at ``url`` wait for locks."""
    connection = await asyncpg.connect(dsn=asyncpg_dsn(url))
    try:
        async with asyncio.timeout(timeout_seconds):
            while await connection.fetchval(_BLOCKED) < backends:
                await connection.execute("SELECT pg_sleep(0.005)")
    finally:
        await connection.close()


@asynccontextmanager
async def another_pool(url: str) -> AsyncIterator[Database]:
    """Connect as another process would."""
    database = Database.connect(url, application_name="colleague")
    try:
        yield database
    finally:
        await database.dispose()


async def until_true(
    database: Database, query: str, *, timeout_seconds: float = 20, **binds: object
) -> None:
    """Wait until a query answers with true (or with any other value that counts as such)."""
    async with asyncio.timeout(timeout_seconds):
        while True:
            async with database.transaction() as conn:
                if (await conn.execute(text(query), binds)).scalar():
                    return
                await conn.execute(text("SELECT pg_sleep(0.01)"))
