"""What people and customers do at the built-in desk; each use case is one transaction of its own.

The ticket is locked first and the time is read after it, so that no change is older than the change
before it. What an approved operation does to a ticket is not here but in its opening (T4).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from executor.domain.declaration import Declaration, Guard
from executor.domain.effect import Capability, EffectKind
from executor.domain.ids import TenantId
from executor.domain.new_ticket import LONGEST_BODY, ImportResult, NewTicket
from executor.domain.ticket import ChangeKind, Ticket, TicketStatus
from executor.domain.transition import NoChange, Reason, Refused
from executor.store import clock, desk
from executor.store.database import Database
from executor.store.desk import Changed, Closing, TicketEdit

BUILT_IN = Declaration(
    "Signoff's own desk",
    EffectKind.TICKET_CLOSE,
    Capability.TRANSACTIONAL,
    "nobody",
    guard=Guard.LOCKED,
)

REOPENED = replace(BUILT_IN, kind=EffectKind.TICKET_REOPEN)
"""What is promised when it opens a ticket again."""

MOST_FOUND = 100
"""Tickets that one search returns at most."""


async def import_tickets(
    database: Database, tenant: TenantId, tickets: Iterable[NewTicket]
) -> list[tuple[NewTicket, ImportResult]]:
    """Import tickets one transaction each, and say of each what became of it.

    A second call changes nothing, so an import that was interrupted is simply run again.
    """
    results: list[tuple[NewTicket, ImportResult]] = []
    for ticket in tickets:
        async with database.transaction() as conn:
            now = await clock.now(conn)
            results.append((ticket, await desk.import_ticket(conn, tenant, ticket, now)))
    return results


async def show_ticket(database: Database, tenant: TenantId, ticket_id: str) -> Ticket | None:
    """Read one ticket with its conversation."""
    async with database.transaction() as conn:
        return await desk.read_ticket(conn, tenant, ticket_id)


async def find_tickets(
    database: Database, tenant: TenantId, query: str = "", *, limit: int = 20
) -> list[Ticket]:
    """Find tickets that contain every word, open ones first; an empty query finds all."""
    async with database.transaction() as conn:
        return await desk.search_tickets(conn, tenant, query, min(limit, MOST_FOUND))


async def write_as_customer(
    database: Database, tenant: TenantId, ticket_id: str, body: str
) -> Changed | Refused:
    """Record what the customer wrote, under their own name; opens a closed ticket again."""
    return await _write(database, tenant, ticket_id, ChangeKind.CUSTOMER_MESSAGE, None, body)


async def write_as_agent(
    database: Database, tenant: TenantId, ticket_id: str, *, author: str, body: str
) -> Changed | Refused:
    """Record an agent's answer; the status stays as it is."""
    return await _write(database, tenant, ticket_id, ChangeKind.AGENT_MESSAGE, author, body)


async def write_note(
    database: Database, tenant: TenantId, ticket_id: str, *, author: str, body: str
) -> Changed | Refused:
    """Record a note that the customer does not see; the status stays as it is."""
    return await _write(database, tenant, ticket_id, ChangeKind.NOTE, author, body)


async def edit_ticket(
    database: Database, tenant: TenantId, ticket_id: str, edit: TicketEdit, *, author: str
) -> Changed | NoChange | Refused:
    """Change a ticket's subject, customer or language."""
    async with database.transaction() as conn:
        await desk.lock_tickets(conn, tenant, [ticket_id])
        now = await clock.now(conn)
        return await desk.edit_ticket(conn, tenant, ticket_id, edit, author=author, now=now)


async def reopen_ticket(
    database: Database, tenant: TenantId, ticket_id: str, *, author: str, body: str = ""
) -> Changed | NoChange | Refused:
    """Open a closed ticket again; ``NoChange`` when it is open."""
    async with database.transaction() as conn:
        await desk.lock_tickets(conn, tenant, [ticket_id])
        now = await clock.now(conn)
        return await desk.reopen_ticket(conn, tenant, ticket_id, author=author, body=body, now=now)


async def close_ticket(
    database: Database, tenant: TenantId, ticket_id: str, *, author: str, body: str = ""
) -> Changed | NoChange | Refused:
    """Close a ticket by hand and without an email; ``NoChange`` when it is closed."""
    async with database.transaction() as conn:
        ticket = (await desk.lock_tickets(conn, tenant, [ticket_id])).get(ticket_id)
        if ticket is None:
            return Refused(Reason.TICKET_UNKNOWN, {"ticket": ticket_id})
        if ticket.status is TicketStatus.CLOSED:
            return NoChange(Reason.TICKET_CLOSED)
        now = await clock.now(conn)
        item = Closing(tenant, ticket_id, ticket.version, author, body, operation_id=None)
        [version] = await desk.close_tickets(conn, [item], now)
        assert version is not None, "the ticket is open and locked"
        return Changed(version)


async def _write(
    database: Database,
    tenant: TenantId,
    ticket_id: str,
    kind: ChangeKind,
    author: str | None,
    body: str,
) -> Changed | Refused:
    if not body.strip():
        return Refused(Reason.CONTENT_INVALID, {"field": "body", "problem": "it is empty"})
    if len(body) > LONGEST_BODY:
        return Refused(Reason.CONTENT_TOO_LONG, {"field": "body", "limit": LONGEST_BODY})
    async with database.transaction() as conn:
        ticket = (await desk.lock_tickets(conn, tenant, [ticket_id])).get(ticket_id)
        if ticket is None:
            return Refused(Reason.TICKET_UNKNOWN, {"ticket": ticket_id})
        now = await clock.now(conn)
        return await desk.append_change(
            conn,
            tenant,
            ticket_id,
            kind=kind,
            author=ticket.customer_name if author is None else author,
            body=body,
            now=now,
        )
