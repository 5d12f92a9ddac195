"""Which tool call of which run proposed which operation; several may converge on one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncConnection

from executor.domain.errors import LostRace
from executor.domain.ids import OperationId, PrincipalId, RunId, TenantId
from executor.domain.operation import OperationStatus
from executor.domain.payloads import JsonObject
from executor.domain.transition import Reason
from executor.store.operations import OperationKey
from executor.store.statements import run


@dataclass(frozen=True, slots=True)
class ProposalRow:
    """What one tool call proposed, and how far the operation is.

    ``editor`` is the person who wrote what it says now, where one did. ``evidence`` is that of the
    newest attempt at the call of a tool, empty for all else.
    """

    step: int
    ordinal: int
    operation_id: OperationId
    linked: bool
    number: int
    status: OperationStatus
    reason: Reason | None
    detail: JsonObject
    intent: str
    editor: PrincipalId | None
    kind: str
    evidence: JsonObject


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
            None if row.editor is None else PrincipalId(row.editor),
            row.kind,
            row.evidence or {},
        )
        for row in rows
    ]


@dataclass(frozen=True, slots=True)
class Asking:
    """One tool call that an operation came of, or a person who asked for it without one."""

    run_id: RunId
    step: int
    ordinal: int
    requester: PrincipalId
    linked: bool
    answered: bool


async def of_operation(conn: AsyncConnection, key: OperationKey) -> list[Asking]:
    """Read whose tool calls proposed one operation; those are its requesters."""
    rows = await run(conn, "proposals_of_operation", tenant=key[0], operation=key[1])
    return [
        Asking(
            RunId(row.run_id),
            row.step,
            row.ordinal,
            PrincipalId(row.requester),
            row.linked,
            row.answered,
        )
        for row in rows
    ]


async def repoint(conn: AsyncConnection, asked: Sequence[Asking], to: OperationKey) -> None:
    """Let tool calls wait for another operation, whose requesters they are from now on.

    The operation that they waited for is locked, or their runs are.
    """
    if not asked:
        return
    moved = await run(
        conn,
        "repoint_proposals",
        tenant=to[0],
        operation=to[1],
        runs=[a.run_id for a in asked],
        steps=[a.step for a in asked],
        ordinals=[a.ordinal for a in asked],
    )
    missing = len(asked) - len(moved.all())
    if missing:
        raise LostRace("repoint_proposals", missing)


async def add_askers(
    conn: AsyncConnection,
    key: OperationKey,
    run_id: RunId,
    people: Sequence[PrincipalId],
    now: datetime,
) -> None:
    """Count people as requesters of an operation of a locked run, though no tool call is theirs."""
    if people:
        await run(
            conn,
            "insert_askers",
            tenant=key[0],
            run=run_id,
            operation=key[1],
            requesters=list(people),
            now=now,
        )


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
