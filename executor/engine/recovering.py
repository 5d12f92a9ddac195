"""T6, second half: what to do about unknown attempts is recorded, and only then done.

One commit decides, with every check for repeats under locks: an operation becomes ``executing``
and due, so that a worker opens a new attempt under the same key; or a search is counted; or nothing
is due any more and a person is asked. A search is made after that commit (see ``searching``).
Killed anywhere, the next look finds the record as it is: a search that was recorded and not made is
lost, never made twice. Locks: as ``opening``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from executor.domain import operation, recovery
from executor.domain.effect import AT_A_DESK, AttemptStatus, EffectKind
from executor.domain.errors import ExecutorError
from executor.domain.journal import JournalEntry
from executor.domain.operation import OperationStatus
from executor.domain.payloads import JsonValue
from executor.domain.recovery import Declared, LookUp, Recovery, SendAgain, Wait
from executor.domain.transition import Machine, Reason, Transition
from executor.engine import revalidation
from executor.engine.engine import Engine
from executor.engine.failpoint import Commit
from executor.engine.group import together_or_apart
from executor.engine.providers import Providers
from executor.engine.recovery_plan import declared_for, plans
from executor.engine.searching import ACTOR, Search, search_all
from executor.engine.world import World, lock_world
from executor.store import cards, effects, journal, operations
from executor.store.cards import SubjectKind
from executor.store.operations import OperationRow
from executor.store.wakeups import Kind

_log = logging.getLogger(__name__)

AT_ONCE = 20
_EVERY_KIND = frozenset(EffectKind)


@dataclass(slots=True)
class _Step:
    """What one transaction will write."""

    plans: list[effects.RecoveryPlan] = field(default_factory=list)
    notes: list[JournalEntry] = field(default_factory=list)
    moves: list[operations.OperationMove] = field(default_factory=list)
    searches: list[Search] = field(default_factory=list)
    touched: list[OperationRow] = field(default_factory=list)


async def recover_until_cancelled(engine: Engine, providers: Providers) -> None:
    """Recover every ``sweep_seconds``; searches make this slow, so it is no part of the sweep.

    Tickets and mails each have their own turn: a desk that hangs holds up no mail.
    """
    async with asyncio.TaskGroup() as turns:
        for kinds in (AT_A_DESK, _EVERY_KIND - AT_A_DESK):
            turns.create_task(_recover_until_cancelled(engine, providers, kinds), name="recovery")


async def _recover_until_cancelled(
    engine: Engine, providers: Providers, kinds: Collection[EffectKind]
) -> None:
    while True:
        try:
            await recover_due(engine, providers, kinds)
        except ExecutorError as error:
            _log.warning("a recovery was left for the next look: %s", error)
        except Exception:
            _log.exception("a recovery failed and is left for the next look")
        await asyncio.sleep(engine.durations.sweep_seconds)


async def recover_due(
    engine: Engine, providers: Providers, kinds: Collection[EffectKind] = _EVERY_KIND
) -> int:
    """Take the next step for every unknown effect of these kinds that is due; return how many were.

    Opens its own transactions. Raises ``CommitUnknown``: nothing was done that was not recorded.
    """
    async with engine.database.transaction() as conn:
        due = await effects.to_recover(conn, kinds, AT_ONCE)
    if not due:
        return 0
    searches: list[Search] = []

    async def step(some: Sequence[effects.AttemptRow]) -> None:
        searches.extend(await _record(engine, providers, some))

    try:
        await together_or_apart(step, due)
    finally:
        engine.ring(Kind.CARDS)
        engine.ring(Kind.WORK)
    if searches:
        await search_all(engine, providers, searches)
    return len(due)


async def _record(
    engine: Engine, providers: Providers, due: Sequence[effects.AttemptRow]
) -> list[Search]:
    """Decide and record the next steps in one commit; return the searches to be made."""
    step = _Step()
    async with engine.committing(Commit.RECOVER) as conn:
        keys = list(dict.fromkeys((d.tenant_id, d.operation_id) for d in due))
        world = await lock_world(conn, keys)
        for item in due:
            _decide(engine, providers, item, world, step)
        await effects.plan_recoveries(conn, step.plans)
        await journal.write_notes(conn, step.notes)
        await operations.move(conn, step.moves)
        touched = [(row.tenant_id, row.id, SubjectKind.OPERATION) for row in step.touched]
        await cards.want(conn, touched, world.chain.now)
        await journal.advance(conn, world.chain)
    return step.searches


def _decide(
    engine: Engine, providers: Providers, item: effects.AttemptRow, world: World, step: _Step
) -> None:
    """Decide about one due attempt as it stands now that everything is locked."""
    row = world.rows.get((item.tenant_id, item.operation_id))
    if row is None:
        return
    now = world.chain.now
    tries = [t for t in world.tries[row.key] if t.attempt.effect_id == item.attempt.effect_id]
    found = next(t for t in tries if t.attempt.id == item.attempt.id)
    if found.recover_at is None or found.recover_at > now:
        return
    step.touched.append(row)
    part = next(p for p in world.parts[row.key] if p.id == found.attempt.effect_id)
    terms = declared_for(engine, providers, part, found.provider)
    decision = recovery.recover(
        [t.attempt for t in tries],
        terms,
        may_send=_may_send(providers, row, world),
        now=now,
        not_before=found.recover_at,
    )
    if isinstance(decision, LookUp):
        _begin_search(row, part, found, tries, terms, world, step)
        return
    if isinstance(decision, SendAgain):
        moved = operation.decide(row.status, operation.Recovers())
        assert isinstance(moved, Transition)
        entry = world.chain.move(
            Machine.OPERATION, row.tenant_id, row.run_id, row.id, row.seq, moved, ACTOR
        )
        step.moves.append(operations.OperationMove(row, moved, entry, due_at=now))
        # The operation is due now, and what comes of the repeat plans what is next.
        step.plans += [replace(p, recover_at=None) for p in plans(tries, decision, now)]
        return
    _note(row, found, "recovery_decided", _spelled(decision), world, step)
    step.plans += plans(tries, decision, now)


def _may_send(providers: Providers, row: OperationRow, world: World) -> bool:
    """Say whether a repeat could be opened; whom to look at first is seen at the opening."""
    if row.status is not OperationStatus.UNKNOWN:
        return False
    refused = revalidation.objection(providers, row, world, first=False)
    return refused is None or refused.reason is Reason.IDENTITY_UNKNOWN


def _begin_search(
    row: OperationRow,
    part: effects.EffectRow,
    found: effects.AttemptRow,
    tries: Sequence[effects.AttemptRow],
    terms: Declared,
    world: World,
    step: _Step,
) -> None:
    """Count a search, and plan the next one far enough away not to meet this one."""
    now, number = world.chain.now, found.attempt.lookups + 1
    begun = replace(found, attempt=replace(found.attempt, lookups=number))
    after = [begun if t is found else t for t in tries]
    following = recovery.recover(
        [t.attempt for t in after],
        terms,
        may_send=False,
        now=now,
        not_before=now + terms.margin,
    )
    until = following.until if isinstance(following, Wait) else now + terms.margin
    step.plans += plans(after, Wait(until), now)
    _note(row, found, "looking_up", {"number": number}, world, step)
    doubtful = tuple(t for t in after if t.attempt.status is AttemptStatus.UNKNOWN)
    step.searches.append(Search(begun, part, doubtful, number))


def _note(
    row: OperationRow,
    found: effects.AttemptRow,
    event: str,
    detail: dict[str, JsonValue],
    world: World,
    step: _Step,
) -> None:
    told: dict[str, JsonValue] = {"attempt": found.attempt.number, **detail}
    step.notes.append(
        world.chain.note(row.tenant_id, row.run_id, found.attempt.id, event, ACTOR, told)
    )


def _spelled(decision: Recovery) -> dict[str, JsonValue]:
    match decision:
        case Wait(until=until):
            return {"next": "wait", "until": until.isoformat()}
        case recovery.AskPerson(why=why):
            return {"next": "a person is asked", "why": why.value}
        case recovery.Settled() | SendAgain() | LookUp():
            return {"next": "nothing"}
