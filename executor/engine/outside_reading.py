"""A call of a tool outside: one that reads runs at once, and is paid for where the policy says so.

What a call costs is held before it, and charged once the call may have reached its server.
"""

from __future__ import annotations

import json

from executor.domain import budget
from executor.domain.payloads import JsonObject
from executor.domain.replay import RecordedCall
from executor.domain.secret_text import HIDDEN, is_tainted
from executor.domain.transition import Reason, Refused
from executor.engine.budget import reserve
from executor.engine.charging import charge_alone
from executor.engine.engine import Engine
from executor.engine.leases import Keeper
from executor.engine.outside_tools import AskedCall, OutsideTools, others_result, server_away
from executor.engine.purse import Ask
from executor.engine.run_record import RunKey
from executor.engine.tool_port import ServerAway
from executor.engine.tools import tool_error


async def call_outside(
    engine: Engine, key: RunKey, keeper: Keeper, outside: OutsideTools, call: RecordedCall
) -> AskedCall | JsonObject:
    """Read at once, or say what has to be proposed; whatever is wrong is the model's answer."""
    asked = await outside.checked(call)
    if not isinstance(asked, AskedCall) or not asked.outside.reads:
        return asked
    if is_tainted(json.dumps(asked.arguments, ensure_ascii=False)):
        # What is proposed is refused for it as well, with its content.
        return tool_error(Reason.ARGUMENTS_INVALID, f"Leave out the secret, and {HIDDEN!r} too.")
    if not asked.outside.cost_microusd:
        return (await _read(outside, asked))[0]
    named = f"tool:{asked.outside.server}.{asked.outside.tool.name}"
    lasts = outside.servers[asked.outside.server].longest_request_seconds
    seconds = lasts + engine.durations.clock_allowance_seconds
    cost = asked.outside.cost_microusd
    [held] = await reserve(engine, [Ask(key, keeper.epoch, named, cost, seconds)])
    if isinstance(held, Refused):
        return tool_error(Reason.BUDGET_LIMIT, "There is no money left for this call.")
    result, not_sent = await _read(outside, asked)
    event: budget.Event = budget.Void() if not_sent else budget.Settle(cost)
    await charge_alone(engine, {(key[0], held.reservation_id): event})
    return result


async def _read(outside: OutsideTools, asked: AskedCall) -> tuple[JsonObject, bool]:
    """Read, and say whether nothing of it can have reached the server."""
    server, tool = asked.outside.server, asked.outside.tool.name
    try:
        result = await outside.servers[server].read(tool, asked.arguments)
    except ServerAway as error:
        return server_away(server, error), error.not_sent
    return {"server": server, "tool": tool, **others_result(result)}, False
