"""Places where nothing can be shown just now; see ``domain.turn``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy.ext.asyncio import AsyncConnection

from executor.domain.ids import TenantId
from executor.domain.turn import Trouble
from executor.store.statements import run

FIRST_LOOK_SECONDS = 1.0
LONGEST_SECONDS = 60.0
"""A place is looked at again at the latest after this time, so that it heals by itself."""


@dataclass(frozen=True, slots=True)
class EndedTrouble:
    """A trouble that a message which arrived has ended."""

    place: str
    problem: str
    lasted: timedelta


async def note(
    conn: AsyncConnection, tenant: TenantId, place: str, problem: str, *, lasting: bool
) -> bool:
    """Close a place until somebody has looked; says whether the trouble is a new one."""
    noted = await run(
        conn,
        "note_trouble",
        tenant=tenant,
        place=place,
        problem=problem,
        lasting=lasting,
        first_seconds=FIRST_LOOK_SECONDS,
        longest_seconds=LONGEST_SECONDS,
    )
    return bool(noted.one().is_new)


async def read(conn: AsyncConnection, tenant: TenantId) -> dict[str, Trouble]:
    """Read the troubles of a tenant by their places; takes no lock."""
    rows = await run(conn, "read_troubles", tenant=tenant)
    return {
        row.place: Trouble(row.place, row.problem, row.lasting, row.since, row.look_at)
        for row in rows
    }


async def claim(
    conn: AsyncConnection, tenant: TenantId, most: int, lease_seconds: float
) -> list[Trouble]:
    """Take troubles that are due for a look."""
    rows = await run(conn, "claim_troubles", tenant=tenant, most=most, lease_seconds=lease_seconds)
    return [Trouble(r.place, r.problem, r.lasting, r.since, r.look_at) for r in rows]


async def forget(conn: AsyncConnection, tenant: TenantId, kept: Sequence[str]) -> None:
    """Forget troubles of other places than ``kept`` after an hour."""
    await run(conn, "forget_troubles", tenant=tenant, kept=list(kept))


async def open_(conn: AsyncConnection, tenant: TenantId, place: str) -> None:
    """Let the next message try a place."""
    await run(conn, "open_place", tenant=tenant, place=place)


async def hasten(conn: AsyncConnection, tenant: TenantId, place: str) -> bool:
    """Have a closed place looked at now; ``False``: it is not closed."""
    return (await run(conn, "hasten_look", tenant=tenant, place=place)).rowcount > 0


async def end(conn: AsyncConnection, tenant: TenantId, places: Iterable[str]) -> list[EndedTrouble]:
    """Forget the troubles of places to which a message came, and return them."""
    rows = await run(conn, "end_troubles", tenant=tenant, places=sorted(set(places)))
    return [EndedTrouble(row.place, row.problem, row.lasted) for row in rows]
