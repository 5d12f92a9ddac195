"""A ticket as a desk shows it: with a version that every change bumps, and its conversation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from executor.domain.payloads import JsonObject

BUILTIN_DESK = "builtin"


class TicketStatus(StrEnum):
    """Whether somebody still has to do something."""

    OPEN = "open"
    CLOSED = "closed"


class ChangeKind(StrEnum):
    """What one version changed."""

    CUSTOMER_MESSAGE = "customer_message"
    AGENT_MESSAGE = "agent_message"
    NOTE = "note"
    CLOSED = "closed"
    REOPENED = "reopened"
    EDITED = "edited"


@dataclass(frozen=True, slots=True)
class TicketChange:
    """What one version changed, and who did it; ``body`` is untrusted text."""

    version: int
    kind: ChangeKind
    author: str
    body: str
    happened_at: datetime


@dataclass(frozen=True, slots=True)
class Ticket:
    """One ticket at one version; ``changes`` are in the order of their versions."""

    desk: str
    id: str
    version: int
    status: TicketStatus
    subject: str
    customer_name: str
    customer_email: str
    language: str
    times_opened: int
    updated_at: datetime
    changes: Sequence[TicketChange] = ()

    def as_tool_result(self) -> JsonObject:
        """Spell the ticket as the model reads it."""
        return {
            "id": self.id,
            "version": self.version,
            "status": self.status.value,
            "subject": self.subject,
            "customer": {"name": self.customer_name, "email": self.customer_email},
            "language": self.language,
            "times_opened": self.times_opened,
            "conversation": [
                {
                    "version": change.version,
                    "kind": change.kind.value,
                    "author": change.author,
                    "body": change.body,
                    "at": change.happened_at.isoformat(timespec="seconds"),
                }
                for change in self.changes
            ],
        }
