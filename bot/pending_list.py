"""What waits for one person, as a list: the most urgent first, each with its way in. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from bot.about_text import resource_words
from bot.card_parts import Item, Piece, Words, moment, paragraph, person
from bot.operation_value import operation_value
from executor.domain.grant import Resource
from executor.domain.ids import TenantId, operation_label
from executor.engine.pending import Pending, PendingLine

MOST_LISTED = 20
"""Lines of a list; each takes two of the 50 blocks that a message holds."""


@dataclass(frozen=True, slots=True)
class ListLine:
    """One line, and what its button carries."""

    told: Item
    value: str


@dataclass(frozen=True, slots=True)
class PendingView:
    """Everything that the template of the list puts into blocks."""

    title: str
    lines: tuple[ListLine, ...]
    left_out: str


def pending_view(pending: Pending, tenant: TenantId) -> PendingView:
    """Show what waits for a person, and say how much of it is left out."""
    return PendingView(
        pending_title(pending), pending_lines(pending, tenant), left_out(pending, pending.more)
    )


def pending_lines(pending: Pending, tenant: TenantId) -> tuple[ListLine, ...]:
    """Show one line for each operation."""
    return tuple(
        ListLine(_told(line, tenant, pending.now), operation_value(line.id))
        for line in pending.lines
    )


def pending_title(pending: Pending) -> str:
    """Say how much waits."""
    count = len(pending.lines) + pending.more
    if count == 0:
        return "Nothing waits for your decision."
    return f"{count} {'decision waits' if count == 1 else 'decisions wait'} for you"


def pending_text(pending: Pending) -> str:
    """Say the same where blocks cannot be shown; the names are of our own making."""
    title = pending_title(pending)
    names = ", ".join(operation_label(line.number) for line in pending.lines)
    return f"{title}: {names}." if names else f"{title} {left_out(pending, 0)}".rstrip()


def left_out(pending: Pending, more: int) -> str:
    """Say what is not listed."""
    said = []
    if more:
        said.append(f"{more} more {'waits' if more == 1 else 'wait'} after these.")
    if not pending.is_all:
        said.append("So much is undecided that only the most urgent was looked at.")
    return " ".join(said)


def roughly(passed: timedelta) -> str:
    """Spell how long something takes, in its largest unit."""
    seconds = max(0, int(passed.total_seconds()))
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def _what(line: PendingLine) -> str:
    about = resource_words(Resource(line.kind, line.place, line.thing))
    match line.kind:
        case "reopen_ticket":
            return f"open {about} again"
        case "call_tool":
            return f"call {about}"
        case "raise_budget":
            return f"raise {about}"
        case _:
            return f"close {about}"


def _told(line: PendingLine, tenant: TenantId, now: datetime) -> Item:
    what = _what(line)
    pieces: Sequence[Piece | str] = (
        Words(f"{operation_label(line.number)}: {what}. ", bold=True),
        "Asked for by ",
        person(line.requester, tenant),
        f", {roughly(now - line.asked_at)} ago. Decide by ",
        moment(line.decide_by),
        f", in {roughly(line.decide_by - now)}.",
    )
    return paragraph(*pieces)
