"""A Zendesk account as far as closing goes: tickets, audits, stamps of one second, own mails.

One update is one audit; an update that changes nothing writes none and leaves ``updated_at`` where
it is. Triggers mail the requester as the account is configured; nothing else mails.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bot.sandbox.clock import Clock
from bot.sandbox.kept_file import KeptFile
from bot.sandbox.model import Json

OUR_AGENT, OTHER_AGENT = 501, 502
_FIRST_CUSTOMER = 9001
_FIRST_AUDIT = 35_436_000_001
FIELDS = ("subject", "status", "priority", "assignee_id", "tags")
STATUSES = ("new", "open", "pending", "hold", "solved", "closed")
_DONE = ("solved", "closed")


@dataclass(frozen=True, slots=True)
class DeskMail:
    """One mail that the desk itself sent, and which of its rules did."""

    to: str
    ticket: int
    why: str


@dataclass(frozen=True, slots=True)
class Triggers:
    """Which of the account's rules mail the requester; ``silent_tag`` keeps them all quiet."""

    on_public_comment: bool = True
    on_solved: bool = False
    silent_tag: str | None = None


@dataclass
class AccountTicket:
    """One ticket's record and its audits, oldest first."""

    record: Json
    audits: list[Json] = field(default_factory=list)


class ZendeskAccount:
    """Keep an account's tickets on one clock; with a ``spool`` file they survive a restart."""

    def __init__(self, clock: Clock, triggers: Triggers, spool: Path | None = None) -> None:
        self._clock = clock
        self._triggers = triggers
        self.tickets: dict[int, AccountTicket] = {}
        self.mails: list[DeskMail] = []
        self.users: dict[int, Json] = {
            OUR_AGENT: _user(OUR_AGENT, "Signoff", "bot@acme.example"),
            OTHER_AGENT: _user(OTHER_AGENT, "Kim", "kim@acme.example"),
        }
        self._next_audit = _FIRST_AUDIT
        self.kept = KeptFile(spool, self._document)
        kept = self.kept.read()
        if kept is not None:
            self._next_audit = kept["next_audit"]
            self.users = {user["id"]: user for user in kept["users"]}
            for ticket in kept["tickets"]:
                self.tickets[ticket["record"]["id"]] = AccountTicket(**ticket)

    def agent(self, name: str) -> int:
        """Return another agent's id, of whom it is enough to know the name."""
        for number, user in self.users.items():
            if number < _FIRST_CUSTOMER and user["name"] == name:
                return number
        number = OTHER_AGENT + sum(known < _FIRST_CUSTOMER for known in self.users)
        self.users[number] = _user(number, name, f"agent{number}@acme.example")
        return number

    def open_ticket(
        self,
        number: int,
        subject: str,
        body: str,
        *,
        name: str,
        email: str,
        tags: tuple[str, ...] = (),
        locale: str = "en-US",
    ) -> AccountTicket:
        """Let a new customer open a ticket."""
        customer = _FIRST_CUSTOMER + len(self.tickets)
        self.users[customer] = _user(customer, name, email, locale)
        record = {
            "id": number,
            "url": f"https://acme.zendesk.example/api/v2/tickets/{number}.json",
            "created_at": self._stamp(),
            "updated_at": self._stamp(),
            "subject": subject,
            "status": "open",
            "priority": None,
            "requester_id": customer,
            "assignee_id": OTHER_AGENT,
            "tags": sorted(tags),
            "via": {"channel": "web"},
        }
        ticket = self.tickets[number] = AccountTicket(record)
        self._audit(ticket, customer, [_comment(body, public=True)])
        return ticket

    def customer_replies(self, number: int, body: str) -> None:
        """Let the requester write; a solved ticket opens again."""
        ticket = self.tickets[number]
        changes: Json = {"comment": {"body": body, "public": True}}
        if ticket.record["status"] == "solved":
            changes["status"] = "open"
        self.update(number, ticket.record["requester_id"], changes)

    def agent_edits(self, number: int, **changes: object) -> None:
        """Let another agent change fields, or comment with ``comment={"body", "public"}``."""
        self.update(number, OTHER_AGENT, changes)

    def update(self, number: int, author: int, changes: Mapping[str, Any]) -> Json:
        """Make one update of all its parts together; returns its audit, empty if nothing changed.

        ``changes`` has been checked.
        """
        ticket = self.tickets[number]
        before = dict(ticket.record)
        events = []
        for name in FIELDS:
            wanted = changes.get(name, before[name])
            if name == "tags":
                wanted = sorted({tag.lower() for tag in wanted})
            if wanted != before[name]:
                ticket.record[name] = wanted
                events.append(_changed(name, before[name], wanted))
        comment = changes.get("comment")
        if comment is not None:
            events.insert(0, _comment(comment["body"], public=comment.get("public", True)))
        if not events:
            return {}
        ticket.record["updated_at"] = self._stamp()
        audit = self._audit(ticket, author, events)
        self._trigger(ticket, before, author, comment)
        return audit

    def _trigger(
        self, ticket: AccountTicket, before: Json, author: int, comment: Json | None
    ) -> None:
        rules, record = self._triggers, ticket.record
        if rules.silent_tag is not None and rules.silent_tag in record["tags"]:
            return
        public = comment is not None and comment.get("public", True)
        if rules.on_public_comment and public and author != record["requester_id"]:
            self._mail(record, "public comment")
        solved = record["status"] in _DONE and before["status"] not in _DONE
        if rules.on_solved and solved:
            self._mail(record, "solved")

    def _mail(self, record: Json, why: str) -> None:
        self.mails.append(DeskMail(self.users[record["requester_id"]]["email"], record["id"], why))

    def _audit(self, ticket: AccountTicket, author: int, events: list[Json]) -> Json:
        audit = {
            "id": self._next_audit,
            "ticket_id": ticket.record["id"],
            "created_at": ticket.record["updated_at"],
            "author_id": author,
            "metadata": {"system": {}, "custom": {}},
            "via": {"channel": "api"},
            "events": [
                {"id": self._next_audit * 10 + place, **event} for place, event in enumerate(events)
            ],
        }
        self._next_audit += 1
        ticket.audits.append(audit)
        self.kept.keep()
        return audit

    def _document(self) -> Json:
        return {
            "next_audit": self._next_audit,
            "users": list(self.users.values()),
            "tickets": [asdict(ticket) for ticket in self.tickets.values()],
        }

    def _stamp(self) -> str:
        now = datetime.fromtimestamp(int(self._clock.now()), UTC)
        return now.isoformat().replace("+00:00", "Z")


def _user(number: int, name: str, email: str, locale: str = "en-US") -> Json:
    return {"id": number, "name": name, "email": email, "locale": locale}


def _comment(body: str, *, public: bool) -> Json:
    return {"type": "Comment", "body": body, "public": public, "attachments": []}


def _changed(name: str, before: object, after: object) -> Json:
    return {"type": "Change", "field_name": name, "previous_value": before, "value": after}
