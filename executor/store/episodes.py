"""Our own count of how often a ticket came back after we closed it; part of its intent key."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncConnection

from executor.domain.errors import LostRace
from executor.domain.ids import TenantId
from executor.domain.stamp import DeskVersion, Stamp, stamp_from
from executor.domain.ticket import BUILTIN_DESK
from executor.store.operation_lookups import OperationNames
from executor.store.statements import run


@dataclass(frozen=True, slots=True)
class Episode:
    """Our own count of how often a ticket came back after we closed it.

    ``closed`` is the version that our close produced, if there was one in this episode.
    """

    number: int
    closed: DeskVersion | None


TicketKey = tuple[TenantId, str, str]


@dataclass(frozen=True, slots=True)
class Close:
    """A close of ours, in the episode that its intent names, and the version that it produced."""

    ticket: TicketKey
    episode: int
    version: DeskVersion


def outside(names: Iterable[OperationNames]) -> set[TicketKey]:
    """Pick the tickets of outside desks, whose count stands for the ticket's own lock."""
    named = ((n.tenant_id, n.ticket) for n in names)
    return {(t, *ticket) for t, ticket in named if ticket and ticket[0] != BUILTIN_DESK}


async def lock(conn: AsyncConnection, tickets: Iterable[TicketKey]) -> dict[TicketKey, Episode]:
    """Lock the counts of these (tenant, desk, ticket), beginning them where there are none."""
    wanted = sorted(set(tickets))
    if not wanted:
        return {}
    rows = await run(
        conn,
        "lock_episodes",
        tenants=[tenant for tenant, _, _ in wanted],
        desks=[desk for _, desk, _ in wanted],
        ticket_ids=[ticket for _, _, ticket in wanted],
    )
    return {
        (TenantId(row.tenant_id), row.desk, row.ticket_id): Episode(
            row.episode, stamp_from(row.closed_stamp) or row.closed_version
        )
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


async def record_closes(conn: AsyncConnection, closes: Sequence[Close]) -> None:
    """Keep the versions that our own closes produced; the counts are locked, or their tickets.

    Proof of a close that comes after its episode is over changes nothing.
    """
    if not closes:
        return
    await run(
        conn,
        "record_closes",
        tenants=[close.ticket[0] for close in closes],
        desks=[close.ticket[1] for close in closes],
        ticket_ids=[close.ticket[2] for close in closes],
        episodes=[close.episode for close in closes],
        versions=[c.version if isinstance(c.version, int) else None for c in closes],
        stamps=[
            json.dumps(c.version.as_json()) if isinstance(c.version, Stamp) else None
            for c in closes
        ],
    )
