"""The ticket on an operation's card: the one that was proposed about, and what changed on it.

Each change stands in a block of its own, so that no words of a customer can pass for the head of
another change. Pure.
"""

from __future__ import annotations

import re

from bot.card_parts import (
    Item,
    Literal,
    Paragraph,
    Piece,
    Words,
    excerpt,
    is_cut,
    moment,
    one_line,
    paragraph,
)
from executor.domain.ticket import TicketChange
from executor.engine.card_record import OperationRecord

MOST_CHANGES = 3
"""Changes of the ticket that a card lists; the newest ones."""

LONGEST_CHANGE = 400
"""Characters that the words of one change may take on a card."""

LONGEST_CHANGE_IN_FULL = 4_000
"""Characters that the words of one change may take in the full view."""

_LONGEST_AUTHOR = 60

_ZENDESK = re.compile(r"zendesk:([a-z0-9][a-z0-9-]{0,62})")
_NUMBER = re.compile(r"[0-9]{1,18}")


def facts(record: OperationRecord) -> tuple[tuple[str, str], ...]:
    """Name what the intent holds of the ticket."""
    ticket = record.ticket
    if ticket is None:
        return ()
    return (
        ("Ticket", ticket.id),
        ("Version", str(ticket.version)),
        ("Desk", ticket.desk),
        ("Subject", ticket.subject),
    )


def ticket_url(desk: str, ticket: str) -> str | None:
    """Return where a desk shows a ticket to its people; ``None`` where its name does not tell.

    The name of a Zendesk account is its host; that of a GitHub repository leaves its host open.
    """
    found = _ZENDESK.fullmatch(desk)
    if found is None or _NUMBER.fullmatch(ticket) is None:
        return None
    return f"https://{found.group(1)}.zendesk.com/agent/tickets/{ticket}"


def moved_on(record: OperationRecord) -> bool:
    """Tell whether the ticket is known to stand at another version than the proposed one."""
    if record.ticket is None:
        return False
    current = record.ticket.current_version
    return current is not None and current != record.ticket.version


def changes(listed: tuple[TicketChange, ...], longest: int = LONGEST_CHANGE) -> tuple[Item, ...]:
    """List the newest changes of a ticket, each with its author and their words below it."""
    items: list[Item] = []
    left_out = len(listed) - MOST_CHANGES
    if left_out > 0:
        items.append(paragraph(f"({left_out} earlier)"))
    for change in listed[-MOST_CHANGES:]:
        items += _change(change, longest)
    return tuple(items)


def shortens(items: tuple[Item, ...]) -> bool:
    """Tell whether something is left out of some items."""
    return any(isinstance(item, Literal) and is_cut(item.text) for item in items)


def _change(change: TicketChange, longest: int) -> tuple[Item, ...]:
    body = change.body.strip()
    said = excerpt(body, longest)
    pieces: list[Piece] = [
        Words(f"Version {change.version}", bold=True),
        Words(f", {change.kind.value.replace('_', ' ')}, "),
        moment(change.happened_at),
        Words(f", shortened from {len(body)} characters:" if shortens((said,)) else ":"),
    ]
    author = one_line(change.author, _LONGEST_AUTHOR)
    return (Paragraph(tuple(pieces)), Literal(f"{author}:\n{said.text}"))
