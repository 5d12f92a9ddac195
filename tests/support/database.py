"""One PostgreSQL per test session, one migrated template in it, and a copy of that per test.

To copy takes half a second of a busy machine, to empty a copy a few hundredths: so a test gets the
copy of one that is over, emptied, unless that one changed the schema or what the migrations wrote.
Who empties keeps a connection to each copy, because a new one plans everything anew: above all the
checks of foreign keys.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import threading
import uuid
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import asyncpg

from executor.store.address import asyncpg_dsn, with_database
from executor.store.database import Database
from executor.store.embedded import embedded_postgres_blocking
from executor.store.migrate import migrate

_T = TypeVar("_T")

# A test's data need not survive a power cut; what is tested here is not PostgreSQL's own
# durability.
_FAST = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    # Its workers belong to a superuser, whom our role may not end when it drops a database.
    "autovacuum": "off",
    # Each test's connections are new: a plan for these very values would be made for nothing.
    "plan_cache_mode": "force_generic_plan",
}

_HOLDS_ROWS_AFTER_MIGRATION = ("schema_migrations", "edges")

_END_CONNECTIONS = """
SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""

# Deleted, because TRUNCATE makes every file of a table and its indexes anew; and by one statement,
# at the end of which foreign keys are checked.
_EMPTY = f"""
DO $$
DECLARE
    one regclass;
    holds_rows boolean;
    deletes text[] := '{{}}';
BEGIN
    FOR one IN
        SELECT oid FROM pg_class
        WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
            AND relname NOT IN {_HOLDS_ROWS_AFTER_MIGRATION}
    LOOP
        EXECUTE format('SELECT EXISTS (SELECT FROM %s)', one) INTO holds_rows;
        IF holds_rows THEN
            deletes := deletes || format('%I AS (DELETE FROM %s)', 'of_' || one, one);
        END IF;
    END LOOP;
    IF deletes <> '{{}}' THEN
        ALTER TABLE journal DISABLE TRIGGER the_journal_is_append_only;
        EXECUTE 'WITH ' || array_to_string(deletes, ', ') || ' SELECT 1';
        ALTER TABLE journal ENABLE TRIGGER the_journal_is_append_only;
    END IF;
    PERFORM setval(oid::regclass, 1, false) FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind = 'S';
END $$
"""  # noqa: S608 - names of our own

_SHAPE = """
SELECT md5(string_agg(part, ',' ORDER BY part)) FROM (
    SELECT concat_ws(' ', 'relation', relname) FROM pg_class
        WHERE relnamespace = 'public'::regnamespace
    UNION ALL SELECT concat_ws(' ', 'column', relname, attname, atttypid, attnotnull)
        FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
        WHERE relnamespace = 'public'::regnamespace AND attnum > 0
    UNION ALL SELECT concat_ws(' ', 'constraint', conname, convalidated)
        FROM pg_constraint WHERE connamespace = 'public'::regnamespace
    UNION ALL SELECT concat_ws(' ', 'trigger', tgname, tgenabled)
        FROM pg_trigger WHERE NOT tgisinternal
    UNION ALL SELECT concat_ws(' ', 'function', proname, md5(prosrc))
        FROM pg_proc WHERE pronamespace = 'public'::regnamespace
    UNION ALL SELECT concat_ws(' ', 'edge', edges::text) FROM edges
    UNION ALL SELECT concat_ws(' ', 'migration', name, checksum) FROM schema_migrations
) AS parts (part)
"""


class _Housekeeping:
    """Administers databases on a loop of its own, beside the tests', which come and go."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._connections: dict[str, asyncpg.Connection] = {}

    def __enter__(self) -> _Housekeeping:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for name in list(self._connections):
            self.now(self.leave(name))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def do(self, work: Coroutine[object, object, _T]) -> _T:
        """Have something done, while the test's loop goes on."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    def now(self, work: Coroutine[object, object, _T]) -> _T:
        """Have something done, outside any loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def make(self, name: str, template: str) -> None:
        """Copy a database."""
        await (await self._connection()).execute(f"CREATE DATABASE {name} TEMPLATE {template}")

    async def drop(self, name: str) -> None:
        """Remove a database, whoever uses it."""
        await self.leave(name)
        await (await self._connection()).execute(f"DROP DATABASE {name} WITH (FORCE)")

    async def shape(self, name: str) -> str:
        """Read what stands for its schema and for the rows that its migrations wrote."""
        found: str = await (await self._connection(name)).fetchval(_SHAPE)
        return found

    async def emptied(self, name: str, shape: str) -> bool:
        """End what is connected to a database and empty it; ``False`` where that is not enough."""
        connection = await self._connection(name)
        await connection.execute(_END_CONNECTIONS)
        if await self.shape(name) != shape:
            return False
        await connection.execute(_EMPTY)
        return True

    async def _connection(self, name: str = "") -> asyncpg.Connection:
        connection = self._connections.get(name)
        if connection is None or connection.is_closed():
            url = with_database(self._url, name) if name else self._url
            connection = self._connections[name] = await asyncpg.connect(dsn=asyncpg_dsn(url))
        return connection

    async def leave(self, name: str) -> None:
        """Close the connection to a database."""
        if (connection := self._connections.pop(name, None)) is not None:
            await connection.close()


@dataclass(frozen=True)
class TestServer:
    """A running PostgreSQL; ``url`` names a database on it in which databases may be made.

    ``shape`` stands for the schema of ``template`` and for the rows that its migrations wrote.
    """

    __test__ = False

    url: str
    template: str
    shape: str
    housekeeping: _Housekeeping
    emptied: list[str] = field(default_factory=list)

    @asynccontextmanager
    async def fresh_database(self, *, migrated: bool = True) -> AsyncIterator[str]:
        """Yield the URL of a database without rows; its connections are ended afterwards."""
        name = self.emptied.pop() if migrated and self.emptied else await self._made(migrated)
        keeper = self.housekeeping
        try:
            yield with_database(self.url, name)
        finally:
            if migrated and await keeper.do(keeper.emptied(name, self.shape)):
                self.emptied.append(name)
            else:
                await keeper.do(keeper.drop(name))

    async def _made(self, migrated: bool) -> str:
        name = f"test_{uuid.uuid4().hex}"
        template = self.template if migrated else "template0"
        await self.housekeeping.do(self.housekeeping.make(name, template))
        return name


@contextmanager
def running_server(given_url: str | None) -> Iterator[TestServer]:
    """Yield the server at ``given_url``, or a private one that ends with the session."""
    if given_url:
        with _with_template(given_url) as server:
            yield server
        return
    home = Path(tempfile.mkdtemp(prefix="signoff-tests-"))
    try:
        with (
            embedded_postgres_blocking(home, settings=_FAST) as url,
            _with_template(url) as server,
        ):
            yield server
    finally:
        shutil.rmtree(home)


@contextmanager
def _with_template(url: str) -> Iterator[TestServer]:
    template = f"template_{os.getpid()}_{uuid.uuid4().hex[:8]}"
    with _Housekeeping(url) as keeper:
        keeper.now(keeper.make(template, "template0 ENCODING 'UTF8'"))
        asyncio.run(_migrate(with_database(url, template)))
        server = TestServer(url, template, keeper.now(keeper.shape(template)), keeper)
        # A template is copied only while nobody is connected to it.
        keeper.now(keeper.leave(template))
        try:
            yield server
        finally:
            for name in (template, *server.emptied):
                keeper.now(keeper.drop(name))


async def _migrate(url: str) -> None:
    database = Database.connect(url, application_name="template")
    try:
        await migrate(database)
    finally:
        await database.dispose()
