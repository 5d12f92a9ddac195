"""A dozen believable tickets to try Signoff with: several languages, and one that means harm.

The file beside this module has the format that ``signoff tickets import`` reads. Its times are
moved so that the newest message is twenty minutes old, whenever the sandbox is started.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from importlib import resources

from executor.domain.new_ticket import NewTicket, parse_tickets

AGE_OF_THE_NEWEST = timedelta(minutes=20)


def sandbox_tickets(now: datetime) -> list[NewTicket]:
    """Read the sandbox's tickets, with times that fit ``now`` (aware)."""
    source = resources.files("bot.sandbox") / "tickets.jsonl"
    tickets = parse_tickets(source.read_text(encoding="utf-8").splitlines())
    newest = max(
        message.at for ticket in tickets for message in ticket.messages if message.at is not None
    )
    return [_moved(ticket, now - AGE_OF_THE_NEWEST - newest) for ticket in tickets]


def _moved(ticket: NewTicket, by: timedelta) -> NewTicket:
    messages = tuple(
        message.model_copy(update={"at": message.at + by if message.at else None})
        for message in ticket.messages
    )
    return ticket.model_copy(update={"messages": messages})
