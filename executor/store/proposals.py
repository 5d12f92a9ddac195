"""Which tool call of which run proposed which operation; several may converge on one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncConnection

from executor.domain.ids import OperationId, PrincipalId, RunId, TenantId
from executor.domain.operation import OperationStatus
from executor.domain.payloads import JsonObject
from executor.domain.transition import Reason
from executor.store.operations import OperationKey
from executor.store.statements import run


@dataclass(frozen=True, slots=True)
class ProposalRow:
    """What one tool call proposed, and how far the operation is."""

    step: int
    ordinal: int
    operation_id: OperationId
    linked: bool
    number: int
    status: OperationStatus
    reason: Reason | None
    detail: JsonObject
    intent: str


@dataclass(frozen=True, slots=True)
class Proposal:
    """Which tool call of which run proposed which operation."""

    tenant_id: TenantId
    run_id: RunId
    step: int
    ordinal: int
    operation_id: OperationId
    requester: PrincipalId
    linked: bool


async def record(conn: AsyncConnection, proposals: Sequence[Proposal], now: datetime) -> None:
    """Record who proposed what; the same tool call again: ``DuplicateKey``."""
    await run(
        conn,
        "insert_proposals",
        tenants=[p.tenant_id for p in proposals],
        runs=[p.run_id for p in proposals],
        steps=[p.step for p in proposals],
        ordinals=[p.ordinal for p in proposals],
        operations=[p.operation_id for p in proposals],
        requesters=[p.requester for p in proposals],
        linkeds=[p.linked for p in proposals],
        now=now,
    )


async def of_run(conn: AsyncConnection, key: tuple[TenantId, RunId]) -> list[ProposalRow]:
    """Read what a run's tool calls proposed, in order."""
    rows = await run(conn, "proposals_of_run", tenant=key[0], run=key[1])
    return [
        ProposalRow(
            row.step,
            row.ordinal,
            OperationId(row.operation_id),
            row.linked,
            row.number,
            OperationStatus(row.status),
            None if row.reason is None else Reason(row.reason),
            row.detail,
            row.intent,
        )
        for row in rows
    ]


async def waiting_runs(
    conn: AsyncConnection, keys: Iterable[OperationKey]
) -> list[tuple[TenantId, RunId]]:
    """Find the runs whose proposals named these operations."""
    wanted = list(keys)
    rows = await run(
        conn,
        "runs_that_wait_for",
        tenants=[tenant for tenant, _ in wanted],
        operations=[id_ for _, id_ in wanted],
    )
    return [(TenantId(row.tenant_id), RunId(row.run_id)) for row in rows]


async def requesters_of(
    conn: AsyncConnection, keys: Iterable[OperationKey]
) -> dict[OperationKey, list[tuple[PrincipalId, bool]]]:
    """Read who asked for these operations, each with whether that was by a linked proposal."""
    wanted = list(keys)
    rows = await run(
        conn,
        "requesters_of",
        tenants=[tenant for tenant, _ in wanted],
        operations=[id_ for _, id_ in wanted],
    )
    found: dict[OperationKey, list[tuple[PrincipalId, bool]]] = {}
    for row in rows:
        key = (TenantId(row.tenant_id), OperationId(row.operation_id))
        found.setdefault(key, []).append((PrincipalId(row.requester), row.linked))
    return found
