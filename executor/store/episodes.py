"""Our own count of how often a ticket came back after we closed it; part of its intent key."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncConnection

from executor.domain.errors import LostRace
from executor.domain.ids import TenantId
from executor.store.statements import run


@dataclass(frozen=True, slots=True)
class Episode:
    """Our own count of how often a ticket came back after we closed it."""

    number: int
    closed_version: int | None


TicketKey = tuple[TenantId, str, str]


async def lock(conn: AsyncConnection, tickets: Iterable[TicketKey]) -> dict[TicketKey, Episode]:
    """Lock the counts of these (tenant, desk, ticket), beginning them where there are none."""
    wanted = sorted(set(tickets))
    rows = await run(
        conn,
        "lock_episodes",
        tenants=[tenant for tenant, _, _ in wanted],
        desks=[desk for _, desk, _ in wanted],
        ticket_ids=[ticket for _, _, ticket in wanted],
    )
    return {
        (TenantId(row.tenant_id), row.desk, row.ticket_id): Episode(row.episode, row.closed_version)
        for row in rows
    }


async def begin(conn: AsyncConnection, ticket: TicketKey, episode: int) -> None:
    """Count one more episode of a ticket whose count is locked."""
    begun = await run(
        conn,
        "begin_episode",
        tenant=ticket[0],
        desk=ticket[1],
        ticket=ticket[2],
        episode=episode,
    )
    if begun.one_or_none() is None:
        raise LostRace("begin_episode", 1)


async def record_closes(conn: AsyncConnection, closes: Sequence[tuple[TicketKey, int]]) -> None:
    """Keep the versions that our own closes produced."""
    await run(
        conn,
        "record_closes",
        tenants=[ticket[0] for ticket, _ in closes],
        desks=[ticket[1] for ticket, _ in closes],
        ticket_ids=[ticket[2] for ticket, _ in closes],
        versions=[version for _, version in closes],
    )
