"""What an operation is about, as rows of its card: a ticket, a tool of a server, or a limit.

The arguments of a tool stand below their rows, exactly, as canonical JSON. Pure.
"""

from __future__ import annotations

import json

from bot import card_ticket
from bot.about_text import limit_words
from bot.card_parts import Item, Words, paragraph
from bot.typed_money import dollars
from executor.domain.ids import run_label
from executor.domain.operation import UNOPENED
from executor.engine.card_record import OperationRecord
from executor.engine.kind_record import RaiseRecord

_MOST_NAMED = 10


def label(record: OperationRecord) -> str:
    """Call what it is about."""
    if record.raising is not None:
        return "Limit"
    return "Ticket" if record.tool_call is None else "Tool"


def facts(record: OperationRecord) -> tuple[tuple[str, str], ...]:
    """Name what the intent holds of it."""
    if record.tool_call is not None:
        call = record.tool_call
        cost = (("Cost", dollars(call.cost_microusd)),) if call.cost_microusd else ()
        return (("Server", call.server), ("Tool", call.tool), *cost)
    if record.raising is not None:
        return _limit(record.raising)
    return card_ticket.facts(record)


def arguments(record: OperationRecord) -> str | None:
    """Spell the arguments of a tool as they are frozen, one name a line; ``None``: it has none."""
    if record.tool_call is None:
        return None
    # What an approval binds is the canonical form; this differs from it in blanks alone.
    return json.dumps(record.tool_call.arguments, indent=2, sort_keys=True, ensure_ascii=False)


def why_raised(record: OperationRecord) -> tuple[Item, ...]:
    """Say for which runs a limit would be raised, and what is without it; empty for all else."""
    if record.raising is None:
        return ()
    raising, named = record.raising.raising, record.raising.waiting
    listed = ", ".join(run_label(number) for number in named[:_MOST_NAMED])
    more = len(named) - _MOST_NAMED
    runs = f"{listed} and {more} more" if more > 0 else listed
    waits = f"{runs} {'waits' if len(named) == 1 else 'wait'} for it. " if named else ""
    scope = "this run" if raising.limit.day is None else "all runs of this day together"
    otherwise = (
        "If it is not raised, the run ends."
        if raising.limit.day is None
        else "If it is not raised, what waits goes on when the next day begins."
    )
    is_open = record.status in UNOPENED
    return (
        paragraph(
            Words("Why: ", bold=True),
            f"{waits}The limit is what {scope} may spend on models and tools. ",
            otherwise if is_open else "",
        ),
    )


def _limit(record: RaiseRecord) -> tuple[tuple[str, str], ...]:
    raising = record.raising
    held = dollars(raising.held_microusd)
    if raising.unknown_microusd:
        held += f", of which {dollars(raising.unknown_microusd)} is for calls of unknown cost"
    return (
        ("Of", limit_words(raising.limit)),
        ("From", dollars(raising.current_microusd)),
        ("To", dollars(raising.new_microusd)),
        ("Spent", dollars(raising.spent_microusd)),
        ("Held", held),
        ("Next call", f"at most {dollars(raising.needed_microusd)}"),
    )
