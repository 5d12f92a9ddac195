"""The driver works one run, one step at a time, from what is recorded.

It holds nothing in memory that the next driver would miss: after every commit the record alone says
what comes next. When operations of a step are pending it leaves, and the run costs rows and nothing
else until they have ended, or until somebody asks about one of them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from executor.domain import run
from executor.domain.closing import ProposeClosing
from executor.domain.operation import RUN_WAITS_FOR, STOPS_RUN
from executor.domain.payloads import JsonObject, storable
from executor.domain.replay import (
    AnswerCalls,
    AskModel,
    CloseQuestions,
    Finish,
    GiveUp,
    RecordedCall,
    TakeUp,
    Wait,
    next_action,
)
from executor.domain.transition import Reason, Refused, Transition
from executor.engine import endings
from executor.engine.accept import Asked, accept, lock_working_run
from executor.engine.accepting_tools import accept_tool_calls
from executor.engine.closure_email import ClosureEmails
from executor.engine.converging import Answered
from executor.engine.engine import Engine
from executor.engine.failpoint import Commit
from executor.engine.leases import Keeper
from executor.engine.model_call import PutOff, ask_model
from executor.engine.outside_reading import call_outside
from executor.engine.outside_tools import AskedCall, list_for
from executor.engine.pausing import Paused, pause
from executor.engine.ports import ModelPort, ToolCall
from executor.engine.providers import Providers
from executor.engine.questions import close, take_up
from executor.engine.run_record import Record, RunKey, read_run_record, version_read
from executor.engine.tool_results import result_of
from executor.engine.tools import (
    EFFECT_TOOLS,
    READ_TOOLS,
    parse_proposal,
    run_read_tool,
    unknown_tool,
)
from executor.store import clock, journal, pauses, progress, proposals, questions, runs
from executor.store.wakeups import Kind

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Crew:
    """What the driver works with beside the engine."""

    model: ModelPort
    providers: Providers
    emails: ClosureEmails


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
        record = await read_run_record(engine, key)
        if stop.is_set():
            await _hand_back(engine, key, keeper)
            return
        action = next_action(record.turns, record.policy.run, record.questions)
        progress: _Progress = _WENT_ON
        if record.policy.servers and isinstance(action, AskModel | AnswerCalls):
            outside = await list_for(crew.providers, record.access)
            tools = (*record.tools, *outside.specs())
            record = replace(record, tools=tools, outside=outside)
        match action:
            case AskModel(answering=asked):
                failed = await ask_model(engine, crew.model, key, keeper, record, stop)
                if isinstance(failed, PutOff):
                    progress = await _put_off(engine, key, keeper, failed)
                elif failed is not None and asked:
                    # What waits for a decision needs no model: only the question ends.
                    await close(engine, key, keeper, CloseQuestions(asked, None, failed.reason))
                elif failed is not None and failed.reason is Reason.BUDGET_LIMIT:
                    progress = await _pause(engine, key, keeper, failed.refused)
                elif failed is not None:
                    progress = await _end(engine, key, keeper, failed.reason, "")
            case AnswerCalls(calls=calls):
                await _answer(engine, crew, key, keeper, record, calls)
            case TakeUp(questions=new):
                await take_up(engine, key, keeper, new, record.next_step)
            case CloseQuestions():
                await close(engine, key, keeper, action)
            case Wait():
                progress = await _wait(engine, key, keeper)
            case Finish(text=text):
                progress = await _end(engine, key, keeper, None, text)
            case GiveUp(reason=reason):
                progress = await _end(engine, key, keeper, reason, "")
        if progress is not _WENT_ON:
            return


async def give_up(engine: Engine, key: RunKey, keeper: Keeper, reason: Reason) -> None:
    """End a run that cannot be driven, for ``reason``. Opens its own transaction."""
    await _end(engine, key, keeper, reason, "")


async def _answer(
    engine: Engine,
    crew: Crew,
    key: RunKey,
    keeper: Keeper,
    record: Record,
    calls: Sequence[RecordedCall],
) -> None:
    """Answer calls that wait for nothing: read, tell what operations came to, propose."""
    next_step, asked, calls_asked = record.next_step, list[Asked](), list[AskedCall]()
    for call in calls:
        proposal = record.proposals.get((call.step, call.ordinal))
        if proposal is not None:
            result = result_of(proposal)
        else:
            answer = await _new_call(engine, crew, key, keeper, record, call)
            if isinstance(answer, Asked):
                asked.append(answer)
                continue
            if isinstance(answer, AskedCall):
                calls_asked.append(answer)
                continue
            result = answer
        await _record_result(engine, key, keeper, call, next_step, result)
        next_step += 1
    if asked:
        came_to = await accept(
            engine, crew.providers, crew.emails, key, keeper.epoch, asked, next_step
        )
        next_step += sum(isinstance(result, Answered) for result in came_to)
    if calls_asked:
        await accept_tool_calls(engine, key, keeper.epoch, calls_asked, next_step)


async def _new_call(
    engine: Engine, crew: Crew, key: RunKey, keeper: Keeper, record: Record, call: RecordedCall
) -> Asked | AskedCall | JsonObject:
    """Run a read, or turn an effect into a proposal; whatever is wrong is the model's answer."""
    visible = {tool.name for tool in record.tools}
    if call.name in READ_TOOLS:
        return await run_read_tool(
            engine.database,
            key[0],
            record.requester,
            ToolCall(call.id, call.name, call.arguments),
            outside=crew.providers.desk,
            visible=visible,
        )
    if call.name not in EFFECT_TOOLS:
        return await call_outside(engine, key, keeper, record.outside, call)
    if call.name not in visible:
        return unknown_tool()
    parsed = parse_proposal(ToolCall(call.id, call.name, call.arguments))
    if not isinstance(parsed, ProposeClosing):
        return parsed
    return Asked(call.step, call.ordinal, parsed, version_read(record, call.step, parsed.ticket_id))


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
        await progress.want(conn, [key])
        now = await clock.now(conn)
        content = engine.secrets.hide_in(storable({"result": result}))
        assert isinstance(content, dict)
        step = runs.Step(number, "tool", (call.step, call.ordinal), content, now)
        await runs.record_step(conn, key, step)
    engine.ring(Kind.CARDS)


async def _wait(engine: Engine, key: RunKey, keeper: Keeper) -> _Progress:
    """Leave the run waiting, unless all has ended or somebody asks; read under the run's lock."""
    async with engine.committing(Commit.WAIT) as conn:
        row = await lock_working_run(conn, key, keeper.epoch)
        chain = await endings.lock_cards_and_chain(conn, [], runs_too=[key])
        answered = {s.answers for s in await runs.read_steps(conn, key)}
        unanswered = [
            p for p in await proposals.of_run(conn, key) if (p.step, p.ordinal) not in answered
        ]
        pending = any(p.status in RUN_WAITS_FOR for p in unanswered)
        stops = any(STOPS_RUN in p.detail for p in unanswered)
        if not pending or stops or await questions.something_is_asked(conn, key):
            return _WENT_ON
        decision = run.decide(row.status, run.MustWait())
        assert isinstance(decision, Transition)
        await endings.move_run(conn, row, decision, keeper.owner, chain)
        await journal.advance(conn, chain)
    engine.ring(Kind.CARDS)
    return _Left()


async def _pause(engine: Engine, key: RunKey, keeper: Keeper, refused: Refused | None) -> _Progress:
    """Leave the run until there is room for its call; where nobody could make any, end it."""
    assert refused is not None, "a limit says which it is"
    match await pause(engine, key, keeper, refused):
        case Paused.ROOM:
            return _WENT_ON
        case Paused.PAUSED:
            return _Left()
        case Paused.NO_RAISE:
            async with engine.database.transaction() as conn:
                said = await pauses.last_words(conn, key)
            return await _end(engine, key, keeper, Reason.BUDGET_LIMIT, said)


async def _put_off(engine: Engine, key: RunKey, keeper: Keeper, put_off: PutOff) -> _Progress:
    """Leave the run until its model may be asked again; no worker is held for that long."""
    async with engine.committing(Commit.WAIT) as conn:
        row = await lock_working_run(conn, key, keeper.epoch)
        chain = await endings.lock_cards_and_chain(conn, [], runs_too=[key])
        decision = run.decide(row.status, run.MustWait())
        assert isinstance(decision, Transition)
        due_at = chain.now + put_off.by
        decision = replace(decision, detail={"model_asked_again_at": due_at.isoformat()})
        await endings.move_run(conn, row, decision, keeper.owner, chain, due_at=due_at)
        await journal.advance(conn, chain)
    engine.ring(Kind.CARDS)
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
