"""Everything of which nobody knows whether it was done, and the whole record of one operation.

Read for operators, in transactions of their own; reading changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from executor.domain.effect import EffectStatus
from executor.domain.ids import AttemptId, OperationId, TenantId
from executor.domain.journal import JournalEntry
from executor.domain.transition import Machine
from executor.engine.card_record import OperationRecord
from executor.engine.engine import Engine
from executor.engine.records import read_operation
from executor.store import card_records, journal, operations
from executor.store.connection import Connection

MOST_LISTED = 500


@dataclass(frozen=True, slots=True)
class Doubt:
    """One operation that stands unknown.

    ``since`` is when it became so, ``now`` the database's time, ``recover_at`` when a machine looks
    again (``None``: it is for people), ``attempt_id`` its newest attempt, which a word binds.
    """

    record: OperationRecord
    since: datetime
    now: datetime
    recover_at: datetime | None
    attempt_id: AttemptId


async def in_doubt(engine: Engine, tenant: TenantId) -> list[Doubt]:
    """List what is in doubt, the longest first, at most ``MOST_LISTED``."""
    async with engine.database.transaction() as conn:
        return [
            Doubt(
                await read_operation(conn, tenant, OperationId(row.id)),
                row.since,
                row.now,
                row.recover_at,
                await _newest_attempt(conn, tenant, OperationId(row.id)),
            )
            for row in await card_records.in_doubt(conn, tenant, MOST_LISTED)
        ]


async def _newest_attempt(conn: Connection, tenant: TenantId, id_: OperationId) -> AttemptId:
    parts = await card_records.effects(conn, tenant, id_)
    unknown = next(p.id for p in parts if p.status == EffectStatus.UNKNOWN)
    tries = await card_records.attempts(conn, tenant, id_)
    return AttemptId([t for t in tries if t.effect_id == unknown][-1].id)


@dataclass(frozen=True, slots=True)
class Account:
    """One operation's record, and every journal entry about it, in order."""

    record: OperationRecord
    entries: tuple[JournalEntry, ...]


async def account_of(engine: Engine, tenant: TenantId, number: int) -> Account | None:
    """Read everything about one operation; ``None``: this tenant has no such operation."""
    async with engine.database.transaction() as conn:
        id_ = await card_records.by_number(conn, tenant, number)
        if id_ is None:
            return None
        record = await read_operation(conn, tenant, id_)
        [names] = await operations.peek(conn, [(tenant, id_)])
        entries, _ = await journal.read_chain(conn, tenant, names.run_id)
    return Account(record, _about(id_, [entry for entry, _ in entries]))


def _about(id_: OperationId, entries: Sequence[JournalEntry]) -> tuple[JournalEntry, ...]:
    """Pick the entries of an operation, its parts, their attempts and its approvals."""
    ours = {str(id_)}
    for entry in entries:
        # A birth names what it belongs to, and comes before all else about it.
        parent = entry.detail.get("operation") or entry.detail.get("effect")
        if entry.seq == 1 and entry.machine is not Machine.OPERATION and parent in ours:
            ours.add(str(entry.entity_id))
    return tuple(entry for entry in entries if str(entry.entity_id) in ours)
