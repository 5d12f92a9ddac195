"""The clock is the database's; tests move it, and nobody moves it by accident."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from executor.store import clock
from executor.store.database import Database
from tests.support.clock import move_clock, set_clock_offset


async def test_the_clock_tells_the_time_of_the_server_with_its_zone(database: Database) -> None:
    async with database.transaction() as conn:
        moment = await clock.now(conn)
    assert abs(moment - datetime.now(UTC)) < timedelta(seconds=5)


async def test_the_clock_goes_on_inside_one_transaction(database: Database) -> None:
    async with database.transaction() as conn:
        first = await clock.now(conn)
        await conn.execute(text("SELECT pg_sleep(0.01)"))
        assert await clock.now(conn) - first >= timedelta(milliseconds=10)


async def test_the_planner_may_not_read_the_clock_ahead_of_its_time(database: Database) -> None:
    query = "SELECT provolatile FROM pg_proc WHERE proname = 'signoff_clock'"
    async with database.transaction() as conn:
        assert (await conn.execute(text(query))).scalar_one() in {"v", b"v"}


async def test_a_moved_clock_is_seen_by_every_connection_and_adds_up(database: Database) -> None:
    for _ in range(2):
        async with database.transaction() as conn:
            await move_clock(conn, timedelta(days=1))
    async with database.transaction() as first, database.transaction() as second:
        for conn in (first, second):
            moved = await clock.now(conn) - datetime.now(UTC)
            assert timedelta(days=2) - moved < timedelta(seconds=5)
    async with database.transaction() as conn:
        await set_clock_offset(conn, timedelta())
        assert abs(await clock.now(conn) - datetime.now(UTC)) < timedelta(seconds=5)


async def test_a_clock_moved_while_another_transaction_is_open_is_seen_there(
    database: Database,
) -> None:
    async with database.transaction() as waiting:
        before = await clock.now(waiting)
        async with database.transaction() as conn:
            await move_clock(conn, timedelta(hours=1))
        assert await clock.now(waiting) - before >= timedelta(hours=1)


async def test_a_session_that_did_not_ask_for_it_cannot_move_the_clock(database: Database) -> None:
    with pytest.raises(DBAPIError, match="may not be moved"):
        async with database.transaction() as conn:
            await conn.execute(text("INSERT INTO clock_offset (moved) VALUES (interval '1 day')"))
