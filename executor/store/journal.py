"""The journal's pair to ``executor.domain.journal``: heads are locked last, entries never
rewritten.

A machine's entries are written by the statement that moves the machine, from the ``entries`` that
``as_rows`` spells; only notes have a statement of their own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC
from typing import Any

from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection

from executor.domain.errors import Corrupt, LostRace
from executor.domain.ids import RunId, TenantId
from executor.domain.journal import FIRST_HASH, Chain, Head, JournalEntry
from executor.domain.transition import Machine
from executor.store import clock
from executor.store.statements import run


def as_rows(entries: Iterable[JournalEntry]) -> str:
    """Spell entries as the JSON that the SQL function ``journal_entries`` reads."""
    return json.dumps(
        [
            {
                **entry.content(),
                "previous_hash": entry.previous_hash.hex(),
                "hash": entry.hash.hex(),
            }
            for entry in entries
        ]
    )


async def lock_chain(conn: AsyncConnection, subjects: Iterable[tuple[TenantId, RunId]]) -> Chain:
    """Lock the heads of ``subjects`` and read the time: the last lock, then the clock.

    A subject without a head yet (a run that is being born) starts at the beginning.
    """
    wanted = sorted(set(subjects), key=lambda key: (key[0], key[1].int))
    rows = await run(
        conn,
        "lock_journal_heads",
        tenants=[tenant for tenant, _ in wanted],
        subjects=[subject for _, subject in wanted],
    )
    heads = {(row.tenant_id, RunId(row.subject)): Head(row.position, row.hash) for row in rows}
    for key in wanted:
        heads.setdefault(key, Head(0, FIRST_HASH))
    return Chain(await clock.now(conn), heads)


async def write_notes(conn: AsyncConnection, notes: Sequence[JournalEntry]) -> None:
    """Record notes; they must be chained before the moves that follow them are applied or after."""
    if notes:
        await run(conn, "insert_notes", entries=as_rows(notes))


async def advance(conn: AsyncConnection, chain: Chain) -> None:
    """Store where the chains end now; the last statement before COMMIT."""
    keys = [key for key in chain.grown if chain.heads[key].position > chain.grown[key]]
    if not keys:
        return
    moved = await run(
        conn,
        "advance_journal_heads",
        tenants=[tenant for tenant, _ in keys],
        subjects=[subject for _, subject in keys],
        positions=[chain.heads[key].position for key in keys],
        hashes=[chain.heads[key].hash for key in keys],
    )
    if len(moved.all()) != len(keys):
        raise LostRace("advance_journal_heads", 1)


async def read_chain(
    conn: AsyncConnection, tenant: TenantId, subject: RunId
) -> tuple[list[tuple[JournalEntry, bytes]], Head]:
    """Read a run's whole chain with its stored hashes, and where it should end."""
    rows = list(await run(conn, "read_journal", tenant=tenant, subject=subject))
    if not rows:
        raise Corrupt(f"run {subject} has no journal head")
    entries = [stored_entry(row) for row in rows if row.position is not None]
    return entries, Head(rows[0].head_position, rows[0].head_hash)


def stored_entry(row: Row[*tuple[Any, ...]]) -> tuple[JournalEntry, bytes]:
    """Return an entry as it is stored, with the hash that stands beside it."""
    entry = JournalEntry(
        TenantId(row.tenant_id),
        RunId(row.subject),
        row.position,
        None if row.machine is None else Machine(row.machine),
        row.entity_id,
        row.seq,
        row.source,
        row.target,
        row.event,
        row.actor,
        row.detail,
        row.recorded_at.astimezone(UTC),
        row.previous_hash,
    )
    return entry, bytes(row.hash)
