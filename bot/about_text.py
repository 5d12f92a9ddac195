"""What an operation is about, in a few words of ours around one name. Pure."""

from __future__ import annotations

from bot.card_parts import one_line
from executor.domain.grant import Resource
from executor.domain.ids import run_label
from executor.domain.intent import CALL_TOOL, RAISE_BUDGET
from executor.domain.raising import Limit
from executor.engine.card_record import OperationRecord

_LONGEST = 60
_LONGEST_TICKET = 40


def about(record: OperationRecord) -> str:
    """Name what an operation is about: its ticket, a limit of the budget, or a tool."""
    if record.ticket is not None:
        return f"ticket {one_line(record.ticket.id, _LONGEST)}"
    if record.raising is not None:
        return f"the limit of {limit_words(record.raising.raising.limit)}"
    if record.tool_call is not None:
        return f"tool {tool_words(record.tool_call.server, record.tool_call.tool)}"
    return "something"


def resource_words(resource: Resource) -> str:
    """Say the same of what rights are asked for."""
    if resource.kind == CALL_TOOL:
        return f"tool {tool_words(resource.place, resource.thing)}"
    if resource.kind == RAISE_BUDGET:
        scope, _, name = resource.thing.partition(":")
        return f"the limit of {run_label(int(name)) if scope == 'run' else name}"
    return f"ticket {one_line(resource.thing, _LONGEST_TICKET)}"


def limit_words(limit: Limit) -> str:
    """Name whose limit it is: one run's, or that of all runs of one day."""
    if limit.day is not None:
        return f"{limit.day.isoformat()} ({limit.timezone})"
    assert limit.run is not None, "it is a run's limit or a day's"
    return run_label(limit.run)


def tool_words(server: str, tool: str) -> str:
    """Name a tool of a server, so that nothing in it hides or breaks the line."""
    return f"{one_line(server, _LONGEST)}.{one_line(tool, _LONGEST)}"
