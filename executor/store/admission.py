"""Who may join the queue, who gets a place at work, and whose turn it is to be served."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy.ext.asyncio import AsyncConnection

from executor.domain.ids import TenantId
from executor.store.statements import run


class Work(StrEnum):
    """What tenants take turns at."""

    RUN = "run"
    OPERATION = "operation"


@dataclass(frozen=True, slots=True)
class Admission:
    """How many runs may join a tenant's queue, and how many wait there already.

    ``waiting`` is known where not all that were asked for may.
    """

    admitted: int
    waiting: int | None


async def admit_to_queue(
    conn: AsyncConnection, tenant: TenantId, asked: int, most: int
) -> Admission:
    """Hold room for at most ``asked`` runs in a queue of at most ``most``, until COMMIT.

    One transaction calls it once for each tenant, in their order. Less than what was asked for is
    the truth of this moment: whatever else was starting has committed or is gone.
    """
    row = (await run(conn, "admit_to_queue", tenant=tenant, asked=asked, most=most)).one()
    return Admission(row.admitted, row.waiting)


@dataclass(frozen=True, slots=True)
class Places:
    """How many runs of a tenant are at work, and how many may be."""

    at_work: int
    most: int

    @property
    def is_full(self) -> bool:
        """Whether whatever else is due has to wait for one of them."""
        return self.at_work >= self.most


async def count_places(conn: AsyncConnection, tenant: TenantId) -> Places | None:
    """Count one tenant's runs at work; ``None`` where no policy is active."""
    row = (await run(conn, "count_places", tenant=tenant)).one_or_none()
    return None if row is None else Places(row.at_work, row.max_active_runs)


async def count_queue(conn: AsyncConnection, tenant: TenantId) -> int:
    """Count one tenant's runs that wait to begin."""
    queued: int = (await run(conn, "count_queue", tenant=tenant)).scalar_one()
    return queued


async def tenants_with_due_work(
    conn: AsyncConnection, work: Work, tried: Collection[TenantId], most: int
) -> list[TenantId]:
    """Find at most ``most`` tenants that can be served now, in turn, none of those ``tried``."""
    if work is Work.RUN:
        rows = await run(conn, "tenants_with_due_runs", tried=list(tried), most=most)
    else:
        rows = await run(conn, "tenants_with_due_operations", tried=list(tried), most=most)
    return [TenantId(row.tenant_id) for row in rows]


async def take_turns(
    conn: AsyncConnection, work: Work, tenants: Sequence[TenantId]
) -> list[TenantId]:
    """Take the turns of those whom nobody else serves, and return them in the order given."""
    rows = await run(conn, "take_turns", work=work.value, tenants=list(tenants))
    return _in_order(tenants, {row.tenant_id for row in rows})


async def wait_for_turns(
    conn: AsyncConnection, work: Work, tenants: Sequence[TenantId]
) -> list[TenantId]:
    """Take turns when whoever has them commits; only for a transaction that holds no turn."""
    rows = await run(conn, "wait_for_turns", work=work.value, tenants=list(tenants))
    return _in_order(tenants, {row.tenant_id for row in rows})


def _in_order(tenants: Sequence[TenantId], taken: Collection[str]) -> list[TenantId]:
    return [tenant for tenant in tenants if tenant in taken]
