"""T5: what came of an attempt is recorded, by anyone who has it, whatever their epoch.

Fencing stops a stale worker from starting anything; it never stops anyone from reporting a fact.
The effect follows from all its attempts, the operation from all its effects, in the same commit. A
retry is not made here: an operation that may try again becomes due, and ``opening`` checks the
world first. An outside close that was made is kept in the same commit, with its version. Locks: our
counts of outside tickets' closings, operations, effects, attempts, cards, journal heads.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from executor.domain import effect, operation, recovery
from executor.domain.effect import (
    AttemptStatus,
    Capability,
    EffectKind,
    EffectStatus,
    Outcome,
    OutcomeKind,
    statuses_that_tell,
)
from executor.domain.finding import Finding
from executor.domain.ids import AttemptId
from executor.domain.intent import episode_of
from executor.domain.journal import Chain
from executor.domain.operation import OperationStatus
from executor.domain.payloads import JsonObject, JsonValue
from executor.domain.stamp import stamp_from
from executor.domain.transition import Machine, Reason, Transition
from executor.engine import endings
from executor.engine.alarm import tell_contradiction, tell_doubts
from executor.engine.engine import Engine
from executor.engine.failpoint import Commit
from executor.engine.recovery_plan import plans
from executor.engine.tool_results import NOTE_LEFT
from executor.store import (
    cards,
    effects,
    episodes,
    journal,
    operation_leases,
    operation_lookups,
    operations,
)
from executor.store.cards import SubjectKind
from executor.store.connection import Connection
from executor.store.operations import OperationKey, OperationRow
from executor.store.wakeups import Kind

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Report:
    """What somebody knows of one attempt; ``actor`` is who says so.

    ``reason`` is why the operation ends where it is not the provider's refusal. ``goes_on`` leaves
    the operation open though the effect was not applied.
    """

    key: OperationKey
    attempt_id: AttemptId
    outcome: Outcome
    actor: str
    reason: Reason = Reason.REFUSED_BY_PROVIDER
    goes_on: bool = False


@dataclass(slots=True)
class State:
    """The locked records that several reports of one group may share."""

    rows: dict[OperationKey, OperationRow]
    parts: dict[OperationKey, list[effects.EffectRow]]
    tries: dict[OperationKey, list[effects.AttemptRow]]


async def report(
    engine: Engine, reports: Sequence[Report], commit: Commit = Commit.REPORT
) -> list[OperationStatus | None]:
    """Record outcomes in one commit and return where each operation stands then.

    Opens its own transaction. The same outcome again changes nothing; ``applied`` is final. An
    unknown operation is ``None``. Raises ``CommitUnknown``: reporting again is harmless.
    """
    async with engine.committing(commit) as conn:
        state = await _lock(conn, reports)
        before = {key: row.status for key, row in state.rows.items()}
        chain = await endings.lock_cards_and_chain(conn, list(state.rows.values()))
        for item in reports:
            await fold(conn, engine, item, state, chain)
        await cards.want(
            conn, [(t, id_, SubjectKind.OPERATION) for t, id_ in state.rows], chain.now
        )
        await journal.advance(conn, chain)
    engine.ring(Kind.CARDS)
    engine.ring(Kind.WORK)
    tell_doubts(before, state.rows, state.parts)
    return [state.rows[item.key].status if item.key in state.rows else None for item in reports]


async def _lock(conn: Connection, reports: Sequence[Report]) -> State:
    keys = {item.key for item in reports}
    # As in T1, our own count of a ticket's closings comes before the operations about it.
    await episodes.lock(conn, episodes.outside(await operation_lookups.peek(conn, keys)))
    rows = await operations.lock(conn, keys)
    parts = await effects.of_operations(conn, list(rows))
    return State(rows, parts, await effects.attempts_of(conn, list(rows)))


async def fold(conn: Connection, engine: Engine, item: Report, state: State, chain: Chain) -> None:
    """Fold one report into ``state``: each decides on what the one before left.

    Runs in the caller's transaction, which holds the locks on everything in ``state``.
    """
    row = state.rows.get(item.key)
    if row is None:
        return
    tries = state.tries[item.key]
    found = next((t for t in tries if t.attempt.id == item.attempt_id), None)
    if found is None:
        return
    moved = effect.decide_attempt(found.attempt.status, item.outcome)
    if not isinstance(moved, Transition):
        return
    entry = chain.move(
        Machine.ATTEMPT,
        row.tenant_id,
        row.run_id,
        found.attempt.id,
        found.attempt.seq,
        moved,
        item.actor,
    )
    evidence = {**found.attempt.evidence, **item.outcome.evidence}
    await effects.move_attempts(
        conn, [effects.AttemptMove(found, moved, evidence, entry)], chain.now
    )
    attempt = replace(
        found.attempt, status=moved.target, seq=found.attempt.seq + 1, evidence=evidence
    )
    tries[tries.index(found)] = replace(found, attempt=attempt)
    await _follow(conn, engine, item, row, state, chain)


async def _follow(
    conn: Connection,
    engine: Engine,
    item: Report,
    row: OperationRow,
    state: State,
    chain: Chain,
) -> None:
    """Let the effect follow its attempts, and the operation its effects."""
    parts, tries = state.parts[item.key], state.tries[item.key]
    effect_id = next(t.attempt.effect_id for t in tries if t.attempt.id == item.attempt_id)
    part = next(p for p in parts if p.id == effect_id)
    statuses = [t.attempt.status for t in tries if t.attempt.effect_id == part.id]
    moved = effect.decide_effect(part.status, statuses)
    if isinstance(moved, Transition):
        entry = chain.move(
            Machine.EFFECT, row.tenant_id, row.run_id, part.id, part.seq, moved, item.actor
        )
        await effects.move(conn, [effects.EffectMove(part, moved, entry)])
        parts[parts.index(part)] = replace(part, status=moved.target, seq=part.seq + 1)
        if moved.target is EffectStatus.APPLIED:
            tell_contradiction(row, part)
            row = await _keep_close(conn, item, row, part, state)
    await _plan_recovery(conn, item, [t for t in tries if t.attempt.effect_id == part.id], chain)
    again_at = _retry_at(engine, item, row, statuses, chain)
    if again_at is None and _has_next(parts):
        again_at = chain.now
    if again_at is not None and row.status is OperationStatus.UNKNOWN:
        # What was in doubt is done, and the next part has its turn.
        await _move(
            conn, row, operation.decide(row.status, operation.Recovers()), item, state, chain
        )
        return
    detail: dict[str, JsonValue] = {**row.detail, "outcome": dict(item.outcome.evidence)}
    event = operation.EffectsMoved(
        statuses_that_tell((p.kind, p.status) for p in parts),
        will_continue=again_at is not None or item.goes_on,
        detail={**detail, **_left_behind(parts)},
    )
    decision = operation.decide(row.status, event)
    if isinstance(decision, Transition):
        await _end(conn, row, decision, item, state, chain)
    elif again_at is not None and row.lease_owner is not None:
        await operation_leases.hand_back(
            conn, row.key, owner=row.lease_owner, epoch=row.lease_epoch, due_at=again_at
        )


async def _keep_close(
    conn: Connection, item: Report, row: OperationRow, part: effects.EffectRow, state: State
) -> OperationRow:
    """Keep that an outside ticket was closed, and the version that it has since, if it was told.

    Where it was not, the version that the close was made at stands in for it: a ticket that is open
    again is later than that, too.
    """
    if part.kind is not EffectKind.TICKET_CLOSE or part.capability is Capability.TRANSACTIONAL:
        return row
    stamp = stamp_from(item.outcome.evidence.get("stamp"))
    closed = stamp or row.ticket_stamp
    if closed is not None:
        ticket = (row.tenant_id, row.desk, row.ticket_id)
        close = episodes.Close(ticket, episode_of(row.intent_key), closed)
        await episodes.record_closes(conn, [close])
    if stamp is None:
        return row
    await operations.record_closed(conn, [(row.key, stamp)])
    state.rows[row.key] = replace(row, closed_stamp=stamp)
    return state.rows[row.key]


def _left_behind(parts: Sequence[effects.EffectRow]) -> JsonObject:
    """Say that a note stands on the ticket although nothing else was done, where that is so."""
    applied = {p.kind for p in parts if p.status is EffectStatus.APPLIED}
    return {NOTE_LEFT: True} if applied == {EffectKind.TICKET_NOTE} else {}


async def _plan_recovery(
    conn: Connection, item: Report, tries: Sequence[effects.AttemptRow], chain: Chain
) -> None:
    """Record what comes next for an effect that is still in doubt, and when."""
    if item.outcome.evidence.get("stop") is True:
        _log.error(
            "attempt %s: the provider saw its key with other bytes; nothing is sent any more: %s",
            item.attempt_id,
            dict(item.outcome.evidence),
        )
    decision = recovery.plan([t.attempt for t in tries], item.outcome, now=chain.now)
    await effects.plan_recoveries(conn, plans(tries, decision, chain.now))


def _has_next(parts: Sequence[effects.EffectRow]) -> bool:
    """Say whether the last thing that moved was applied and another part is still to be opened."""
    left = [p for p in parts if p.status is not EffectStatus.APPLIED]
    return bool(left) and left[0].status is EffectStatus.PLANNED


def _retry_at(
    engine: Engine,
    item: Report,
    row: OperationRow,
    statuses: Sequence[AttemptStatus],
    chain: Chain,
) -> datetime | None:
    """Say when to try again: only for a reason that can change by itself, and only so often."""
    outcome, durations = item.outcome, engine.durations
    if row.status is not OperationStatus.EXECUTING:
        return None
    if outcome.kind is not OutcomeKind.NOT_APPLIED or not outcome.retryable:
        return None
    if set(statuses) != {AttemptStatus.NOT_APPLIED} or len(statuses) >= durations.most_attempts:
        return None
    backoff = timedelta(seconds=durations.retry_seconds * 2 ** (len(statuses) - 1))
    return chain.now + max(backoff, outcome.retry_after or timedelta(0))


async def _end(
    conn: Connection,
    row: OperationRow,
    decision: Transition[OperationStatus],
    item: Report,
    state: State,
    chain: Chain,
) -> None:
    """Move the operation to what its effects say; only ``unknown`` is not an end."""
    reason = {
        OperationStatus.UNKNOWN: Reason.OUTCOME_LOST,
        OperationStatus.FAILED: _why(item),
        OperationStatus.PARTIAL: _why(item),
    }.get(decision.target)
    if decision.target is not OperationStatus.UNKNOWN:
        await _skip_the_rest(conn, row, item, state, chain)
    await _move(conn, row, replace(decision, reason=reason), item, state, chain)


def _why(item: Report) -> Reason:
    """Name why nothing was done: a provider that has refused because of a change says so."""
    moved = item.outcome.evidence.get("finding") == Finding.MOVED
    return Reason.VERSION_CHANGED if moved else item.reason


async def _skip_the_rest(
    conn: Connection, row: OperationRow, item: Report, state: State, chain: Chain
) -> None:
    """Skip the parts that had not had their turn when one before them came to nothing."""
    parts, moves = state.parts[row.key], []
    for place, part in enumerate(parts):
        if part.status is EffectStatus.PLANNED:
            skipped = Transition(part.status, EffectStatus.SKIPPED, "not_opened")
            entry = chain.move(
                Machine.EFFECT, row.tenant_id, row.run_id, part.id, part.seq, skipped, item.actor
            )
            moves.append(effects.EffectMove(part, skipped, entry))
            parts[place] = replace(part, status=skipped.target, seq=part.seq + 1)
    await effects.move(conn, moves)


async def _move(
    conn: Connection,
    row: OperationRow,
    decision: operation.Decision,
    item: Report,
    state: State,
    chain: Chain,
) -> None:
    """Move the operation, which ends its lease; what goes on is due now."""
    assert isinstance(decision, Transition)
    entry = chain.move(
        Machine.OPERATION, row.tenant_id, row.run_id, row.id, row.seq, decision, item.actor
    )
    goes_on = decision.target is OperationStatus.EXECUTING
    ended = decision.target not in operation.IN_DOUBT
    await operations.move(
        conn,
        [
            operations.OperationMove(
                row,
                decision,
                entry,
                due_at=chain.now if goes_on else None,
                ended_at=chain.now if ended else None,
            )
        ],
    )
    state.rows[row.key] = replace(
        row, status=decision.target, seq=row.seq + 1, lease_owner=None, detail=decision.detail
    )
