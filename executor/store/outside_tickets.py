"""Tickets of outside desks as they were seen last: for people to look at, never to be compared.

Their rows are locked last of all, after the journal's heads, and in the order of their keys.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from executor.domain.ids import TenantId
from executor.domain.payloads import JsonObject
from executor.domain.ticket import ChangeKind, Ticket, TicketChange, TicketStatus
from executor.store.statements import run

MOST_KEPT = 20
"""Changes that are kept of one ticket, the newest."""

LONGEST_KEPT = 4_000
"""Characters that are kept of one change."""


@dataclass(frozen=True, slots=True)
class SeenTicket:
    """What was seen of one ticket, and when, by the database's clock."""

    tenant: TenantId
    ticket: Ticket
    at: datetime


async def keep(conn: AsyncConnection, seen: Sequence[SeenTicket]) -> None:
    """Keep what was seen; something older than what is kept already changes nothing."""
    newest = {(s.tenant, s.ticket.desk, s.ticket.id): s for s in sorted(seen, key=lambda s: s.at)}
    if not newest:
        return
    await run(
        conn,
        "keep_outside_tickets",
        tenants=[tenant for tenant, _, _ in newest],
        desks=[desk for _, desk, _ in newest],
        ticket_ids=[ticket for _, _, ticket in newest],
        seen=[json.dumps(_document(s.ticket)) for s in newest.values()],
        times=[s.at for s in newest.values()],
    )


async def read(conn: AsyncConnection, tenant: TenantId, desk: str, ticket_id: str) -> Ticket | None:
    """Read what was seen last of one ticket, with its newest changes; ``None``: never seen."""
    found = await run(conn, "show_outside_ticket", tenant=tenant, desk=desk, ticket=ticket_id)
    row = found.one_or_none()
    return None if row is None else _ticket(desk, ticket_id, row.seen)


def _document(ticket: Ticket) -> JsonObject:
    kept = replace(
        ticket,
        changes=[
            replace(change, body=change.body[:LONGEST_KEPT])
            for change in ticket.changes[-MOST_KEPT:]
        ],
    )
    return {**kept.as_tool_result(), "updated_at": ticket.updated_at.isoformat()}


def _ticket(desk: str, ticket_id: str, seen: dict[str, Any]) -> Ticket:
    return Ticket(
        desk=desk,
        id=ticket_id,
        version=seen["version"],
        status=TicketStatus(seen["status"]),
        subject=seen["subject"],
        customer_name=seen["customer"]["name"],
        customer_email=seen["customer"]["email"],
        language=seen["language"],
        times_opened=seen["times_opened"],
        updated_at=datetime.fromisoformat(seen["updated_at"]),
        changes=tuple(
            TicketChange(
                change["version"],
                ChangeKind(change["kind"]),
                change["author"],
                change["body"],
                datetime.fromisoformat(change["at"]),
            )
            for change in seen["conversation"]
        ),
    )
