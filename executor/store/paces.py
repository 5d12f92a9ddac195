"""How fast calls to the outside may be made, in one row for all processes; see ``domain.pace``."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from sqlalchemy.ext.asyncio import AsyncConnection

from executor.domain.ids import TenantId
from executor.domain.turn import WORKSPACE
from executor.store.statements import run


class Family(StrEnum):
    """Calls that share a limit."""

    POST = "post"
    UPDATE = "update"
    SEARCH = "search"


PaceKey = tuple[Family, str]
"""A family of calls, and the channel they are made in, or ``WORKSPACE``."""


async def lock(conn: AsyncConnection, tenant: TenantId) -> dict[PaceKey, datetime]:
    """Lock all paces of a tenant, before its cards; the workspace's own are always there."""
    rows = (await run(conn, "lock_paces", tenant=tenant)).all()
    if sum(row.channel == WORKSPACE for row in rows) < len(Family):
        await run(conn, "begin_paces", tenant=tenant, families=sorted(Family))
        rows = (await run(conn, "lock_paces", tenant=tenant)).all()
    return {(Family(row.family), row.channel): row.free_at for row in rows}


async def keep(conn: AsyncConnection, tenant: TenantId, paces: Mapping[PaceKey, datetime]) -> None:
    """Record what was given out."""
    if not paces:
        return
    await run(
        conn,
        "keep_paces",
        tenant=tenant,
        families=[family for family, _ in paces],
        channels=[channel for _, channel in paces],
        free_ats=list(paces.values()),
    )


async def hold(
    conn: AsyncConnection, tenant: TenantId, family: Family, channel: str, seconds: float
) -> None:
    """Hold a family of calls back, for all processes."""
    await run(conn, "hold_pace", tenant=tenant, family=family, channel=channel, seconds=seconds)
