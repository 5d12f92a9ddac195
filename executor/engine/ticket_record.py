"""What a card says of the ticket: as it was proposed, as it is now, and what changed since."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from executor.domain.ids import EffectId, TenantId, desk_marker
from executor.domain.ticket import BUILTIN_DESK, Ticket, TicketChange, TicketStatus
from executor.store import desk, outside_tickets
from executor.store.card_records import AnyRow
from executor.store.connection import Connection

RECENT_CHANGES = 3


@dataclass(frozen=True, slots=True)
class TicketRecord:
    """The target: as it was proposed, and as it is now where that can be read."""

    desk: str
    id: str
    subject: str
    version: int
    recent_changes: tuple[TicketChange, ...]
    current_version: int | None
    current_status: TicketStatus | None
    changes_since: tuple[TicketChange, ...]


async def read_ticket(conn: Connection, tenant: TenantId, row: AnyRow) -> Ticket | None:
    """Read the ticket as far as it is known here; ``None``: it is not, or there is none."""
    if row.ticket_id is None:
        return None
    if row.desk == BUILTIN_DESK:
        return await desk.read_ticket(conn, tenant, row.ticket_id)
    return await outside_tickets.read(conn, tenant, row.desk, row.ticket_id)


def ticket_record(
    row: AnyRow, subject: str, ticket: Ticket | None, parts: Sequence[AnyRow]
) -> TicketRecord:
    """Tell of an operation's ticket, whose ``subject`` is as it was proposed."""
    changes = ticket.changes if ticket is not None else ()
    before = tuple(c for c in changes if c.version <= row.ticket_version)
    # What our own close changed is not a change that the reviewer has to be told of.
    since = tuple(
        c for c in changes if c.version > row.ticket_version and not _is_ours(c, row, parts)
    )
    return TicketRecord(
        row.desk,
        row.ticket_id,
        subject,
        row.ticket_version,
        before[-RECENT_CHANGES:],
        None if ticket is None else ticket.version,
        None if ticket is None else ticket.status,
        since,
    )


def _is_ours(change: TicketChange, row: AnyRow, parts: Sequence[AnyRow]) -> bool:
    """Tell our own change: an outside desk shows our marker with it."""
    if row.desk == BUILTIN_DESK:
        return row.opened_at is not None and change.version == row.ticket_version + 1
    return any(desk_marker(EffectId(part.id)) in change.body for part in parts)
