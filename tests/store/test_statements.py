"""Every statement prepares, is used, and gets exactly the binds that it names."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import asyncpg
import pytest
from sqlalchemy.dialects.postgresql import asyncpg as asyncpg_dialect

import executor.store
from executor.store.address import asyncpg_dsn
from executor.store.database import Database
from executor.store.statements import (
    MalformedStatement,
    all_statements,
    catalogue,
    parse,
    run,
    statement,
)

_STORE = Path(executor.store.__file__).parent


async def test_every_statement_prepares_on_a_migrated_database(database_url: str) -> None:
    failures = []
    dialect = asyncpg_dialect.dialect()  # type: ignore[no-untyped-call]
    connection = await asyncpg.connect(dsn=asyncpg_dsn(database_url))
    try:
        for found in all_statements():
            compiled = str(found.clause.compile(dialect=dialect))
            try:
                await connection.prepare(compiled)
            except asyncpg.PostgresError as error:
                failures.append(f"{found.source}: {found.name}: {error}")
    finally:
        await connection.close()
    assert failures == []


@dataclass(frozen=True)
class _Call:
    """One call of ``run`` in the store: where, of what, with which binds."""

    where: str
    name: str | None
    binds: frozenset[str] | None


def _calls(path: Path, source: str) -> Iterator[_Call]:
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        named = called.id if isinstance(called, ast.Name) else getattr(called, "attr", None)
        if named != "run" or len(node.args) != 2:
            continue
        name = node.args[1]
        written = name.value if isinstance(name, ast.Constant) else None
        keywords = [keyword.arg for keyword in node.keywords]
        yield _Call(
            f"{path.name}:{node.lineno}",
            written if isinstance(written, str) else None,
            None if None in keywords else frozenset(k for k in keywords if k is not None),
        )


def _calls_in_store() -> list[_Call]:
    return [
        call
        for path in sorted(_STORE.rglob("*.py"))
        for call in _calls(path, path.read_text(encoding="utf-8"))
    ]


def test_every_call_names_a_statement_and_gives_exactly_its_binds() -> None:
    wanted = {found.name: found.binds for found in all_statements()}
    wrong = [
        f"{call.where}: {call.name}: gives {sorted(call.binds or ())}"
        for call in _calls_in_store()
        if call.name not in wanted or call.binds != wanted[call.name]
    ]
    assert wrong == []


def test_every_statement_is_used() -> None:
    users = defaultdict(list)
    for call in _calls_in_store():
        users[call.name].append(call.where)
    assert [found.name for found in all_statements() if found.name not in users] == []


def test_call_sites_are_found_with_their_binds() -> None:
    source = 'await run(conn, "claim", limit=3)\nawait statements.run(conn, name, **binds)\nrun(1)'
    assert list(_calls(Path("x.py"), source)) == [
        _Call("x.py:1", "claim", frozenset({"limit"})),
        _Call("x.py:2", None, None),
    ]


_GOOD = """-- name: take
-- Take one note of a person,
-- locking it.
SELECT id FROM notes WHERE owner = :owner AND id = CAST(:id AS uuid)
FOR UPDATE;

-- name: count
-- Count all notes.
SELECT count(*) FROM notes
"""


def test_a_file_is_read_into_names_purposes_bodies_and_binds() -> None:
    take, count = parse("notes.sql", _GOOD)
    assert (take.name, take.purpose) == ("take", "Take one note of a person, locking it.")
    assert take.clause.text.startswith("SELECT id")
    assert take.clause.text.endswith("FOR UPDATE")
    assert take.binds == {"owner", "id"}
    assert (count.name, count.binds) == ("count", frozenset())


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("SELECT 1", "begin with a line"),
        ("-- name: Take\n-- Take.\nSELECT 1", "a name is lower_case_words"),
        ("-- name:\n-- Take.\nSELECT 1", "a name is lower_case_words"),
        ("-- name: take\nSELECT 1", "say its purpose"),
        ("-- name: take\n-- Take.\n", "is empty"),
        ("-- name: take\n-- Take.\n;\n", "is empty"),
        ("-- name: take\n-- Take.\n\n-- nothing here\n", "is empty"),
        ("-- name: take\n-- Take.\nSELECT :x::uuid", "write CAST"),
    ],
)
def test_a_malformed_statement_is_refused_at_load(content: str, complaint: str) -> None:
    with pytest.raises(MalformedStatement, match=complaint):
        parse("notes.sql", content)


def test_a_name_used_twice_is_refused_with_both_places() -> None:
    with pytest.raises(MalformedStatement, match=r"b\.sql: take is already defined in a\.sql"):
        catalogue([("a.sql", _GOOD), ("b.sql", _GOOD)])


async def test_a_call_with_other_binds_is_refused_before_anything_is_sent(
    database: Database,
) -> None:
    found = next(found for found in all_statements() if found.binds)
    async with database.transaction() as conn:
        with pytest.raises(TypeError, match=r"missing binds .*surplus binds \['nonsense'\]"):
            await run(conn, found.name, nonsense=1)


def test_an_unknown_name_is_an_error_that_says_where_to_look() -> None:
    with pytest.raises(LookupError, match="executor/store/sql"):
        statement("no_such_statement")
