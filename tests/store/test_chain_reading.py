"""A chain is read as it stood at one moment, while others add to it."""

from __future__ import annotations

from typing import Any

import pytest

from executor.domain.journal import verify
from executor.store import journal
from executor.store.database import Database
from tests.support.office import TENANT, Office


async def test_what_is_added_while_a_chain_is_read_does_not_break_it(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    office = await Office.open(database)
    run_id = await office.start_run()
    real: Any = vars(journal)["run"]
    added: list[object] = []

    async def run_and_let_another_add(conn: Any, name: str, **parameters: Any) -> Any:
        result = await real(conn, name, **parameters)
        if name == "read_journal" and not added:
            added.append(await office.claim_run(run_id))
        return result

    monkeypatch.setattr(journal, "run", run_and_let_another_add)
    async with database.transaction() as conn:
        before, head = await journal.read_chain(conn, TENANT, run_id)
    assert verify(before, head) is None
    async with database.transaction() as conn:
        after, head = await journal.read_chain(conn, TENANT, run_id)
    assert verify(after, head) is None
    assert len(after) > len(before) > 0
