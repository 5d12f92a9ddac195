"""A ticket is closed and its email was proved not sent: what comes of that is decided and recorded.

Policy says whether it is left closed, or reopening is proposed, to people or with the policy's own
consent. A reopening is an operation of its own in a run of its own, which nobody drives, so that
cancelling the first run cannot stop it. It is proposed only while the ticket stands exactly where
our own close left it; an outside ticket is looked at right before. One commit decides; killed
anywhere, the next look finds the record as it is, and two lookers propose once. What becomes of the
closing when the reopening has ended: see ``compensation_end``. Locks: as ``opening``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from executor.domain import compensation, operation
from executor.domain.errors import ExecutorError
from executor.domain.journal import JournalEntry
from executor.domain.operation import OperationStatus
from executor.domain.policy import WhenMailIsNotSent
from executor.domain.ticket import BUILTIN_DESK, TicketStatus
from executor.domain.transition import Reason, Refused
from executor.engine.compensation_end import ended
from executor.engine.composing import Target
from executor.engine.engine import Engine
from executor.engine.failpoint import Commit
from executor.engine.group import together_or_apart
from executor.engine.outside_target import learnt_stamp
from executor.engine.providers import Providers
from executor.engine.reopening import Proposed, propose
from executor.engine.sighting import (
    READINGS_AT_ONCE,
    Sight,
    see_before_opening,
    wait_for_desk,
)
from executor.engine.undriven import ACTOR
from executor.engine.world import World, lock_world
from executor.store import cards, compensations, journal, operations, outside_tickets
from executor.store.cards import SubjectKind
from executor.store.operations import OperationKey, OperationRow
from executor.store.outside_tickets import SeenTicket
from executor.store.wakeups import Kind

_log = logging.getLogger(__name__)

AT_ONCE = 20


async def compensate_until_cancelled(engine: Engine, providers: Providers) -> None:
    """Compensate every ``sweep_seconds``; a slow desk holds nothing else up."""
    while True:
        try:
            await compensate(engine, providers)
        except ExecutorError as error:
            _log.warning("a compensation was left for the next look: %s", error)
        except Exception:
            _log.exception("a compensation failed and is left for the next look")
        await asyncio.sleep(engine.durations.sweep_seconds)


async def compensate(engine: Engine, providers: Providers) -> int:
    """Decide about every partial closing that is due; return how many were.

    Opens its own transactions. Raises ``CommitUnknown``: deciding again is harmless.
    """
    async with engine.database.transaction() as conn:
        due = await compensations.due(conn, AT_ONCE)
    if not due:
        return 0
    sights = await _look(engine, providers, due)
    await together_or_apart(lambda some: _record(engine, providers, some, sights), due)
    engine.ring(Kind.CARDS)
    engine.ring(Kind.WORK)
    return len(due)


async def _look(
    engine: Engine, providers: Providers, keys: Sequence[OperationKey]
) -> dict[OperationKey, Sight]:
    """Look at the outside tickets, a few at once, before anything is locked."""
    room = asyncio.Semaphore(READINGS_AT_ONCE)

    async def one(key: OperationKey) -> Sight | None:
        async with room:
            return await see_before_opening(engine, providers, key)

    seen = await asyncio.gather(*map(one, keys))
    return {key: sight for key, sight in zip(keys, seen, strict=True) if sight is not None}


@dataclass(slots=True)
class _Step:
    """What one transaction will write about closings, beside the reopenings that it proposes."""

    moves: list[operations.OperationMove] = field(default_factory=list)
    plans: list[tuple[OperationKey, datetime | None]] = field(default_factory=list)
    notes: list[JournalEntry] = field(default_factory=list)
    touched: list[OperationRow] = field(default_factory=list)
    seen: list[SeenTicket] = field(default_factory=list)


async def _record(
    engine: Engine,
    providers: Providers,
    keys: Sequence[OperationKey],
    sights: Mapping[OperationKey, Sight],
) -> None:
    step = _Step()
    async with engine.committing(Commit.COMPENSATE) as conn:
        world = await lock_world(conn, keys, sights)
        for key in keys:
            row = world.rows.get(key)
            if row is None or row.compensate_at is None or row.compensate_at > world.chain.now:
                # Somebody else has decided since we looked.
                continue
            decided = _decide(engine, row, world, sights.get(key), step)
            if decided is None:
                continue
            target, by_policy = decided
            proposed = await propose(conn, engine, providers, world, row, target, by_policy)
            _keep(row, proposed, world, step)
        await operations.move(conn, step.moves)
        await compensations.plan(conn, step.plans)
        await journal.write_notes(conn, step.notes)
        touched = [(row.tenant_id, row.id, SubjectKind.OPERATION) for row in step.touched]
        await cards.want(conn, touched, world.chain.now)
        await outside_tickets.keep(conn, step.seen)
        await journal.advance(conn, world.chain)


def _decide(
    engine: Engine, row: OperationRow, world: World, sight: Sight | None, step: _Step
) -> tuple[Target, bool] | None:
    """Return the ticket that is to be opened again, and whether the policy consents to that."""
    policy = world.policies[row.tenant_id]
    when = policy.tickets.when_mail_is_not_sent
    target: Target | Refused | None = None
    if when is not WhenMailIsNotSent.LEAVE:
        target = _target(row, world)
        if target is None and (late := _waits_for_desk(engine, row, world, sight, step)):
            target = late
        if target is None:
            return None
    if row.key in world.sights:
        step.seen += world.sights[row.key].seen_by(row.tenant_id)
    moved = target if isinstance(target, Refused) else None
    decided = compensation.decide(row.status, when, moved)
    if isinstance(decided, compensation.Propose):
        assert isinstance(target, Target)
        return target, decided.by_policy
    if isinstance(decided, operation.LeftSo):
        step.moves.append(ended(row, decided, world.chain))
        step.touched.append(row)
    return None


def _target(row: OperationRow, world: World) -> Target | Refused | None:
    """Return the ticket if it stands where our close left it, or say why not; ``None``: unseen."""
    if row.desk == BUILTIN_DESK:
        ticket = world.tickets.get((row.tenant_id, row.ticket_id))
        ours = ticket is not None and ticket.version == row.closed_version
        if ticket is not None and ours and ticket.status is TicketStatus.CLOSED:
            return Target(ticket)
        return _moved(row, None if ticket is None else ticket.version)
    sight = world.sights.get(row.key)
    if sight is None:
        return None
    seen = sight.observation
    stamp = row.closed_stamp or learnt_stamp(sight, world.parts[row.key])
    if seen is None or stamp is None or seen.stamp != stamp:
        return _moved(row, None if seen is None else seen.ticket.version)
    if seen.ticket.status is not TicketStatus.CLOSED:
        return _moved(row, seen.ticket.version)
    return Target(seen.ticket, seen)


def _moved(row: OperationRow, version: int | None) -> Refused:
    return Refused(
        Reason.CHANGED_SINCE_CLOSE, {"closed_at": row.closed_version, "version": version}
    )


def _waits_for_desk(
    engine: Engine, row: OperationRow, world: World, sight: Sight | None, step: _Step
) -> Refused | None:
    """Look again later, for as long as people would have had to decide; then leave it closed."""
    now = world.chain.now
    problem = "this desk is not set up here" if sight is None else sight.problem
    since = row.ended_at or now
    patience = timedelta(
        seconds=world.policies[row.tenant_id].approval.decide_within_seconds,
    )
    if problem is not None and now >= since + patience:
        return Refused(Reason.DESK_UNAVAILABLE, {"problem": problem})
    asked = None if sight is None else sight.retry_after
    step.plans.append((row.key, now + wait_for_desk(engine, since, now, asked)))
    return None


def _keep(row: OperationRow, proposed: Proposed, world: World, step: _Step) -> None:
    """Keep with the closing that its reopening was asked for; it is not looked at again."""
    assert row.status is OperationStatus.PARTIAL
    step.plans.append((row.key, None))
    step.touched.append(row)
    step.notes.append(
        world.chain.note(
            row.tenant_id,
            row.run_id,
            row.id,
            "reopening_proposed",
            ACTOR,
            {"number": proposed.number, "reopening": str(proposed.id)},
        )
    )
