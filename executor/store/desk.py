"""The built-in ticket desk: every change is one version, written by one statement with its event.

``closed`` is what a support desk calls solved: the customer's next message opens the ticket again
and counts in ``times_opened``; replies and notes of agents leave the status as it is. A close is
conditional on the version that was approved. All functions run in the caller's transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from executor.domain.errors import LostRace
from executor.domain.ids import OperationId, TenantId
from executor.domain.new_ticket import (
    Imported,
    ImportResult,
    NewTicket,
    compare,
)
from executor.domain.payloads import storable_text
from executor.domain.ticket import (
    BUILTIN_DESK,
    ChangeKind,
    Ticket,
    TicketChange,
    TicketStatus,
)
from executor.domain.transition import NoChange, Reason, Refused
from executor.store.statements import run

if TYPE_CHECKING:
    from sqlalchemy import Row
    from sqlalchemy.ext.asyncio import AsyncConnection

MOST_SEARCH_WORDS = 8


@dataclass(frozen=True, slots=True)
class Changed:
    """The ticket stands at ``version`` now; ``reopened`` says that this opened it again."""

    version: int
    reopened: bool = False


@dataclass(frozen=True, slots=True)
class TicketEdit:
    """New values of a ticket's fields; ``None`` leaves a field as it is."""

    subject: str | None = None
    customer_name: str | None = None
    customer_email: str | None = None
    language: str | None = None


@dataclass(frozen=True, slots=True)
class Closing:
    """One ticket to close at the version that was approved; ``operation_id`` when one asked."""

    tenant: TenantId
    ticket_id: str
    version: int
    author: str
    body: str
    operation_id: OperationId | None


@dataclass(frozen=True, slots=True)
class Reopening:
    """One ticket to open again at the version that our own close made, for an operation."""

    tenant: TenantId
    ticket_id: str
    version: int
    author: str
    body: str
    operation_id: OperationId


async def import_ticket(
    conn: AsyncConnection, tenant: TenantId, ticket: NewTicket, now: datetime
) -> ImportResult:
    """Insert one ticket unless its id is taken.

    A second import of the same ticket changes nothing; other content under the id is
    ``OtherContent``. Waits for a concurrent import of the same id.
    """
    changes = ticket.changes(now)
    result = await run(
        conn,
        "desk_import_ticket",
        tenant=tenant,
        ticket=ticket.id,
        status=ticket.status.value,
        subject=ticket.subject,
        customer_name=ticket.customer.name,
        customer_email=ticket.customer.email,
        language=ticket.language,
        created_at=min(change.happened_at for change in changes),
        updated_at=max(change.happened_at for change in changes),
        kinds=[change.kind.value for change in changes],
        authors=[change.author for change in changes],
        bodies=[change.body for change in changes],
        times=[change.happened_at for change in changes],
    )
    born = result.fetchall()
    if born:
        return Imported(len(born))
    stored = await read_ticket(conn, tenant, ticket.id)
    assert stored is not None, "an id that is taken can be read: tickets are never deleted"
    return compare(stored, ticket)


async def read_ticket(conn: AsyncConnection, tenant: TenantId, ticket_id: str) -> Ticket | None:
    """Read one ticket with its changes, as of one moment; takes no lock."""
    result = await run(conn, "desk_read_ticket", tenant=tenant, ticket=ticket_id)
    rows = result.fetchall()
    if not rows:
        return None
    changes = tuple(
        TicketChange(
            row.change_version, ChangeKind(row.kind), row.author, row.body, row.happened_at
        )
        for row in rows
    )
    return replace(_ticket(rows[0]), changes=changes)


async def lock_tickets(
    conn: AsyncConnection, tenant: TenantId, ticket_ids: Sequence[str]
) -> dict[str, Ticket]:
    """Lock tickets ``FOR UPDATE`` in the order of their ids; returns them without their changes."""
    result = await run(conn, "desk_lock_tickets", tenant=tenant, tickets=sorted(set(ticket_ids)))
    return {row.id: _ticket(row) for row in result}


async def search_tickets(
    conn: AsyncConnection,
    tenant: TenantId,
    query: str,
    limit: int,
    *,
    only: Collection[str] | None = None,
) -> list[Ticket]:
    """Find tickets that contain every word of ``query``, without their changes; takes no lock.

    Looks at ids, subjects, customers and conversations, whatever the case. Open tickets come first,
    then the newest. An empty query finds all. Words beyond the first eight are left out. With
    ``only``, just the tickets of these ids are looked at.
    """
    words = storable_text(query).split()[:MOST_SEARCH_WORDS]
    result = await run(
        conn,
        "desk_search_tickets",
        tenant=tenant,
        patterns=[f"%{_literal(word)}%" for word in words],
        only=None if only is None else sorted(only),
        most=limit,
    )
    return [_ticket(row) for row in result]


async def append_change(
    conn: AsyncConnection,
    tenant: TenantId,
    ticket_id: str,
    *,
    kind: ChangeKind,
    author: str,
    body: str,
    now: datetime,
) -> Changed | Refused:
    """Write a customer's message, an agent's message or a note as the next version.

    Locks the ticket. A customer's message opens a closed ticket again. An unknown id is
    ``Refused(TICKET_UNKNOWN)``.
    """
    assert kind in {ChangeKind.CUSTOMER_MESSAGE, ChangeKind.AGENT_MESSAGE, ChangeKind.NOTE}
    result = await run(
        conn,
        "desk_append_change",
        tenant=tenant,
        ticket=ticket_id,
        kind=kind.value,
        author=storable_text(author),
        body=storable_text(body),
        reopens=kind is ChangeKind.CUSTOMER_MESSAGE,
        now=now,
    )
    row = result.one_or_none()
    if row is None:
        return _unknown(ticket_id)
    return Changed(row.version, row.reopened)


async def edit_ticket(
    conn: AsyncConnection,
    tenant: TenantId,
    ticket_id: str,
    edit: TicketEdit,
    *,
    author: str,
    now: datetime,
) -> Changed | NoChange | Refused:
    """Write new fields as the next version, whose body says what was and what is; locks the ticket.

    ``NoChange`` when the fields have these values already. An unknown id is
    ``Refused(TICKET_UNKNOWN)``.
    """
    before = (await lock_tickets(conn, tenant, [ticket_id])).get(ticket_id)
    if before is None:
        return _unknown(ticket_id)
    values = {
        "subject": (before.subject, edit.subject),
        "customer_name": (before.customer_name, edit.customer_name),
        "customer_email": (before.customer_email, edit.customer_email),
        "language": (before.language, edit.language),
    }
    moved = [
        f"{name}: {was} → {wanted}"
        for name, (was, wanted) in values.items()
        if wanted is not None and wanted != was
    ]
    if not moved:
        return NoChange()
    new = {
        name: storable_text(was if wanted is None else wanted)
        for name, (was, wanted) in values.items()
    }
    result = await run(
        conn,
        "desk_edit_ticket",
        tenant=tenant,
        ticket=ticket_id,
        author=storable_text(author),
        body=storable_text("\n".join(moved)),
        now=now,
        subject=new["subject"],
        customer_name=new["customer_name"],
        customer_email=new["customer_email"],
        language=new["language"],
    )
    return Changed(result.scalar_one())


async def reopen_ticket(
    conn: AsyncConnection,
    tenant: TenantId,
    ticket_id: str,
    *,
    author: str,
    body: str,
    now: datetime,
    version: int | None = None,
    operation_id: OperationId | None = None,
) -> Changed | NoChange | Refused:
    """Open a closed ticket again; locks the ticket.

    ``NoChange`` when it is open. With ``version`` (a compensation names the one that our own close
    made) a ticket that has moved on is ``Refused(VERSION_CHANGED)``.
    """
    before = (await lock_tickets(conn, tenant, [ticket_id])).get(ticket_id)
    if before is None:
        return _unknown(ticket_id)
    if version is not None and before.version != version:
        return Refused(Reason.VERSION_CHANGED, {"version": before.version, "expected": version})
    if before.status is TicketStatus.OPEN:
        return NoChange()
    result = await run(
        conn,
        "desk_reopen_ticket",
        tenant=tenant,
        ticket=ticket_id,
        version=before.version,
        author=storable_text(author),
        body=storable_text(body),
        operation=operation_id,
        now=now,
    )
    return Changed(result.scalar_one(), reopened=True)


async def reopen_tickets(conn: AsyncConnection, items: Sequence[Reopening], now: datetime) -> None:
    """Open tickets again that stand exactly where our own closes left them.

    The caller holds their locks and has compared; one that moved all the same is a ``LostRace``. An
    operation that has opened a ticket before is refused by ``an_operation_reopens_once``.
    """
    for item in items:
        changed = await reopen_ticket(
            conn,
            item.tenant,
            item.ticket_id,
            author=item.author,
            body=item.body,
            now=now,
            version=item.version,
            operation_id=item.operation_id,
        )
        if not isinstance(changed, Changed):
            raise LostRace("desk_reopen_ticket", 1)


async def close_tickets(
    conn: AsyncConnection, items: Sequence[Closing], now: datetime
) -> list[int | None]:
    """Close tickets that are open at their expected versions; returns each item's new version.

    ``None`` for an item whose ticket is unknown, closed, or at another version. Items may be of
    several tenants; the caller holds the tickets' locks, taken by id. An operation that has closed
    a ticket before is refused as ``DuplicateKey`` by ``an_operation_closes_once``.
    """
    if not items:
        return []
    result = await run(
        conn,
        "desk_close_tickets",
        tenants=[item.tenant for item in items],
        tickets=[item.ticket_id for item in items],
        versions=[item.version for item in items],
        authors=[storable_text(item.author) for item in items],
        bodies=[storable_text(item.body) for item in items],
        operations=[item.operation_id for item in items],
        now=now,
    )
    versions = {row.ordinal: row.version for row in result}
    return [versions.get(ordinal) for ordinal in range(1, len(items) + 1)]


def _ticket(row: Row[*tuple[Any, ...]]) -> Ticket:
    return Ticket(
        desk=BUILTIN_DESK,
        id=row.id,
        version=row.version,
        status=TicketStatus(row.status),
        subject=row.subject,
        customer_name=row.customer_name,
        customer_email=row.customer_email,
        language=row.language,
        times_opened=row.times_opened,
        updated_at=row.updated_at,
    )


def _unknown(ticket_id: str) -> Refused:
    return Refused(Reason.TICKET_UNKNOWN, {"ticket": ticket_id})


def _literal(word: str) -> str:
    """Spell a word as a pattern of LIKE that matches itself only."""
    return word.replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_")
