"""Reads a Zendesk ticket: its record, its audits, and what both make of our own ticket.

Every update that makes an event writes one audit and moves ``updated_at`` (Zendesk API reference,
Tickets and Ticket Audits, read 2026-11). The audits are therefore the ticket's versions, and the
newest one's id tells two updates of the same second apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, JsonValue, TypeAdapter

from executor.adapters.tickets.stamp_text import StampText
from executor.domain.payloads import digest, storable_text
from executor.domain.stamp import Stamp, moment
from executor.domain.ticket import ChangeKind, Ticket, TicketChange, TicketStatus
from executor.engine.desk_port import Observation

_DONE = frozenset({"solved", "closed"})
_LONGEST_VALUE = 200


class _Read(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class ZendeskUser(_Read):
    """Who wrote or asked; an end user without an address is possible."""

    id: int
    name: str
    email: str | None = None
    locale: str | None = None


class ZendeskRecord(_Read):
    """The ticket's own record. ``updated_at`` is kept as it is spelt: it is the precondition."""

    id: int
    subject: str | None = None
    status: Literal["new", "open", "pending", "hold", "solved", "closed"]
    priority: str | None = None
    requester_id: int
    assignee_id: int | None = None
    tags: tuple[str, ...] = ()
    updated_at: StampText


class ZendeskEvent(_Read):
    """One event of an audit; which fields it has depends on its type."""

    type: str
    body: str | None = None
    public: bool | None = None
    field_name: str | None = None
    value: JsonValue = None
    previous_value: JsonValue = None


class ZendeskAudit(_Read):
    """One update of a ticket."""

    id: int
    author_id: int
    created_at: AwareDatetime
    events: tuple[ZendeskEvent, ...] = ()

    def holds(self, marker: str) -> bool:
        """Tell whether this update is the one that set the marker; no customer sees where."""
        return any(
            (event.type == "Comment" and event.public is False and marker in (event.body or ""))
            or (event.field_name == "tags" and _added(event, marker))
            for event in self.events
        )


class _Cursor(_Read):
    has_more: bool = False
    after_cursor: str | None = None


class TicketPage(_Read):
    """``GET /api/v2/tickets/{id}.json?include=users``."""

    ticket: ZendeskRecord
    users: tuple[ZendeskUser, ...] = ()


class AuditsPage(_Read):
    """``GET /api/v2/tickets/{id}/audits.json?include=users`` with cursor pagination."""

    audits: tuple[ZendeskAudit, ...]
    users: tuple[ZendeskUser, ...] = ()
    meta: _Cursor = _Cursor()


class Updated(_Read):
    """The answer to an update."""

    ticket: ZendeskRecord
    audit: ZendeskAudit


TICKET_PAGE = TypeAdapter(TicketPage)
AUDITS_PAGE = TypeAdapter(AuditsPage)
UPDATED = TypeAdapter(Updated)


def stamp_of(record: ZendeskRecord, newest_audit: int) -> Stamp:
    """Name the version that a record and its newest audit show."""
    fields = digest(
        {
            "status": record.status,
            "subject": storable_text(record.subject or ""),
            "priority": record.priority,
            "requester": str(record.requester_id),
            "assignee": str(record.assignee_id),
            "tags": [storable_text(tag) for tag in sorted(record.tags)],
            # As text: the ids of a large desk are beyond what canonical JSON takes as a number.
            "newest_audit": str(newest_audit),
        }
    )
    return Stamp(record.updated_at, fields.hex())


def observation(
    desk: str,
    page: TicketPage,
    audits: Sequence[ZendeskAudit],
    users: Mapping[int, ZendeskUser],
) -> Observation:
    """Make our own ticket of a record and all of its audits, in the order of their ids."""
    record = page.ticket
    requester = users.get(record.requester_id)
    ticket = Ticket(
        desk=desk,
        id=str(record.id),
        version=len(audits),
        status=TicketStatus.CLOSED if record.status in _DONE else TicketStatus.OPEN,
        subject=storable_text(record.subject or ""),
        customer_name=storable_text(requester.name) if requester else "",
        customer_email=storable_text(requester.email or "") if requester else "",
        language=storable_text(requester.locale or "") if requester else "",
        times_opened=1 + sum(_status_change(audit) is ChangeKind.REOPENED for audit in audits),
        updated_at=moment(record.updated_at),
        changes=tuple(changes(audits, record.requester_id, users)),
    )
    newest = audits[-1].id if audits else 0
    return Observation(ticket, stamp_of(record, newest), tuple(record.tags))


def changes(
    audits: Sequence[ZendeskAudit], requester: int, users: Mapping[int, ZendeskUser]
) -> list[TicketChange]:
    """Say what each audit changed; the first one of ``audits`` is version 1."""
    seen = []
    for version, audit in enumerate(audits, start=1):
        kind, body = _change(audit, requester)
        author = users.get(audit.author_id)
        name = author.name if author else f"user {audit.author_id}"
        seen.append(
            TicketChange(version, kind, storable_text(name), storable_text(body), audit.created_at)
        )
    return seen


def _change(audit: ZendeskAudit, requester: int) -> tuple[ChangeKind, str]:
    """Choose what an update with several events is told as: what was written stands first."""
    moved = _status_change(audit)
    said = [event for event in audit.events if event.type == "Comment"]
    body = "\n".join(event.body or "" for event in said)
    if any(event.public for event in said):
        if audit.author_id == requester:
            return ChangeKind.CUSTOMER_MESSAGE, body
        return ChangeKind.AGENT_MESSAGE, body
    if moved is not None:
        return moved, body
    if said:
        return ChangeKind.NOTE, body
    return ChangeKind.EDITED, "\n".join(_edits(audit))


def _status_change(audit: ZendeskAudit) -> ChangeKind | None:
    for event in audit.events:
        if event.type == "Change" and event.field_name == "status":
            was_done, is_done = event.previous_value in _DONE, event.value in _DONE
            if is_done and not was_done:
                return ChangeKind.CLOSED
            if was_done and not is_done:
                return ChangeKind.REOPENED
    return None


def _edits(audit: ZendeskAudit) -> list[str]:
    return [
        f"{event.field_name}: {str(event.previous_value)[:_LONGEST_VALUE]}"
        f" → {str(event.value)[:_LONGEST_VALUE]}"
        for event in audit.events
        if event.type == "Change"
    ]


def _added(event: ZendeskEvent, tag: str) -> bool:
    return tag in _tags(event.value) and tag not in _tags(event.previous_value)


def _tags(value: JsonValue) -> Sequence[JsonValue]:
    return value if isinstance(value, list) else ()
