"""TM: one model call, paid for from money that was held before, recorded with its charge."""

from __future__ import annotations

import asyncio
import logging

from executor.domain import budget
from executor.domain.payloads import JsonObject, JsonValue, storable
from executor.domain.run import RunStatus
from executor.domain.transition import Reason, Refused
from executor.engine.budget import Ask, Held, charge, charge_alone, lock_for_charge, reserve
from executor.engine.engine import Engine
from executor.engine.failpoint import Commit
from executor.engine.leases import Keeper
from executor.engine.ports import (
    ModelFailed,
    ModelPort,
    ModelReply,
    ModelRequest,
)
from executor.engine.run_record import Record, RunKey
from executor.engine.transcript import request_of
from executor.store import journal, progress, runs
from executor.store.wakeups import Kind

_log = logging.getLogger(__name__)

MODEL_TRIES = 2
MOST_CALLS_A_REPLY = 16


async def ask_model(
    engine: Engine, model: ModelPort, key: RunKey, keeper: Keeper, record: Record
) -> Reason | None:
    """Hold the worst case, make exactly one request, and charge it with the record of its reply.

    Returns why there is no reply, or ``None``. Opens its own transactions.
    """
    request = request_of(record)
    for _ in range(MODEL_TRIES):
        held = await _hold(engine, model, key, keeper, request)
        if isinstance(held, Refused):
            return Reason.BUDGET_LIMIT
        reservation = (key[0], held.reservation_id)
        try:
            reply = await _call(engine, model, request)
        except ModelFailed as error:
            event: budget.Event = budget.Void() if error.not_sent else budget.LoseSight()
            await charge_alone(engine, {reservation: event})
            _log.warning("a model call failed: %s", error)
            if not error.retryable:
                break
            continue
        await _record_reply(engine, key, keeper, record, reply, held)
        return None
    return Reason.MODEL_FAILED


async def _hold(
    engine: Engine, model: ModelPort, key: RunKey, keeper: Keeper, request: ModelRequest
) -> Held | Refused:
    seconds = engine.durations.model_call_seconds + engine.durations.clock_allowance_seconds
    bound = model.cost_bound(request)
    if isinstance(bound, Refused):
        return bound
    [held] = await reserve(
        engine,
        [
            Ask(
                key,
                keeper.epoch,
                f"model:{model.name}",
                bound.of(request.max_output_tokens),
                seconds,
            )
        ],
    )
    return held


async def _call(engine: Engine, model: ModelPort, request: ModelRequest) -> ModelReply:
    try:
        async with asyncio.timeout(engine.durations.model_call_seconds):
            return await model.reply(request)
    except TimeoutError as error:
        raise ModelFailed(
            "the model did not answer in time", not_sent=False, retryable=True
        ) from error


async def _record_reply(
    engine: Engine,
    key: RunKey,
    keeper: Keeper,
    record: Record,
    reply: ModelReply,
    held: Held,
) -> None:
    """Charge the call and record its reply in one commit; the charge is a fact at any epoch."""
    reservation = (key[0], held.reservation_id)
    async with engine.committing(Commit.RECORD_REPLY) as conn:
        row = (await runs.lock(conn, [key]))[key]
        locked = await lock_for_charge(conn, [reservation])
        await progress.want(conn, [key])
        chain = await journal.lock_chain(conn, [key])
        await charge(
            conn,
            locked,
            {
                reservation: budget.LoseSight()
                if reply.cost_microusd is None
                else budget.Settle(reply.cost_microusd)
            },
            chain,
        )
        ours = row.status is RunStatus.RUNNING and row.lease_epoch == keeper.epoch
        if ours:
            step = runs.Step(record.next_step, "model", None, _content(reply), chain.now)
            await runs.record_step(conn, key, step)
        await journal.advance(conn, chain)
    engine.ring(Kind.CARDS)
    if not ours:
        # The run was cancelled, or is somebody else's now: its reply leads to nothing.
        _log.info("a reply came for run %s after it had moved on", key[1])


def _content(reply: ModelReply) -> JsonObject:
    calls: list[JsonValue] = [
        {"id": c.id, "name": c.name, "arguments": c.arguments}
        for c in reply.tool_calls[:MOST_CALLS_A_REPLY]
    ]
    content: JsonObject = {
        "text": reply.text,
        "tool_calls": calls,
        "usage": {
            "input_tokens": reply.usage.input_tokens if reply.usage else None,
            "output_tokens": reply.usage.output_tokens if reply.usage else None,
            "cost_microusd": reply.cost_microusd,
        },
    }
    stored = storable(content)
    assert isinstance(stored, dict)
    return stored
