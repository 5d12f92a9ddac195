"""Which operations there are under a name, a key or a run; nothing here takes a lock.

What never changes may be relied on; of the rest one must lock what was found.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncConnection

from executor.domain.ids import OperationId, RunId, TenantId
from executor.domain.operation import OperationStatus
from executor.store.operations import OperationKey
from executor.store.statements import run


@dataclass(frozen=True, slots=True)
class OperationNames:
    """What an operation names and never changes, so that it can be read before any lock.

    Only one that is about a ticket names a ``ticket``, as its desk and its id.
    """

    tenant_id: TenantId
    run_id: RunId
    kind: str
    ticket: tuple[str, str] | None
    intent_key: str
    compensates: OperationId | None

    @property
    def desk(self) -> str:
        """The desk of the ticket that it is about."""
        return self._ticket[0]

    @property
    def ticket_id(self) -> str:
        """The ticket that it is about."""
        return self._ticket[1]

    @property
    def _ticket(self) -> tuple[str, str]:
        assert self.ticket is not None, f"{self.kind} is about no ticket"
        return self.ticket


async def peek(conn: AsyncConnection, keys: Iterable[OperationKey]) -> list[OperationNames]:
    """Read the runs and tickets that operations name; takes no lock."""
    wanted = list(keys)
    rows = await run(
        conn,
        "peek_operations",
        tenants=[tenant for tenant, _ in wanted],
        ids=[id_ for _, id_ in wanted],
    )
    return [
        OperationNames(
            TenantId(row.tenant_id),
            RunId(row.run_id),
            row.kind,
            None if row.ticket_id is None else (row.desk, row.ticket_id),
            row.intent_key,
            None if row.compensates is None else OperationId(row.compensates),
        )
        for row in rows
    ]


async def of_keys(
    conn: AsyncConnection, keys: Iterable[tuple[TenantId, str]]
) -> list[tuple[TenantId, OperationId, str, OperationStatus]]:
    """Find what is live under these intent keys, what succeeded, and what failed; takes no lock.

    What failed may still turn out to have succeeded: lock it before relying on its status.
    """
    wanted = list(keys)
    rows = await run(
        conn,
        "operations_of_keys",
        tenants=[tenant for tenant, _ in wanted],
        intent_keys=[key for _, key in wanted],
    )
    return [
        (
            TenantId(row.tenant_id),
            OperationId(row.id),
            row.intent_key,
            OperationStatus(row.status),
        )
        for row in rows
    ]


async def of_runs(
    conn: AsyncConnection, runs: Iterable[tuple[TenantId, RunId]]
) -> list[tuple[TenantId, OperationId, RunId, int, OperationStatus]]:
    """Find the operations that belong to these runs; takes no lock."""
    wanted = list(runs)
    rows = await run(
        conn,
        "operations_of_runs",
        tenants=[tenant for tenant, _ in wanted],
        runs=[id_ for _, id_ in wanted],
    )
    return [
        (
            TenantId(row.tenant_id),
            OperationId(row.id),
            RunId(row.run_id),
            row.number,
            OperationStatus(row.status),
        )
        for row in rows
    ]
