"""Repeated wishes: the run that the same words of the same person started a moment ago."""

from __future__ import annotations

from sqlalchemy.ext.asyncio import AsyncConnection

from executor.domain.ids import PrincipalId, RunId, TenantId
from executor.store.statements import run

_MOST_LOOKED_AT = 1_000


async def lock_wish(
    conn: AsyncConnection, tenant: TenantId, requester: PrincipalId, goal: str
) -> None:
    """Let equal wishes of one person wait for each other until COMMIT."""
    await run(conn, "lock_wish", tenant=tenant, requester=requester, goal=goal)


async def find_recent(
    conn: AsyncConnection, tenant: TenantId, requester: PrincipalId, goal: str, seconds: float
) -> tuple[RunId, int] | None:
    """Find the newest run of an equal wish that is at most ``seconds`` old and has not ended."""
    found = await run(
        conn,
        "recent_run",
        tenant=tenant,
        requester=requester,
        goal=goal,
        seconds=seconds,
        most=_MOST_LOOKED_AT,
    )
    row = found.one_or_none()
    return None if row is None else (RunId(row.id), row.number)
