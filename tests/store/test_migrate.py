"""The schema moves forward only, once, in order, and is never guessed at."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from sqlalchemy import text

from executor.store.database import Database
from executor.store.migrate import (
    MigrationRefused,
    migrate,
    numbered,
    packaged_migrations,
    pending,
)

_TWO = numbered(
    [
        ("0001_notes.sql", "CREATE TABLE notes (id integer); SELECT pg_sleep(0.1);"),
        ("0002_replies.sql", "CREATE TABLE replies (id integer);"),
    ]
)
_FILES = ["0001_notes.sql", "0002_replies.sql"]


@pytest.fixture
async def empty(empty_database_url: str) -> AsyncIterator[Database]:
    """A database without any schema."""
    database = Database.connect(empty_database_url, application_name="test")
    yield database
    await database.dispose()


async def _tables(database: Database) -> list[str]:
    async with database.transaction() as conn:
        rows = await conn.execute(
            text("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1")
        )
        return list(rows.scalars())


async def test_missing_files_are_applied_in_order_and_a_second_run_applies_none(
    empty: Database,
) -> None:
    assert await migrate(empty, _TWO[:1]) == _FILES[:1]
    assert await migrate(empty, _TWO) == _FILES[1:]
    assert await migrate(empty, _TWO) == []
    assert await _tables(empty) == ["notes", "replies", "schema_migrations"]


async def test_runners_that_start_at_once_apply_each_file_once(empty: Database) -> None:
    applied = await asyncio.gather(*(migrate(empty, _TWO) for _ in range(4)))
    assert sorted(file for files in applied for file in files) == _FILES


async def test_a_file_that_fails_leaves_nothing_and_is_named(empty: Database) -> None:
    broken = replace(_TWO[1], sql="CREATE TABLE replies (id integer); SELECT 1 / 0;")
    with pytest.raises(Exception, match="division by zero") as failure:
        await migrate(empty, [_TWO[0], broken])
    assert "0002_replies.sql" in str(failure.value.__notes__)
    assert await _tables(empty) == ["notes", "schema_migrations"]
    assert await migrate(empty, _TWO) == _FILES[1:]


async def test_a_runner_that_died_does_not_hold_up_the_next(empty: Database) -> None:
    endless = replace(_TWO[1], sql="SELECT pg_sleep(600)")
    dying = asyncio.ensure_future(migrate(empty, [_TWO[0], endless]))
    while "notes" not in await _tables(empty):
        assert not dying.done()
    dying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await dying
    async with asyncio.timeout(10):
        assert await migrate(empty, _TWO) == _FILES[1:]


async def test_a_file_changed_after_it_was_applied_is_refused_with_the_remedy(
    empty: Database,
) -> None:
    await migrate(empty, _TWO)
    changed = [replace(_TWO[0], sql=_TWO[0].sql + " "), _TWO[1]]
    for run in (migrate, pending):
        with pytest.raises(MigrationRefused, match=r"0001_notes\.sql was changed.*new migration"):
            await run(empty, changed)


async def test_a_database_ahead_of_the_code_is_refused_with_the_remedy(empty: Database) -> None:
    await migrate(empty, _TWO)
    for run in (migrate, pending):
        with pytest.raises(MigrationRefused, match=r"0002_replies.*newer release"):
            await run(empty, _TWO[:1])


async def test_pending_tells_what_is_missing_and_changes_nothing(empty: Database) -> None:
    assert await pending(empty, _TWO) == _FILES
    assert await _tables(empty) == []
    await migrate(empty, _TWO[:1])
    assert await pending(empty, _TWO) == _FILES[1:]
    await migrate(empty, _TWO)
    assert await pending(empty, _TWO) == []


async def test_a_migrated_database_is_up_to_date(database: Database) -> None:
    assert await pending(database) == []
    assert packaged_migrations()[0].file == "0001_clock.sql"


@pytest.mark.parametrize(
    ("files", "complaint"),
    [
        ([("0002_b.sql", "")], "its number must be 0001"),
        ([("0001_a.sql", ""), ("0001_b.sql", "")], "its number must be 0002"),
        ([("1_a.sql", "")], "name a migration like"),
        ([("0001_A.sql", "")], "name a migration like"),
    ],
)
def test_badly_numbered_files_are_refused(files: list[tuple[str, str]], complaint: str) -> None:
    with pytest.raises(MigrationRefused, match=complaint):
        numbered(files)


def test_line_ends_do_not_change_a_checksum() -> None:
    unix, dos = (numbered([("0001_a.sql", f"SELECT 1;{end}")])[0] for end in ("\n", "\r\n"))
    assert unix.checksum == dos.checksum
