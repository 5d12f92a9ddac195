"""A run's or a tenant's journal is exported as it is stored, for a check without the database.

What is read is fixed by the heads, and read in short transactions: nobody waits for a long export,
and what is added meanwhile is not in it. Nothing is checked here: a broken journal is exported, and
its check says where it is broken.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from executor.domain.audit_file import Header, entry_line
from executor.domain.ids import TenantId
from executor.engine.engine import Engine
from executor.store import audit, clock

ENTRIES_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Export:
    """One file of an audit, as it is made."""

    header: Header
    lines: AsyncIterator[bytes]


async def export(
    engine: Engine,
    tenant: TenantId,
    number: int | None = None,
    *,
    at_once: int = ENTRIES_AT_ONCE,
) -> Export | None:
    """Begin an export of a tenant, or of its run with this ``number``; ``None``: it has no such
    run."""
    async with engine.database.transaction() as conn:
        # Before the heads: what had been committed by then is in them.
        moment = await clock.now(conn)
        ends = await audit.ends(conn, tenant, number)
    if number is not None and not ends:
        return None
    header = Header(tenant, number, moment, tuple(ends))
    return Export(header, _lines(engine, header, at_once))


async def _lines(engine: Engine, header: Header, at_once: int) -> AsyncIterator[bytes]:
    yield header.line()
    for end in header.chains:
        after = 0
        while after < end.position:
            async with engine.database.transaction() as conn:
                part = await audit.entries(conn, header.tenant_id, end, after, at_once)
            if not part:
                break
            for entry, stored in part:
                yield entry_line(entry, stored)
            after = part[-1][0].position
