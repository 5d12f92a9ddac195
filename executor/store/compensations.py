"""Closings that wait to be compensated, and the reopenings that would undo them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection

from executor.domain.errors import LostRace
from executor.domain.ids import OperationId, RunId, TenantId
from executor.store.operations import OperationKey
from executor.store.statements import run


@dataclass(frozen=True, slots=True)
class ReopeningNames:
    """What a reopening names and never changes, so that it can be read before any lock."""

    tenant_id: TenantId
    id: OperationId
    run_id: RunId
    closing: OperationId

    @property
    def key(self) -> OperationKey:
        """The reopening's place in every index."""
        return self.tenant_id, self.id

    @property
    def closing_key(self) -> OperationKey:
        """That of the closing which it would undo."""
        return self.tenant_id, self.closing


async def due(conn: AsyncConnection, most: int) -> list[OperationKey]:
    """Find closings that are to be looked at now; takes no lock."""
    rows = await run(conn, "closings_to_compensate", most=most)
    return [(TenantId(row.tenant_id), OperationId(row.id)) for row in rows]


async def plan(
    conn: AsyncConnection, closings: Sequence[tuple[OperationKey, datetime | None]]
) -> None:
    """Say when locked closings are looked at again; ``None``: there is a reopening now."""
    if not closings:
        return
    planned = await run(
        conn,
        "plan_compensations",
        tenants=[tenant for (tenant, _), _ in closings],
        ids=[id_ for (_, id_), _ in closings],
        ats=[at for _, at in closings],
    )
    if len(planned.all()) != len(closings):
        raise LostRace("plan_compensations", len(closings))


async def about(conn: AsyncConnection, keys: Iterable[OperationKey]) -> list[ReopeningNames]:
    """Find the reopenings among operations, and those of the closings among them; no lock."""
    wanted = list(keys)
    rows = await run(
        conn,
        "reopenings_of",
        tenants=[tenant for tenant, _ in wanted],
        ids=[id_ for _, id_ in wanted],
    )
    return [
        ReopeningNames(
            TenantId(row.tenant_id),
            OperationId(row.id),
            RunId(row.run_id),
            OperationId(row.compensates),
        )
        for row in rows
    ]


async def show_reopening(
    conn: AsyncConnection, tenant: TenantId, closing: OperationId
) -> Row[*tuple[Any, ...]] | None:
    """Read the reopening of a closing, if there is one."""
    return (await run(conn, "show_reopening", tenant=tenant, id=closing)).one_or_none()
