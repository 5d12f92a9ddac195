"""The database of an installation: the one that was named, or a private one in the user's folder.

A private one is brought up to this code whenever it is opened, for nobody else looks after it. One
that was named is moved by ``signoff migrate`` alone, so that a deploy decides when.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from executor.store.database import Database
from executor.store.embedded import embedded_postgres
from executor.store.migrate import MigrationRefused, migrate, pending


@asynccontextmanager
async def installed_database(
    url: str | None, home: Path, *, application_name: str, pool_size: int
) -> AsyncIterator[Database]:
    """Open the database at ``url``, or the private one in ``home`` where that is ``None``.

    Raises ``MigrationRefused`` when a named database is behind this code.
    """
    if url is None:
        async with (
            embedded_postgres(home / "postgres") as private,
            _connected(private, application_name, pool_size) as database,
        ):
            await migrate(database)
            yield database
        return
    async with _connected(url, application_name, pool_size) as database:
        missing = await pending(database)
        if missing:
            raise MigrationRefused(
                f"the database lacks {', '.join(missing)}: run `signoff migrate` first"
            )
        yield database


@asynccontextmanager
async def _connected(url: str, application_name: str, pool_size: int) -> AsyncIterator[Database]:
    database = Database.connect(url, pool_size=pool_size, application_name=application_name)
    try:
        yield database
    finally:
        await database.dispose()
