"""Reads what is told of operations that are about no ticket: of raises, and of calls of tools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from executor.domain.payloads import JsonObject
from executor.domain.raising import Raising
from executor.store import pauses
from executor.store.connection import Connection
from executor.store.operations import OperationKey


@dataclass(frozen=True, slots=True)
class RaiseRecord:
    """What a raise would raise, and the numbers of the runs that wait for it now."""

    raising: Raising
    waiting: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ToolCallRecord:
    """The call of a server's tool that would be made, exactly; ``cost`` is what it is held at.

    The name of the tool and its arguments are untrusted.
    """

    server: str
    tool: str
    arguments: JsonObject
    cost_microusd: int


async def read_raising(
    conn: Connection, key: OperationKey, intent: JsonObject
) -> RaiseRecord | None:
    """Read which limit a raise would raise, and for which runs; ``None``: it is none."""
    asked = intent.get("raise")
    if not isinstance(asked, Mapping):
        return None
    waiting = await pauses.waiting_for(conn, [key])
    return RaiseRecord(Raising.from_json(asked), tuple(one.number for one in waiting))


def read_tool_call(intent: JsonObject) -> ToolCallRecord | None:
    """Read which call of a tool would be made; ``None``: none would."""
    call = intent.get("tool_call")
    if not isinstance(call, Mapping):
        return None
    arguments, cost = call["arguments"], call["cost_microusd"]
    assert isinstance(arguments, dict)
    assert isinstance(cost, int)
    return ToolCallRecord(str(call["server"]), str(call["tool"]), arguments, cost)
