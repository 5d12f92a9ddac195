"""One PostgreSQL per test session, one migrated template in it, and a copy of that per test.

To copy takes half a second of a busy machine, to empty a copy a few hundredths: so a test gets the
copy of one that is over, emptied, unless that one changed the schema or what the migrations wrote.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import asyncpg

from executor.store.address import asyncpg_dsn, with_database
from executor.store.database import Database
from executor.store.embedded import embedded_postgres_blocking
from executor.store.migrate import migrate

# A test's data need not survive a power cut; what is tested here is not PostgreSQL's own
# durability.
_FAST = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    # Its workers belong to a superuser, whom our role may not end when it drops a database.
    "autovacuum": "off",
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


@dataclass(frozen=True)
class TestServer:
    """A running PostgreSQL; ``url`` names a database on it in which databases may be made.

    ``shape`` stands for the schema of ``template`` and for the rows that its migrations wrote.
    """

    __test__ = False

    url: str
    template: str
    shape: str
    emptied: list[str] = field(default_factory=list)

    @asynccontextmanager
    async def fresh_database(self, *, migrated: bool = True) -> AsyncIterator[str]:
        """Yield the URL of a database without rows; its connections are ended afterwards."""
        name = self.emptied.pop() if migrated and self.emptied else await self._made(migrated)
        try:
            yield with_database(self.url, name)
        finally:
            if migrated and await self._is_as_before(name):
                self.emptied.append(name)
            else:
                await _administer(self.url, f"DROP DATABASE {name} WITH (FORCE)")

    async def _made(self, migrated: bool) -> str:
        name = f"test_{uuid.uuid4().hex}"
        template = self.template if migrated else "template0"
        await _administer(self.url, f"CREATE DATABASE {name} TEMPLATE {template}")
        return name

    async def _is_as_before(self, name: str) -> bool:
        """End what is connected to a database and empty it; ``False`` where that is not enough."""
        async with _connected(with_database(self.url, name)) as connection:
            await connection.execute(_END_CONNECTIONS)
            if await connection.fetchval(_SHAPE) != self.shape:
                return False
            await connection.execute(_EMPTY)
        return True


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
    shape = asyncio.run(_make_template(url, template))
    server = TestServer(url, template, shape)
    try:
        yield server
    finally:
        for name in (template, *server.emptied):
            asyncio.run(_administer(url, f"DROP DATABASE {name} WITH (FORCE)"))


async def _make_template(url: str, template: str) -> str:
    await _administer(url, f"CREATE DATABASE {template} TEMPLATE template0 ENCODING 'UTF8'")
    database = Database.connect(with_database(url, template), application_name="template")
    try:
        await migrate(database)
    finally:
        await database.dispose()
    async with _connected(with_database(url, template)) as connection:
        shape: str = await connection.fetchval(_SHAPE)
    return shape


async def _administer(url: str, command: str) -> None:
    async with _connected(url) as connection:
        await connection.execute(command)


@asynccontextmanager
async def _connected(url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(dsn=asyncpg_dsn(url))
    try:
        yield connection
    finally:
        await connection.close()
