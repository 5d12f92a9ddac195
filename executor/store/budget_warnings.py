"""Who was told that a limit is near: recorded once for each run and each day."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from executor.domain.ids import TenantId
from executor.store.budgets import DayKey, RunKey
from executor.store.card_records import AnyRow
from executor.store.statements import run


async def warn_of_run(
    conn: AsyncConnection, key: RunKey, id_: UUID, used: int, now: datetime
) -> bool:
    """Record that people are told of a run's limit; ``False``: they were told before."""
    made = await run(conn, "warn_of_run", tenant=key[0], run=key[1], id=id_, used=used, now=now)
    return made.one_or_none() is not None


async def warn_of_day(
    conn: AsyncConnection, key: DayKey, id_: UUID, used: int, limit: int, now: datetime
) -> bool:
    """Record that people are told of a day's limit; ``False``: they were told before."""
    made = await run(
        conn, "warn_of_day", tenant=key[0], day=key[1], id=id_, used=used, limit=limit, now=now
    )
    return made.one_or_none() is not None


async def show(conn: AsyncConnection, tenant: TenantId, id_: UUID) -> AnyRow | None:
    """Read one warning as its message tells it."""
    return (await run(conn, "show_budget_warning", tenant=tenant, id=id_)).one_or_none()
