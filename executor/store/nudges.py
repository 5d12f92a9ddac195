"""Nudges: when approvals are to be reminded of, and what people were reminded of."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from executor.domain.ids import ApprovalId, OperationId, TenantId
from executor.domain.nudge import NudgeKind
from executor.store.card_records import AnyRow
from executor.store.operations import OperationKey
from executor.store.statements import run


@dataclass(frozen=True, slots=True)
class NewNudge:
    """A nudge that is made now; ``whom`` are user ids, and ``group:…`` for user groups."""

    tenant_id: TenantId
    id: UUID
    operation_id: OperationId
    approval_id: ApprovalId
    kind: NudgeKind
    whom: tuple[str, ...]


async def to_make(conn: AsyncConnection, most: int) -> list[OperationKey]:
    """Find operations whose open approval people are to be reminded of; takes no lock."""
    rows = await run(conn, "approvals_to_nudge_about", most=most)
    return [(TenantId(row.tenant_id), OperationId(row.operation_id)) for row in rows]


async def made(
    conn: AsyncConnection, approvals: Iterable[tuple[TenantId, ApprovalId]]
) -> dict[ApprovalId, int]:
    """Read how many nudges of approvals are over; their operations are locked."""
    wanted = list(approvals)
    rows = await run(
        conn,
        "nudges_made",
        tenants=[tenant for tenant, _ in wanted],
        ids=[id_ for _, id_ in wanted],
    )
    return {ApprovalId(row.id): row.nudges_made for row in rows}


async def count(
    conn: AsyncConnection, counts: Sequence[tuple[TenantId, ApprovalId, int, datetime | None]]
) -> None:
    """Keep how many nudges of approvals are over, and when the next one is due."""
    if counts:
        await run(
            conn,
            "count_nudges",
            tenants=[tenant for tenant, *_ in counts],
            ids=[id_ for _, id_, *_ in counts],
            made=[over for _, _, over, _ in counts],
            next_ats=[next_at for *_, next_at in counts],
        )


async def insert(conn: AsyncConnection, new: Sequence[NewNudge], now: datetime) -> None:
    """Record nudges; each becomes a message."""
    if new:
        await run(
            conn,
            "insert_nudges",
            tenants=[n.tenant_id for n in new],
            ids=[n.id for n in new],
            operations=[n.operation_id for n in new],
            approvals=[n.approval_id for n in new],
            kinds=[n.kind.value for n in new],
            whoms=[json.dumps(n.whom) for n in new],
            now=now,
        )


async def show(conn: AsyncConnection, tenant: TenantId, id_: UUID) -> AnyRow | None:
    """Read one nudge as its message tells it."""
    return (await run(conn, "show_nudge", tenant=tenant, id=id_)).one_or_none()


async def of_operation(
    conn: AsyncConnection, tenant: TenantId, operation: OperationId
) -> Sequence[AnyRow]:
    """Read all nudges about one operation, oldest first."""
    return (await run(conn, "nudges_of_operation", tenant=tenant, operation=operation)).all()


async def end(conn: AsyncConnection, most: int) -> list[tuple[TenantId, UUID]]:
    """Let reminders of what does not wait any more say so; returns those."""
    return [(TenantId(row.tenant_id), row.id) for row in await run(conn, "end_nudges", most=most)]
