"""Which worker an operation belongs to, and until when."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncConnection

from executor.domain.errors import LostRace
from executor.domain.ids import OperationId, TenantId
from executor.store.operations import OperationKey, OperationRow, operation_row
from executor.store.statements import run


async def claim_due(
    conn: AsyncConnection, tenants: Sequence[TenantId], most: int
) -> list[OperationRow]:
    """Lock at most ``most`` operations whose time has come, of ``tenants`` in turn, skipping what
    others hold.
    """
    rows = await run(conn, "due_operations", tenants=list(tenants), most=most)
    return [operation_row(row) for row in rows]


async def lease(
    conn: AsyncConnection, rows: Sequence[OperationRow], *, owner: str, until: datetime
) -> dict[OperationKey, int]:
    """Give locked operations to ``owner`` and return their new epochs."""
    taken = await run(
        conn,
        "lease_operations",
        tenants=[row.tenant_id for row in rows],
        ids=[row.id for row in rows],
        owner=owner,
        until=until,
    )
    epochs = {(TenantId(t.tenant_id), OperationId(t.id)): int(t.lease_epoch) for t in taken}
    if len(epochs) != len(rows):
        raise LostRace("lease_operations", len(rows) - len(epochs))
    return epochs


async def renew(
    conn: AsyncConnection, key: OperationKey, *, owner: str, epoch: int, until: datetime
) -> bool:
    """Prolong a lease; ``False`` means that it is no longer ours."""
    renewed = await run(
        conn,
        "renew_operation_lease",
        tenant=key[0],
        id=key[1],
        owner=owner,
        epoch=epoch,
        until=until,
    )
    return renewed.one_or_none() is not None


async def hand_back(
    conn: AsyncConnection, key: OperationKey, *, owner: str, epoch: int, due_at: datetime
) -> bool:
    """Give up a lease so that it is due at ``due_at``; ``False``: it was not ours any more."""
    back = await run(
        conn,
        "hand_back_operation",
        tenant=key[0],
        id=key[1],
        owner=owner,
        epoch=epoch,
        due_at=due_at,
    )
    return back.one_or_none() is not None
