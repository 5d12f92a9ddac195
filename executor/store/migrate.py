"""The schema moves forward only, file by file, each in one transaction and each exactly once.

``migrations/0001_words.sql`` and so on are applied in the order of their numbers under a
session-level advisory lock, so that any number of processes may start at once. What was applied
is recorded with its checksum; a file that was changed afterwards, and a database that is ahead of
the code, are refused rather than guessed at.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from asyncpg import Connection

    from executor.store.database import Database

_FILE = re.compile(r"(?P<version>\d{4})_(?P<name>[a-z0-9]+(_[a-z0-9]+)*)\.sql")
# A number that nothing else in the database locks: the word "signoff" in ASCII.
_LOCK_KEY = int.from_bytes(b"signoff", "big")
_LEDGER = """
CREATE TABLE IF NOT EXISTS schema_migrations (
    version integer PRIMARY KEY,
    name text NOT NULL,
    checksum text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
)
"""


class MigrationRefused(Exception):
    """The schema cannot be moved; the message says why and what to do."""


@dataclass(frozen=True)
class Migration:
    """One numbered file of SQL; ``checksum`` is the SHA-256 of its text in hex."""

    version: int
    name: str
    sql: str

    @property
    def file(self) -> str:
        return f"{self.version:04d}_{self.name}.sql"

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()


def numbered(files: Iterable[tuple[str, str]]) -> list[Migration]:
    """Return the ``(file name, SQL)`` pairs as migrations numbered 1, 2, 3 … without a gap.

    Line ends are made ``\\n`` first, so that a checkout on another system has the same checksums.
    Raises ``MigrationRefused`` for a bad name, a gap and a number used twice.
    """
    found: list[Migration] = []
    for position, (file, sql) in enumerate(sorted(files), start=1):
        match = _FILE.fullmatch(file)
        if match is None:
            raise MigrationRefused(f"{file}: name a migration like 0001_some_words.sql")
        version = int(match["version"])
        if version != position:
            raise MigrationRefused(f"{file}: its number must be {position:04d}; renumber the files")
        found.append(Migration(version, match["name"], sql.replace("\r\n", "\n")))
    return found


def packaged_migrations() -> list[Migration]:
    """Return the migrations that came with this code, in order."""
    folder = resources.files("executor.store") / "migrations"
    return numbered(
        (entry.name, entry.read_text(encoding="utf-8"))
        for entry in folder.iterdir()
        if entry.name.endswith(".sql")
    )


async def migrate(database: Database, migrations: Sequence[Migration] | None = None) -> list[str]:
    """Bring the schema up to the code and return the files applied now, oldest first.

    Waits for another runner and then does what is left. A file that fails leaves nothing behind,
    and the files before it stay applied. Raises ``MigrationRefused`` where the database and the
    code disagree about the past.
    """
    wanted = packaged_migrations() if migrations is None else migrations
    async with database.dedicated_connection("migrate") as conn:
        await conn.execute("SELECT pg_advisory_lock($1)", _LOCK_KEY)
        await conn.execute(_LEDGER)
        missing = _missing(wanted, await _applied(conn))
        for migration in missing:
            await _apply(conn, migration)
        # The lock ends with the session, so a runner that dies does not hold up the next.
        return [migration.file for migration in missing]


async def pending(database: Database, migrations: Sequence[Migration] | None = None) -> list[str]:
    """Return the names of the files that ``migrate`` would apply; changes nothing.

    Raises ``MigrationRefused`` as ``migrate`` does.
    """
    wanted = packaged_migrations() if migrations is None else migrations
    async with database.dedicated_connection("readiness") as conn:
        ledger = await conn.fetchval("SELECT to_regclass('schema_migrations')::text")
        applied = {} if ledger is None else await _applied(conn)
    return [migration.file for migration in _missing(wanted, applied)]


async def _applied(conn: Connection) -> dict[int, tuple[str, str]]:
    rows = await conn.fetch("SELECT version, name, checksum FROM schema_migrations")
    return {row["version"]: (row["name"], row["checksum"]) for row in rows}


def _missing(wanted: Sequence[Migration], applied: dict[int, tuple[str, str]]) -> list[Migration]:
    by_version = {migration.version: migration for migration in wanted}
    for version, (name, checksum) in sorted(applied.items()):
        migration = by_version.get(version)
        if migration is None:
            raise MigrationRefused(
                f"the database has migration {version:04d}_{name}, which this code does not know: "
                "it was moved by a newer release; deploy that release or a later one"
            )
        if (migration.name, migration.checksum) != (name, checksum):
            raise MigrationRefused(
                f"{migration.file} was changed after it had been applied as {version:04d}_{name}: "
                "restore the file as it was and put the change into a new migration"
            )
    newest = max(applied, default=0)
    return [migration for migration in wanted if migration.version > newest]


async def _apply(conn: Connection, migration: Migration) -> None:
    async with conn.transaction():
        try:
            await conn.execute(migration.sql)
        except Exception as error:
            error.add_note(f"while applying {migration.file}; nothing of it was kept")
            raise
        await conn.execute(
            "INSERT INTO schema_migrations (version, name, checksum) VALUES ($1, $2, $3)",
            migration.version,
            migration.name,
            migration.checksum,
        )
