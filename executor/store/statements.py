"""Every statement that changes state has one name, one file and one purpose.

A file in ``sql/`` holds statements of this form, and nothing outside them::

    -- name: claim_due_runs
    -- Take up to :limit due runs of one tenant; locks runs by id, skipping locked ones.
    SELECT ...

Binds are written ``:name``. ``::`` is refused at load, because ``:name::uuid`` binds nothing: write
``CAST(:name AS uuid)``. ``run`` refuses a call whose binds are not exactly the statement's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from sqlalchemy import TextClause, text
from sqlalchemy.dialects.postgresql.asyncpg import dialect

if TYPE_CHECKING:
    from sqlalchemy import CursorResult
    from sqlalchemy.ext.asyncio import AsyncConnection

_NAME = re.compile(r"^-- name:[ \t]*(?P<name>.*?)[ \t]*$", re.MULTILINE)
_GOOD_NAME = re.compile(r"[a-z][a-z0-9_]*")
_DIALECT = dialect()  # type: ignore[no-untyped-call]


class MalformedStatement(Exception):
    """A statement file cannot be used as it stands; the message names the file and the remedy."""


@dataclass(frozen=True)
class Statement:
    """One named statement: where it stands, what it is for, and the names that it binds.

    ``sent`` is what the driver gets, with numbers for names; ``order`` says whose they are.
    """

    name: str
    source: str
    purpose: str
    clause: TextClause
    binds: frozenset[str]
    sent: str
    order: tuple[str, ...]


def parse(source: str, content: str) -> list[Statement]:
    """Return the statements of one file, whose name ``source`` appears in errors.

    Raises ``MalformedStatement`` for text before the first name, a bad name, a missing purpose, an
    empty body and a ``::`` cast.
    """
    headers = list(_NAME.finditer(content))
    before = content[: headers[0].start()] if headers else content
    if before.strip():
        raise MalformedStatement(f"{source}: begin with a line '-- name: some_statement'")
    ends = [header.start() for header in headers[1:]] + [len(content)]
    return [
        _statement(source, header["name"], content[header.end() : end])
        for header, end in zip(headers, ends, strict=True)
    ]


def _statement(source: str, name: str, block: str) -> Statement:
    where = f"{source}: {name}"
    if not _GOOD_NAME.fullmatch(name):
        raise MalformedStatement(f"{where}: a name is lower_case_words")
    purpose: list[str] = []
    lines = block.strip().splitlines()
    while lines and lines[0].startswith("--"):
        purpose.append(lines.pop(0).removeprefix("--").strip())
    if not any(purpose):
        raise MalformedStatement(f"{where}: say its purpose in a comment under the name")
    body = "\n".join(lines).strip().removesuffix(";").rstrip()
    if not any(line.strip() and not line.strip().startswith("--") for line in body.splitlines()):
        raise MalformedStatement(f"{where}: the statement is empty")
    if "::" in body:
        raise MalformedStatement(f"{where}: '::' hides binds; write CAST(... AS type)")
    clause = text(body)
    compiled = clause.compile(dialect=_DIALECT)
    order = tuple(compiled.positiontup or ())
    return Statement(
        name, source, " ".join(purpose), clause, frozenset(order), str(compiled), order
    )


def catalogue(files: Iterable[tuple[str, str]]) -> Mapping[str, Statement]:
    """Return the statements of ``(source, content)`` files by name; refuse a name used twice."""
    by_name: dict[str, Statement] = {}
    for source, content in files:
        for found in parse(source, content):
            earlier = by_name.get(found.name)
            if earlier is not None:
                raise MalformedStatement(
                    f"{source}: {found.name} is already defined in {earlier.source}; rename one"
                )
            by_name[found.name] = found
    return by_name


@cache
def _packaged() -> Mapping[str, Statement]:
    folder = resources.files("executor.store") / "sql"
    files = sorted(
        (entry for entry in folder.iterdir() if entry.name.endswith(".sql")),
        key=lambda entry: entry.name,
    )
    return catalogue((entry.name, entry.read_text(encoding="utf-8")) for entry in files)


def all_statements() -> list[Statement]:
    """Return every packaged statement, in the order of its file and its place there."""
    return list(_packaged().values())


def statement(name: str) -> Statement:
    """Return the packaged statement ``name``; ``LookupError`` if there is none."""
    try:
        return _packaged()[name]
    except KeyError:
        raise LookupError(f"no statement is named {name!r} in executor/store/sql") from None


async def run(
    conn: AsyncConnection, name: str, /, **binds: object
) -> CursorResult[*tuple[Any, ...]]:
    """Execute the statement ``name`` on ``conn``, inside the caller's transaction.

    Raises ``TypeError`` where ``binds`` are not exactly the binds of the statement, before anything
    is sent.
    """
    found = statement(name)
    if binds.keys() != found.binds:
        missing = sorted(found.binds - binds.keys())
        surplus = sorted(binds.keys() - found.binds)
        raise TypeError(f"{name}: missing binds {missing}, surplus binds {surplus}")
    # Spelled for the driver once in a process, and not once for each engine and each execution.
    return await conn.exec_driver_sql(found.sent, tuple([binds[name] for name in found.order]))
