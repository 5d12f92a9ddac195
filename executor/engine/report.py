"""T5: what came of an attempt is recorded, by anyone who has it, whatever their epoch.

Fencing stops a stale worker from starting anything; it never stops anyone from reporting a fact.
The effect follows from all its attempts, the operation from all its effects, in the same commit. A
retry is not made here: an operation that may try again becomes due, and ``opening`` checks the
world first. Locks: operations, approvals, effects, attempts, cards, journal heads.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from executor.domain import effect, operation, recovery
from executor.domain.effect import AttemptStatus, EffectStatus, Outcome, OutcomeKind
from executor.domain.ids import AttemptId
from executor.domain.journal import Chain
from executor.domain.operation import OperationStatus
from executor.domain.payloads import JsonValue
from executor.domain.transition import Machine, Reason, Transition
from executor.engine import endings
from executor.engine.engine import Engine
from executor.engine.failpoint import Commit
from executor.engine.recovery_plan import plans
from executor.store import cards, effects, journal, operations
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
        chain = await endings.lock_cards_and_chain(conn, list(state.rows.values()))
        for item in reports:
            await fold(conn, engine, item, state, chain)
        await cards.want(
            conn, [(t, id_, SubjectKind.OPERATION) for t, id_ in state.rows], chain.now
        )
        await journal.advance(conn, chain)
    engine.ring(Kind.CARDS)
    engine.ring(Kind.WORK)
    return [state.rows[item.key].status if item.key in state.rows else None for item in reports]


async def _lock(conn: Connection, reports: Sequence[Report]) -> State:
    rows = await operations.lock(conn, {item.key for item in reports})
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
    await _plan_recovery(conn, item, [t for t in tries if t.attempt.effect_id == part.id], chain)
    again_at = _retry_at(engine, item, row, statuses, chain) or (
        chain.now if _has_next(parts) else None
    )
    detail: dict[str, JsonValue] = {**row.detail, "outcome": dict(item.outcome.evidence)}
    event = operation.EffectsMoved(
        [p.status for p in parts],
        will_continue=again_at is not None or item.goes_on,
        detail=detail,
    )
    decision = operation.decide(row.status, event)
    if isinstance(decision, Transition):
        await _end(conn, row, decision, item, state, chain)
    elif again_at is not None and row.lease_owner is not None:
        await operations.hand_back(
            conn, row.key, owner=row.lease_owner, epoch=row.lease_epoch, due_at=again_at
        )


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
    unknown = decision.target is OperationStatus.UNKNOWN
    reason = {
        OperationStatus.UNKNOWN: Reason.OUTCOME_LOST,
        OperationStatus.FAILED: item.reason,
        OperationStatus.PARTIAL: item.reason,
    }.get(decision.target)
    told = replace(decision, reason=reason)
    entry = chain.move(
        Machine.OPERATION, row.tenant_id, row.run_id, row.id, row.seq, told, item.actor
    )
    await operations.move(
        conn,
        [operations.OperationMove(row, told, entry, ended_at=None if unknown else chain.now)],
    )
    state.rows[row.key] = replace(
        row, status=told.target, seq=row.seq + 1, lease_owner=None, detail=told.detail
    )
