"""Reads of what concerns one person: what waits for votes, what goes on, what is in doubt."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy.ext.asyncio import AsyncConnection

from executor.domain.ids import OperationId, PrincipalId, TenantId
from executor.store.card_records import AnyRow
from executor.store.statements import run


async def to_decide(conn: AsyncConnection, tenant: TenantId, most: int) -> Sequence[AnyRow]:
    """Read operations that are shown and wait for votes, the most urgent first."""
    return (await run(conn, "operations_to_decide", tenant=tenant, most=most)).all()


async def runs_of(
    conn: AsyncConnection, tenant: TenantId, requester: PrincipalId, most: int
) -> Sequence[AnyRow]:
    """Read the runs of one person that go on, the newest first; each tells how many there are."""
    rows = await run(conn, "runs_of_requester", tenant=tenant, requester=requester, most=most)
    return rows.all()


async def about(
    conn: AsyncConnection, tenant: TenantId, ids: Sequence[OperationId]
) -> Sequence[AnyRow]:
    """Read what some operations are about."""
    return (await run(conn, "operations_about", tenant=tenant, ids=list(ids))).all()
