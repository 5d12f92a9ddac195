"""The journal of a whole tenant, read in parts: where its chains end, then one part after another.

Entries are never rewritten, so that each part may be read in a transaction of its own: what is up
to a head is what it was when the head was read.
"""

from __future__ import annotations

from sqlalchemy.ext.asyncio import AsyncConnection

from executor.domain.audit_file import ChainEnd
from executor.domain.ids import RunId, TenantId
from executor.domain.journal import JournalEntry
from executor.store.journal import stored_entry
from executor.store.statements import run


async def ends(conn: AsyncConnection, tenant: TenantId, number: int | None) -> list[ChainEnd]:
    """List where the chains of a tenant end, or, with a ``number``, that of one of its runs."""
    rows = await run(conn, "audit_heads", tenant=tenant, run=number)
    return [ChainEnd(RunId(row.subject), row.number, row.position, bytes(row.hash)) for row in rows]


async def entries(
    conn: AsyncConnection, tenant: TenantId, end: ChainEnd, after: int, most: int
) -> list[tuple[JournalEntry, bytes]]:
    """Read at most ``most`` entries of a chain with their stored hashes, in order."""
    rows = await run(
        conn,
        "audit_entries",
        tenant=tenant,
        subject=end.subject,
        after=after,
        until=end.position,
        most=most,
    )
    return [stored_entry(row) for row in rows]
