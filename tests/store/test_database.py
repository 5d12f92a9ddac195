"""A transaction is committed, or nothing of it was kept, or its caller learns that nobody knows."""

from __future__ import annotations

import asyncio
import time

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from executor.domain.errors import CommitUnknown, DatabaseUnavailable, DuplicateKey
from executor.store.database import Database
from executor.store.transaction import Patience
from tests.support.tcp_proxy import TcpProxy, tcp_proxy

_QUICK = Patience(
    connect_seconds=1.0,
    pool_seconds=0.5,
    lock_seconds=0.5,
    statement_seconds=0.5,
    idle_in_transaction_seconds=5.0,
    answer_margin_seconds=0.5,
    rollback_seconds=0.5,
)


@pytest.fixture
async def notes(database: Database) -> Database:
    """A database with one table, in which nothing is unique but ``id``."""
    async with database.transaction() as conn:
        await conn.execute(text("CREATE TABLE notes (id integer CONSTRAINT one_note PRIMARY KEY)"))
        await conn.execute(
            text(
                "CREATE TABLE replies (note integer CONSTRAINT answers_a_note REFERENCES notes (id)"
                " DEFERRABLE INITIALLY DEFERRED)"
            )
        )
    return database


async def _insert(database: Database, number: int) -> None:
    async with database.transaction() as conn:
        await conn.execute(text("INSERT INTO notes VALUES (:id)"), {"id": number})


async def _stored(database: Database) -> list[int]:
    async with database.transaction() as conn:
        return list((await conn.execute(text("SELECT id FROM notes ORDER BY id"))).scalars())


async def test_a_block_that_ends_well_is_committed_at_read_committed(notes: Database) -> None:
    async with notes.transaction() as conn:
        await conn.execute(text("INSERT INTO notes VALUES (1)"))
        level = (await conn.execute(text("SHOW transaction_isolation"))).scalar_one()
    assert level == "read committed"
    assert await _stored(notes) == [1]


async def test_a_block_that_fails_keeps_nothing(notes: Database) -> None:
    with pytest.raises(RuntimeError, match="on purpose"):
        async with notes.transaction() as conn:
            await conn.execute(text("INSERT INTO notes VALUES (1)"))
            raise RuntimeError("on purpose")
    assert await _stored(notes) == []
    assert notes.connections_in_use == 0


async def test_an_ordinary_error_costs_no_connection(database_url: str) -> None:
    database = Database.connect(database_url, pool_size=1, application_name="test")
    pids = []
    for _ in range(2):
        with pytest.raises(RuntimeError, match="on purpose"):
            async with database.transaction() as conn:
                pids.append((await conn.execute(text("SELECT pg_backend_pid()"))).scalar_one())
                raise RuntimeError("on purpose")
    assert pids[0] == pids[1]
    await database.dispose()


async def test_a_second_row_where_one_may_be_names_the_constraint(notes: Database) -> None:
    await _insert(notes, 1)
    with pytest.raises(DuplicateKey) as refusal:
        await _insert(notes, 1)
    assert refusal.value.constraint == "one_note"


async def test_a_commit_that_the_server_refuses_is_known_to_have_failed(notes: Database) -> None:
    with pytest.raises(Exception, match="answers_a_note") as refusal:
        async with notes.transaction() as conn:
            await conn.execute(text("INSERT INTO notes VALUES (1)"))
            await conn.execute(text("INSERT INTO replies VALUES (2)"))
    assert not isinstance(refusal.value, CommitUnknown)
    assert await _stored(notes) == []


async def test_a_failed_statement_that_nobody_raised_is_not_taken_for_a_commit(
    notes: Database,
) -> None:
    await _insert(notes, 1)
    with pytest.raises(DatabaseUnavailable, match="answered with ROLLBACK"):
        async with notes.transaction() as conn:
            await conn.execute(text("INSERT INTO notes VALUES (2)"))
            with pytest.raises(IntegrityError):
                await conn.execute(text("INSERT INTO notes VALUES (1)"))
    assert await _stored(notes) == [1]


async def test_a_commit_whose_answer_was_lost_is_unknown_and_its_connection_is_gone(
    notes: Database, database_url: str
) -> None:
    async with tcp_proxy(database_url) as proxy:
        database = Database.connect(proxy.url, pool_size=1, application_name="lost")
        await _stored(database)
        proxy.lose_commit_answers()
        with pytest.raises(CommitUnknown):
            await _insert(database, 1)
        assert proxy.answer_lost.is_set()
        assert await _stored(database) == [1]
        assert database.connections_in_use == 0
        await database.dispose()


async def test_a_commit_that_never_arrived_is_unknown_too(
    notes: Database, database_url: str
) -> None:
    async with tcp_proxy(database_url) as proxy:
        database = Database.connect(proxy.url, pool_size=1, application_name="stopped")
        await _stored(database)
        proxy.stop_commits()
        with pytest.raises(CommitUnknown):
            await _insert(database, 1)
        assert await _stored(database) == []
        await database.dispose()


async def test_a_commit_without_an_answer_in_time_is_unknown(
    notes: Database, database_url: str
) -> None:
    async with tcp_proxy(database_url) as proxy:
        database = Database.connect(proxy.url, application_name="silent", patience=_QUICK)
        with pytest.raises(CommitUnknown):
            async with database.transaction() as conn:
                await conn.execute(text("INSERT INTO notes VALUES (1)"))
                proxy.swallow()
        assert database.connections_in_use == 0
        proxy.pass_on()
        assert await _stored(database) == []
        await database.dispose()


async def _committing(database: Database, proxy: TcpProxy, number: int) -> asyncio.Task[None]:
    """Start an insert whose COMMIT waits at the server for what a deferred trigger locks."""
    task = asyncio.ensure_future(_insert(database, number))
    await proxy.commit_seen.wait()
    return task


@pytest.fixture
async def slow_commits(notes: Database) -> Database:
    """COMMIT of an insert into ``notes`` waits for the advisory lock 7."""
    async with notes.transaction() as conn:
        await conn.execute(
            text(
                "CREATE FUNCTION wait_for_seven() RETURNS trigger LANGUAGE plpgsql AS "
                "'BEGIN PERFORM pg_advisory_xact_lock(7); RETURN NULL; END'"
            )
        )
        await conn.execute(
            text(
                "CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON notes DEFERRABLE INITIALLY DEFERRED"
                " FOR EACH ROW EXECUTE FUNCTION wait_for_seven()"
            )
        )
    return notes


async def test_a_caller_cancelled_during_commit_is_cancelled_when_the_commit_has_ended(
    slow_commits: Database, database_url: str
) -> None:
    async with tcp_proxy(database_url) as proxy:
        database = Database.connect(proxy.url, application_name="cancelled")
        async with slow_commits.transaction() as blocker:
            await blocker.execute(text("SELECT pg_advisory_xact_lock(7)"))
            task = await _committing(database, proxy, 1)
            task.cancel()
            _, still_waiting = await asyncio.wait({task}, timeout=0.1)
            assert still_waiting
        with pytest.raises(asyncio.CancelledError) as cancelled:
            await task
        assert cancelled.value.__cause__ is None
        assert await _stored(slow_commits) == [1]
        assert database.connections_in_use == 0
        await database.dispose()


async def test_a_caller_cancelled_during_an_endless_commit_hangs_up_and_says_unknown(
    slow_commits: Database, database_url: str
) -> None:
    async with tcp_proxy(database_url) as proxy:
        patience = Patience(rollback_seconds=0.2)
        database = Database.connect(proxy.url, application_name="hung", patience=patience)
        async with slow_commits.transaction() as blocker:
            await blocker.execute(text("SELECT pg_advisory_xact_lock(7)"))
            task = await _committing(database, proxy, 1)
            started = time.monotonic()
            task.cancel()
            with pytest.raises(asyncio.CancelledError) as cancelled:
                await task
        assert time.monotonic() - started < 2
        assert isinstance(cancelled.value.__cause__, CommitUnknown)
        assert database.connections_in_use == 0
        await database.dispose()


async def test_a_connection_lost_before_commit_means_that_nothing_was_kept(notes: Database) -> None:
    with pytest.raises(DatabaseUnavailable):
        async with notes.transaction() as conn:
            await conn.execute(text("INSERT INTO notes VALUES (1)"))
            victim = (await conn.execute(text("SELECT pg_backend_pid()"))).scalar_one()
            async with notes.transaction() as other:
                await other.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": victim})
            await conn.execute(text("INSERT INTO notes VALUES (2)"))
    assert await _stored(notes) == []


async def test_a_lost_connection_that_the_block_does_not_notice_is_not_committed(
    notes: Database,
) -> None:
    with pytest.raises((DatabaseUnavailable, CommitUnknown)):
        async with notes.transaction() as conn:
            await conn.execute(text("INSERT INTO notes VALUES (1)"))
            victim = (await conn.execute(text("SELECT pg_backend_pid()"))).scalar_one()
            async with notes.transaction() as other:
                await other.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": victim})
    assert await _stored(notes) == []


async def _fill_pool(database: Database, count: int) -> list[int]:
    ready = asyncio.Barrier(count)

    async def take() -> int:
        async with database.transaction() as conn:
            pid: int = (await conn.execute(text("SELECT pg_backend_pid()"))).scalar_one()
            await ready.wait()
            return pid

    return await asyncio.gather(*(take() for _ in range(count)))


async def test_a_pool_full_of_connections_that_the_server_ended_heals_by_itself(
    notes: Database, database_url: str
) -> None:
    database = Database.connect(database_url, pool_size=3, application_name="pooled")
    pids = await _fill_pool(database, 3)
    async with notes.transaction() as conn:
        for pid in pids:
            await conn.execute(text("SELECT pg_terminate_backend(:pid, 5000)"), {"pid": pid})
    for number in range(3):
        await _insert(database, number)
    await database.dispose()


async def test_a_pool_full_of_half_open_connections_heals_by_itself(
    notes: Database, database_url: str
) -> None:
    async with tcp_proxy(database_url) as proxy:
        patience = Patience(connect_seconds=0.3, rollback_seconds=0.2)
        database = Database.connect(
            proxy.url, pool_size=3, application_name="half-open", patience=patience
        )
        await _fill_pool(database, 3)
        proxy.swallow()
        waiting = asyncio.ensure_future(_insert(database, 1))
        await asyncio.sleep(0.1)
        proxy.pass_on()
        # BEGIN on the first was swallowed; the other two still work or are found out likewise.
        await waiting
        assert await _stored(notes) == [1]
        await database.dispose()


async def test_a_statement_over_a_silent_connection_ends_in_time(
    notes: Database, database_url: str
) -> None:
    async with tcp_proxy(database_url) as proxy:
        database = Database.connect(proxy.url, application_name="silent", patience=_QUICK)
        started = time.monotonic()
        with pytest.raises(DatabaseUnavailable):
            async with database.transaction() as conn:
                await conn.execute(text("SELECT 1"))
                proxy.swallow()
                await conn.execute(text("SELECT 2"))
        assert time.monotonic() - started < 5
        assert database.connections_in_use == 0
        await database.dispose()


async def test_a_database_that_is_away_is_unavailable_and_back_when_it_is_back(
    notes: Database, database_url: str
) -> None:
    async with tcp_proxy(database_url) as proxy:
        database = Database.connect(proxy.url, application_name="away", patience=_QUICK)
        proxy.refuse()
        for _ in range(2):
            with pytest.raises(DatabaseUnavailable):
                await _insert(database, 1)
        # One attempt at a connection per transaction: a caller that asks once is not a busy loop.
        assert proxy.connections_accepted <= 4
        proxy.pass_on()
        await _insert(database, 1)
        assert await _stored(notes) == [1]
        await database.dispose()


async def test_waiting_for_a_free_connection_has_an_end(database_url: str) -> None:
    database = Database.connect(database_url, pool_size=1, application_name="full", patience=_QUICK)
    async with database.transaction():
        with pytest.raises(DatabaseUnavailable, match="none of 1 connections"):
            async with database.transaction():
                pass
    async with database.transaction():
        pass
    await database.dispose()


async def test_waiting_for_a_lock_has_an_end(notes: Database, database_url: str) -> None:
    database = Database.connect(database_url, application_name="locked", patience=_QUICK)
    async with notes.transaction() as blocker:
        await blocker.execute(text("LOCK TABLE notes"))
        with pytest.raises(DatabaseUnavailable):
            await _insert(database, 1)
    await database.dispose()


async def test_the_limits_stand_in_the_session(database: Database) -> None:
    async with database.transaction() as conn:
        names = (
            "statement_timeout",
            "lock_timeout",
            "idle_in_transaction_session_timeout",
            "application_name",
        )
        shown = [(await conn.execute(text(f"SHOW {name}"))).scalar_one() for name in names]
    assert shown == ["15s", "5s", "15s", "test"]


async def test_a_connection_that_comes_back_inside_a_transaction_is_cut(
    database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    database = Database.connect(database_url, pool_size=1, application_name="leaking")
    engine = database._engine
    async with engine.connect() as leaking:
        await leaking.execute(text("BEGIN"))
        first = (await leaking.execute(text("SELECT pg_backend_pid()"))).scalar_one()
    assert "inside a transaction" in caplog.text
    async with database.transaction() as conn:
        assert (await conn.execute(text("SELECT pg_backend_pid()"))).scalar_one() != first
    await database.dispose()


async def test_dispose_ends_in_time_although_the_network_is_silent(database_url: str) -> None:
    async with tcp_proxy(database_url) as proxy:
        database = Database.connect(proxy.url, application_name="silent", patience=_QUICK)
        await _fill_pool(database, 2)
        proxy.swallow()
        started = time.monotonic()
        await database.dispose()
        assert time.monotonic() - started < 2
        await database.dispose()
