"""What lies around the sandbox's Slack: its mailbox, its desk, and the runs in the database.

The page reads it; a customer's hands are the only thing here that changes anything.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping

from bot.sandbox.demo_desk import DemoDesk, HeldTicket
from bot.sandbox.mailbox_spool import ReceivedMail
from bot.sandbox.page import JsonObject
from bot.sandbox.timeline import told
from executor.domain.frozen_email import NamedAddress, parse_delivered
from executor.domain.ids import TenantId
from executor.engine import status
from executor.engine.engine import Engine


class SandboxWorld:
    """The page's ``World`` over one tenant of one database, and what customers got."""

    def __init__(
        self,
        engine: Engine,
        tenant: TenantId,
        desk: DemoDesk,
        mails: Callable[[], list[JsonObject]],
        people: Mapping[str, str],
    ) -> None:
        """Look around; ``people`` maps Slack's user ids to names."""
        self._engine = engine
        self._tenant = tenant
        self._desk = desk
        self._mails = mails
        self._people = people

    async def mails(self) -> list[JsonObject]:
        """Return the mails that arrived, oldest first."""
        return self._mails()

    async def tickets(self) -> list[JsonObject]:
        """Return the newest tickets of the desk."""
        return [_ticket_json(ticket) for ticket in await self._desk.tickets()]

    async def reply_as_customer(self, ticket: str, body: str) -> JsonObject | None:
        """Add the customer's reply and return the ticket."""
        await self._desk.reply_as_customer(ticket, body)
        return await self._ticket(ticket)

    async def reopen(self, ticket: str) -> JsonObject | None:
        """Open the ticket again and return it."""
        await self._desk.reopen(ticket)
        return await self._ticket(ticket)

    async def runs(self) -> list[JsonObject]:
        """Return the newest runs."""
        lines = await status.newest_runs(self._engine, self._tenant)
        return [
            {"number": line.number, "status": line.status.value, "title": line.goal}
            for line in lines
        ]

    async def timeline(self, number: int) -> list[JsonObject] | None:
        """Return what happened in a run, in order."""
        line = await status.one_run(self._engine, self._tenant, number)
        if line is None:
            return None
        history = await status.history(self._engine, self._tenant, line.id)
        return told(line, history, self._people)

    async def _ticket(self, number: str) -> JsonObject | None:
        found = await self._desk.ticket(number)
        return None if found is None else _ticket_json(found)


def mail_json(mail: ReceivedMail) -> JsonObject:
    """Spell one mail as the page reads it; never raises for what the mail holds."""
    read = parse_delivered(mail.raw)
    return {
        "id": f"m{mail.number}",
        "from": ", ".join(_address(one) for one in read.sender) or mail.envelope_from,
        "to": [_address(one) for one in read.to] or list(mail.envelope_to),
        "cc": [_address(one) for one in read.cc],
        "reply_to": ", ".join(_address(one) for one in read.reply_to) or None,
        "subject": read.subject,
        "date": mail.received_at.isoformat(),
        "text": read.text,
        "html": read.html,
        "raw": mail.raw.decode("utf-8", errors="replace"),
        "sha256": hashlib.sha256(mail.raw).hexdigest(),
    }


def _address(named: NamedAddress) -> str:
    name, address = named
    return f"{name} <{address}>" if name else address


def _ticket_json(ticket: HeldTicket) -> JsonObject:
    return {
        "id": ticket.id,
        "version": ticket.version,
        "status": ticket.status.value,
        "subject": ticket.subject,
    }
