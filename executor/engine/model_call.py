"""TM: one model call, paid for from money that was held before, recorded with its charge.

Nobody waits for an answer that nobody wants any more: while a call is out, its run is looked at
every ``LOOK_SECONDS``, and the call is given up when the run has ended or is another worker's. What
it cost is not known then, and stays counted.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, replace
from datetime import timedelta

from executor.domain import budget
from executor.domain.errors import CommitUnknown, DatabaseUnavailable, StaleEpoch
from executor.domain.payloads import JsonObject, JsonValue, storable, storable_text
from executor.domain.run import RunStatus
from executor.domain.transition import Reason, Refused
from executor.engine.budget import reserve
from executor.engine.charging import charge, charge_alone, lock_for_charge
from executor.engine.engine import Engine
from executor.engine.failpoint import Commit
from executor.engine.leases import Keeper
from executor.engine.ports import ModelFailed, ModelPort, ModelReply, ModelRequest, Usage
from executor.engine.purse import Ask, CallAsk, Held
from executor.engine.request_digest import request_digests
from executor.engine.run_record import Record, RunKey
from executor.engine.transcript import request_of
from executor.store import journal, model_calls, progress, runs
from executor.store.model_calls import CallEnd, CallStatus, Tokens
from executor.store.wakeups import Kind

_log = logging.getLogger(__name__)

MODEL_TRIES = 2
MOST_FAILED_IN_A_ROW = 8
"""Calls of one run that may fail in a row, where a provider tells when to come again."""

MOST_CALLS_A_REPLY = 16
LOOK_SECONDS = 1.0
LONGEST_PAUSE = timedelta(seconds=20)
"""A longer one is no worker's business: the run waits, and is due again when it is over."""

LONGEST_PUT_OFF = timedelta(days=1)
_LONGEST_PROBLEM = 500


@dataclass(frozen=True, slots=True)
class NoReply:
    """There is no reply, and will be none; ``refused`` is which limit says so."""

    reason: Reason
    refused: Refused | None = None


@dataclass(frozen=True, slots=True)
class PutOff:
    """The provider says when to come again; until then the run is nobody's."""

    by: timedelta


class _Unwanted(Exception):
    """The answer is not wanted any more; ``reason`` is why the run has to end, if it is ours."""

    def __init__(self, reason: Reason | None) -> None:
        super().__init__()
        self.reason = reason


async def ask_model(
    engine: Engine,
    model: ModelPort,
    key: RunKey,
    keeper: Keeper,
    record: Record,
    stop: asyncio.Event | None = None,
) -> NoReply | PutOff | None:
    """Hold the worst case, make exactly one request, and charge it with the record of its reply.

    ``None``: the reply is recorded. A request that fails is made again at most once, under money of
    its own. Opens its own transactions. Raises ``StaleEpoch`` when the run is no longer ours.
    """
    request = request_of(record)
    for tried in range(1, MODEL_TRIES + 1):
        held = await _hold(engine, model, key, keeper, request)
        if isinstance(held, Refused):
            return NoReply(held.reason, held)
        reservation = (key[0], held.reservation_id)
        asked = replace(request, max_output_tokens=held.max_output_tokens)
        try:
            reply = await _call(engine, model, key, keeper, asked)
        except _Unwanted as unwanted:
            ends = {reservation: CallEnd(CallStatus.ABANDONED)}
            await charge_alone(engine, {reservation: budget.LoseSight()}, ends)
            if unwanted.reason is None:
                raise StaleEpoch(keeper.epoch, keeper.epoch + 1) from None
            return NoReply(unwanted.reason)
        except ModelFailed as error:
            _log.warning("a model call failed: %s", error)
            await charge_alone(
                engine, {reservation: _cost_of(error)}, {reservation: _end_of(error)}
            )
            if not error.retryable:
                break
            pause = error.retry_after or timedelta()
            if pause > LONGEST_PAUSE:
                return await _put_off(engine, key, pause)
            if tried < MODEL_TRIES and not await _paused(engine, key, keeper, pause, stop):
                return PutOff(pause)
            continue
        await _record_reply(engine, key, keeper, record, reply, held)
        return None
    return NoReply(Reason.MODEL_FAILED)


async def _hold(
    engine: Engine, model: ModelPort, key: RunKey, keeper: Keeper, request: ModelRequest
) -> Held | Refused:
    seconds = engine.durations.model_call_seconds + engine.durations.clock_allowance_seconds
    bound = model.cost_bound(request)
    if isinstance(bound, Refused):
        return bound
    call = CallAsk(model.name, bound, request.max_output_tokens, request_digests(request))
    [held] = await reserve(
        engine, [Ask(key, keeper.epoch, f"model:{model.name}", 0, seconds, call)]
    )
    return held


async def _call(
    engine: Engine, model: ModelPort, key: RunKey, keeper: Keeper, request: ModelRequest
) -> ModelReply:
    """Make the request; raises ``ModelFailed`` and ``_Unwanted``, and leaves no request behind."""
    loop = asyncio.get_running_loop()
    over = loop.time() + engine.durations.model_call_seconds
    call = asyncio.ensure_future(model.reply(request))
    try:
        while True:
            left = over - loop.time()
            done, _ = await asyncio.wait({call}, timeout=min(LOOK_SECONDS, max(0.0, left)))
            if done:
                return call.result()
            if left <= LOOK_SECONDS:
                problem = "the model did not answer in time"
                raise ModelFailed(problem, not_sent=False, retryable=True)
            try:
                await _look(engine, key, keeper)
            except _Unwanted:
                if call.done():
                    return call.result()
                raise
    finally:
        if not call.done():
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)


async def _look(engine: Engine, key: RunKey, keeper: Keeper) -> None:
    """Raise ``_Unwanted`` if the run does not need the answer any more."""
    try:
        async with engine.database.transaction() as conn:
            wanted = await model_calls.wanted(conn, key, keeper.epoch)
    except (DatabaseUnavailable, CommitUnknown) as error:
        # The lease ends by itself if this goes on.
        _log.warning("a run was not looked at during its model call: %s", error)
        return
    if not wanted.ours:
        raise _Unwanted(None)
    if wanted.time_is_over:
        raise _Unwanted(Reason.TIME_LIMIT)


async def _paused(
    engine: Engine,
    key: RunKey,
    keeper: Keeper,
    pause: timedelta,
    stop: asyncio.Event | None,
) -> bool:
    """Wait before the next try; ``False``: this worker stops first. Raises ``StaleEpoch``."""
    left = pause.total_seconds()
    while left > 0:
        wait = min(LOOK_SECONDS, left)
        left -= wait
        try:
            async with asyncio.timeout(wait):
                await (stop or asyncio.Event()).wait()
            return False
        except TimeoutError:
            pass
        try:
            await _look(engine, key, keeper)
        except _Unwanted as unwanted:
            if unwanted.reason is None:
                raise StaleEpoch(keeper.epoch, keeper.epoch + 1) from None
    return True


async def _put_off(engine: Engine, key: RunKey, pause: timedelta) -> NoReply | PutOff:
    async with engine.database.transaction() as conn:
        failed = await model_calls.failed_in_a_row(conn, key)
    if failed >= MOST_FAILED_IN_A_ROW:
        return NoReply(Reason.MODEL_FAILED)
    return PutOff(min(pause, LONGEST_PUT_OFF))


def _cost_of(error: ModelFailed) -> budget.Event:
    """Charge a failed call with what it cost; what is neither told nor proved stays counted."""
    if error.cost_microusd is not None:
        return budget.Settle(error.cost_microusd)
    return budget.Void() if error.not_sent else budget.LoseSight()


def _end_of(error: ModelFailed) -> CallEnd:
    problem = storable_text(str(error))[:_LONGEST_PROBLEM]
    return CallEnd(CallStatus.FAILED, _tokens(error.usage), problem=problem)


def _tokens(usage: Usage | None) -> Tokens | None:
    if usage is None:
        return None
    return Tokens(
        usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens
    )


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
    event: budget.Event = budget.LoseSight()
    if reply.cost_microusd is not None:
        event = budget.Settle(reply.cost_microusd)
    response_id = storable_text(reply.response_id) or None
    end = CallEnd(CallStatus.REPLIED, _tokens(reply.usage), response_id)
    async with engine.committing(Commit.RECORD_REPLY) as conn:
        row = (await runs.lock(conn, [key]))[key]
        locked = await lock_for_charge(conn, [reservation])
        await progress.want(conn, [key])
        chain = await journal.lock_chain(conn, [key])
        await charge(conn, locked, {reservation: event}, chain, ends={reservation: end})
        ours = row.status is RunStatus.RUNNING and row.lease_epoch == keeper.epoch
        if ours:
            step = runs.Step(record.next_step, "model", None, _content(engine, reply), chain.now)
            await runs.record_step(conn, key, step)
        await journal.advance(conn, chain)
    engine.ring(Kind.CARDS)
    if not ours:
        # The run was cancelled, or is somebody else's now: its reply leads to nothing.
        _log.info("a reply came for run %s after it had moved on", key[1])


def _content(engine: Engine, reply: ModelReply) -> JsonObject:
    """Spell a reply as it is recorded: a secret in it is hidden before anybody can read it."""
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
    stored = engine.secrets.hide_in(storable(content))
    assert isinstance(stored, dict)
    return stored
