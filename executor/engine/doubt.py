"""Everything of which nobody knows whether it was done, and the whole record of one operation.

Read for operators, in transactions of their own; reading changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from executor.domain.ids import AttemptId, OperationId, TenantId
from executor.domain.journal import JournalEntry
from executor.domain.transition import Machine
from executor.engine.card_record import OperationRecord
from executor.engine.engine import Engine
from executor.engine.records import read_operation
from executor.store import card_records, journal, operation_lookups, tenants
from executor.store.card_records import AnyRow

MOST_LISTED = 500


@dataclass(frozen=True, slots=True)
class Doubt:
    """One operation of which nobody knows whether it was done.

    ``since`` is when that began, ``now`` the database's time, ``recover_at`` when a machine looks
    again (``None``: it is for people), ``attempt_id`` its newest attempt, which a word binds.
    """

    record: OperationRecord
    since: datetime
    now: datetime
    recover_at: datetime | None
    attempt_id: AttemptId


async def in_doubt(
    engine: Engine, tenant: TenantId | None = None, number: int | None = None
) -> list[Doubt]:
    """List what is in doubt, of one tenant or of all, the longest first; ``MOST_LISTED`` at most.

    With a ``number``, the operation that bears it, however many others are in doubt for longer.
    What was opened and is past the time at which it could be concluded is in doubt as well: no
    executor has looked.
    """
    async with engine.database.transaction() as conn:
        rows = await card_records.in_doubt(conn, tenant, number, MOST_LISTED)
    return [await _read(engine, row) for row in rows]


async def _read(engine: Engine, row: AnyRow) -> Doubt:
    """Read one of them, in a transaction of its own, so that a long list holds nobody up."""
    tenant, id_ = TenantId(row.tenant_id), OperationId(row.id)
    async with engine.database.transaction() as conn:
        record = await read_operation(conn, tenant, id_)
    return Doubt(record, row.since, row.now, row.recover_at, AttemptId(row.attempt_id))


async def count_in_doubt(engine: Engine) -> int:
    """Count what stands unknown, of all tenants."""
    async with engine.database.transaction() as conn:
        return await card_records.count_in_doubt(conn)


async def known_tenants(engine: Engine) -> list[TenantId]:
    """List the tenants of this installation."""
    async with engine.database.transaction() as conn:
        return await tenants.known(conn)


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
        [names] = await operation_lookups.peek(conn, [(tenant, id_)])
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
    return tuple(
        entry
        for entry in entries
        if str(entry.entity_id) in ours
        # A note about a question stands under the question.
        or (entry.machine is None and entry.detail.get("operation") in ours)
    )
