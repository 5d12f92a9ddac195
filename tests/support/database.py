"""One PostgreSQL per test session, one migrated template in it, and a copy of that per test."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
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


@dataclass(frozen=True)
class TestServer:
    """A running PostgreSQL; ``url`` names a database on it in which databases may be made."""

    __test__ = False

    url: str
    template: str

    @asynccontextmanager
    async def fresh_database(self, *, migrated: bool = True) -> AsyncIterator[str]:
        """Yield the URL of a new database, which is dropped afterwards with all its connections."""
        name = f"test_{uuid.uuid4().hex}"
        await _administer(
            self.url,
            f"CREATE DATABASE {name} TEMPLATE {self.template if migrated else 'template0'}",
        )
        try:
            yield with_database(self.url, name)
        finally:
            await _administer(self.url, f"DROP DATABASE {name} WITH (FORCE)")


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
    asyncio.run(_make_template(url, template))
    try:
        yield TestServer(url, template)
    finally:
        asyncio.run(_administer(url, f"DROP DATABASE {template} WITH (FORCE)"))


async def _make_template(url: str, template: str) -> None:
    await _administer(url, f"CREATE DATABASE {template} TEMPLATE template0 ENCODING 'UTF8'")
    database = Database.connect(with_database(url, template), application_name="template")
    try:
        await migrate(database)
    finally:
        await database.dispose()


async def _administer(url: str, command: str) -> None:
    connection = await asyncpg.connect(dsn=asyncpg_dsn(url))
    try:
        await connection.execute(command)
    finally:
        await connection.close()
