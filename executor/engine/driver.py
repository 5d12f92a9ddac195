"""The driver works one run, one step at a time, from what is recorded.

It holds nothing in memory that the next driver would miss: after every commit the record alone says
what comes next. When operations of a step are pending it leaves, and the run costs rows and nothing
else until they have ended.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from executor.domain import budget, run
from executor.domain.closing import ProposeClosing
from executor.domain.ids import RunId, TenantId
from executor.domain.operation import RUN_WAITS_FOR
from executor.domain.payloads import JsonObject, JsonValue, storable
from executor.domain.policy import Policy
from executor.domain.replay import (
    AnswerCalls,
    AskModel,
    Finish,
    GiveUp,
    RecordedCall,
    RecordedTurn,
    next_action,
)
from executor.domain.run import RunStatus
from executor.domain.transition import Reason, Refused, Transition
from executor.engine import endings
from executor.engine.accept import Asked, accept, lock_working_run
from executor.engine.budget import Ask, Held, charge, charge_alone, lock_for_charge, reserve
from executor.engine.closure_email import ClosureEmails
from executor.engine.engine import Engine
from executor.engine.failpoint import Commit
from executor.engine.leases import Keeper
from executor.engine.ports import (
    MailPort,
    ModelFailed,
    ModelPort,
    ModelReply,
    ModelRequest,
    ToolCall,
    ToolResult,
    Turn,
)
from executor.engine.tool_results import proposal_result
from executor.engine.tools import (
    EFFECT_TOOLS,
    READ_TICKET,
    READ_TOOLS,
    TOOLS,
    parse_proposal,
    run_read_tool,
    unknown_tool,
)
from executor.store import clock, journal, operations, runs, tenants
from executor.store.wakeups import Kind

_log = logging.getLogger(__name__)

RunKey = tuple[TenantId, RunId]
MODEL_TRIES = 2
MOST_CALLS_A_REPLY = 16


@dataclass(frozen=True, slots=True)
class Crew:
    """What the driver works with beside the engine."""

    model: ModelPort
    mail: MailPort
    emails: ClosureEmails


@dataclass(frozen=True, slots=True)
class _Record:
    """A run as it is recorded."""

    goal: str
    policy: Policy
    turns: tuple[RecordedTurn, ...]
    proposals: dict[tuple[int, int], operations.ProposalRow]
    next_step: int


@dataclass(frozen=True, slots=True)
class _Left:
    """The run is not ours to go on with: it waits, or it has ended."""


_WENT_ON = None
_Progress = _Left | None


async def drive(
    engine: Engine, crew: Crew, key: RunKey, keeper: Keeper, stop: asyncio.Event
) -> None:
    """Work a run until it waits or ends, or ``stop`` is set between two steps; keep its lease.

    Raises ``StaleEpoch`` when the lease is lost, ``CommitUnknown`` and ``DatabaseUnavailable`` as
    they come: the record says to the next driver what was stored.
    """
    # Kept over all steps, not each of them: many short ones would otherwise outlast the lease.
    await keeper.while_kept(_drive(engine, crew, key, keeper, stop), abandon=True)


async def _drive(
    engine: Engine, crew: Crew, key: RunKey, keeper: Keeper, stop: asyncio.Event
) -> None:
    while True:
        record = await _read(engine, key)
        if stop.is_set():
            await _hand_back(engine, key, keeper)
            return
        action = next_action(record.turns, record.policy.run)
        match action:
            case AskModel():
                progress = await _ask_model(engine, crew, key, keeper, record)
            case AnswerCalls(calls=calls):
                progress = await _answer(engine, crew, key, keeper, record, calls)
            case Finish(text=text):
                progress = await _end(engine, key, keeper, None, text)
            case GiveUp(reason=reason):
                progress = await _end(engine, key, keeper, reason, "")
        if progress is not _WENT_ON:
            return


async def _read(engine: Engine, key: RunKey) -> _Record:
    async with engine.database.transaction() as conn:
        row = await runs.show(conn, *key)
        steps = await runs.read_steps(conn, key)
        proposals = await operations.proposals_of(conn, key)
        policy = (await tenants.share_policies(conn, [key[0]]))[key[0]]
    assert row is not None, "a claimed run exists"
    return _Record(
        row.goal,
        policy,
        _turns(steps),
        {(p.step, p.ordinal): p for p in proposals},
        len(steps) + 1,
    )


def _turns(steps: Sequence[runs.Step]) -> tuple[RecordedTurn, ...]:
    results = {s.answers: s.content["result"] for s in steps if s.answers is not None}
    turns = []
    for step in steps:
        if step.kind != "model":
            continue
        calls = step.content["tool_calls"]
        assert isinstance(calls, list)
        turns.append(
            RecordedTurn(
                step.number,
                str(step.content["text"]),
                tuple(
                    RecordedCall(
                        step.number,
                        ordinal,
                        call["id"],
                        call["name"],
                        call["arguments"],
                        results.get((step.number, ordinal)),  # type: ignore[arg-type]
                    )
                    for ordinal, call in enumerate(calls)
                ),
            )
        )
    return tuple(turns)


async def _ask_model(
    engine: Engine, crew: Crew, key: RunKey, keeper: Keeper, record: _Record
) -> _Progress:
    """Hold the worst case, make exactly one request, and charge it with the record of its reply."""
    request = _request(record)
    for _ in range(MODEL_TRIES):
        held = await _hold(engine, crew, key, keeper, request)
        if isinstance(held, Refused):
            return await _end(engine, key, keeper, Reason.BUDGET_LIMIT, "")
        reservation = (key[0], held.reservation_id)
        try:
            reply = await _call(engine, crew.model, request)
        except ModelFailed as error:
            event: budget.Event = budget.Void() if error.not_sent else budget.LoseSight()
            await charge_alone(engine, {reservation: event})
            _log.warning("a model call failed: %s", error)
            if not error.retryable:
                break
            continue
        await _record_reply(engine, key, keeper, record, reply, held)
        return _WENT_ON
    return await _end(engine, key, keeper, Reason.MODEL_FAILED, "")


def _request(record: _Record) -> ModelRequest:
    turns = []
    for turn in record.turns:
        calls = tuple(ToolCall(c.id, c.name, c.arguments) for c in turn.calls)
        results = tuple(
            ToolResult(ToolCall(c.id, c.name, c.arguments), c.result or {}) for c in turn.calls
        )
        turns.append(Turn(ModelReply(turn.text, calls, 0, 0, 0), results))
    return ModelRequest(record.goal, TOOLS, turns, record.policy.run.max_output_tokens)


async def _hold(
    engine: Engine, crew: Crew, key: RunKey, keeper: Keeper, request: ModelRequest
) -> Held | Refused:
    seconds = engine.durations.model_call_seconds + engine.durations.clock_allowance_seconds
    [held] = await reserve(
        engine,
        [
            Ask(
                key,
                keeper.epoch,
                f"model:{crew.model.name}",
                crew.model.worst_case_microusd(request),
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
    record: _Record,
    reply: ModelReply,
    held: Held,
) -> None:
    """Charge the call and record its reply in one commit; the charge is a fact at any epoch."""
    reservation = (key[0], held.reservation_id)
    async with engine.committing(Commit.RECORD_REPLY) as conn:
        row = (await runs.lock(conn, [key]))[key]
        locked = await lock_for_charge(conn, [reservation])
        chain = await journal.lock_chain(conn, [key])
        await charge(conn, locked, {reservation: budget.Settle(reply.cost_microusd)}, chain)
        ours = row.status is RunStatus.RUNNING and row.lease_epoch == keeper.epoch
        if ours:
            step = runs.Step(record.next_step, "model", None, _content(reply), chain.now)
            await runs.record_step(conn, key, step)
        await journal.advance(conn, chain)
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
            "input_tokens": reply.input_tokens,
            "output_tokens": reply.output_tokens,
            "cost_microusd": reply.cost_microusd,
        },
    }
    stored = storable(content)
    assert isinstance(stored, dict)
    return stored


async def _answer(
    engine: Engine,
    crew: Crew,
    key: RunKey,
    keeper: Keeper,
    record: _Record,
    calls: Sequence[RecordedCall],
) -> _Progress:
    """Answer what can be answered, propose what is new, and wait while anything is pending."""
    next_step, asked, pending = record.next_step, list[Asked](), False
    for call in calls:
        proposal = record.proposals.get((call.step, call.ordinal))
        if proposal is not None and proposal.status in RUN_WAITS_FOR:
            pending = True
            continue
        if proposal is not None:
            result = proposal_result(
                proposal.status, proposal.number, proposal.reason, proposal.detail
            )
        else:
            answer = await _new_call(engine, key, record, call)
            if isinstance(answer, Asked):
                asked.append(answer)
                continue
            result = answer
        await _record_result(engine, key, keeper, call, next_step, result)
        next_step += 1
    if asked:
        await accept(engine, crew.mail, crew.emails, key, keeper.epoch, asked, next_step)
        return _WENT_ON
    return await _wait(engine, key, keeper) if pending else _WENT_ON


async def _new_call(
    engine: Engine, key: RunKey, record: _Record, call: RecordedCall
) -> Asked | JsonObject:
    """Run a read, or turn an effect into a proposal; whatever is wrong is the model's answer."""
    if call.name in READ_TOOLS:
        return await run_read_tool(
            engine.database, key[0], ToolCall(call.id, call.name, call.arguments)
        )
    if call.name not in EFFECT_TOOLS:
        return unknown_tool()
    parsed = parse_proposal(ToolCall(call.id, call.name, call.arguments))
    if not isinstance(parsed, ProposeClosing):
        return parsed
    return Asked(
        call.step, call.ordinal, parsed, _version_read(record, call.step, parsed.ticket_id)
    )


def _version_read(record: _Record, step: int, ticket_id: str) -> int | None:
    """Return the version of the ticket that the model had been shown when it made reply ``step``.

    A read in that same reply does not count, also not after a crash in between.
    """
    for turn in reversed([turn for turn in record.turns if turn.step < step]):
        for call in reversed(turn.calls):
            result = call.result or {}
            if call.name == READ_TICKET and result.get("id") == ticket_id:
                version = result.get("version")
                return version if isinstance(version, int) else None
    return None


async def _record_result(
    engine: Engine,
    key: RunKey,
    keeper: Keeper,
    call: RecordedCall,
    number: int,
    result: JsonObject,
) -> None:
    async with engine.committing(Commit.RECORD_RESULT) as conn:
        await lock_working_run(conn, key, keeper.epoch)
        now = await clock.now(conn)
        content = storable({"result": result})
        assert isinstance(content, dict)
        step = runs.Step(number, "tool", (call.step, call.ordinal), content, now)
        await runs.record_step(conn, key, step)


async def _wait(engine: Engine, key: RunKey, keeper: Keeper) -> _Progress:
    """Leave the run waiting, unless everything has ended meanwhile; read under the run's lock."""
    async with engine.committing(Commit.WAIT) as conn:
        row = await lock_working_run(conn, key, keeper.epoch)
        chain = await journal.lock_chain(conn, [key])
        answered = {s.answers for s in await runs.read_steps(conn, key)}
        pending = any(
            p.status in RUN_WAITS_FOR and (p.step, p.ordinal) not in answered
            for p in await operations.proposals_of(conn, key)
        )
        if not pending:
            return _WENT_ON
        decision = run.decide(row.status, run.MustWait())
        assert isinstance(decision, Transition)
        await endings.move_run(conn, row, decision, keeper.owner, chain)
        await journal.advance(conn, chain)
    return _Left()


async def _end(
    engine: Engine, key: RunKey, keeper: Keeper, reason: Reason | None, summary: str
) -> _Progress:
    """End the run: completed where ``reason`` is ``None``, else stopped for that reason."""
    async with engine.committing(Commit.END_RUN) as conn:
        await lock_working_run(conn, key, keeper.epoch)
        locked = await endings.lock_run_with_operations(conn, [key])
        chain = await locked.chain(conn)
        row = locked.runs[key]
        if reason is None:
            await endings.complete_locked(conn, locked, row, summary, keeper.owner, chain)
        else:
            await endings.stop_locked(conn, locked, row, reason, keeper.owner, chain, summary)
        await journal.advance(conn, chain)
    engine.ring(Kind.CARDS)
    return _Left()


async def _hand_back(engine: Engine, key: RunKey, keeper: Keeper) -> None:
    async with engine.database.transaction() as conn:
        now: datetime = await clock.now(conn)
        await runs.hand_back(conn, key, owner=keeper.owner, epoch=keeper.epoch, due_at=now)
    engine.ring(Kind.WORK)
