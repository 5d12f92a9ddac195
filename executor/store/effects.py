"""Effects and attempts; the pair of ``executor.domain.effect``. Both lie under the operation's
lock.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection

from executor.domain.effect import (
    Attempt,
    AttemptStatus,
    Capability,
    EffectKind,
    EffectStatus,
    Terms,
)
from executor.domain.errors import LostRace
from executor.domain.ids import AttemptId, EffectId, OperationId, TenantId, idempotency_key
from executor.domain.intent import PlannedEffect
from executor.domain.journal import JournalEntry
from executor.domain.payloads import JsonObject
from executor.domain.transition import Transition
from executor.store.journal import as_rows
from executor.store.operations import OperationKey
from executor.store.statements import run


@dataclass(frozen=True, slots=True)
class NewEffect:
    """One part of an operation that is being minted."""

    tenant_id: TenantId
    operation_id: OperationId
    position: int
    planned: PlannedEffect
    entry: JournalEntry


@dataclass(frozen=True, slots=True)
class EffectRow:
    """One part of an operation; ``payload`` are the bytes that leave."""

    tenant_id: TenantId
    id: EffectId
    seq: int
    status: EffectStatus
    operation_id: OperationId
    position: int
    kind: EffectKind
    capability: Capability
    provider: str
    idempotency_key: str
    payload: bytes
    payload_digest: bytes
    envelope: JsonObject
    first_attempt_at: datetime | None


@dataclass(frozen=True, slots=True)
class EffectMove:
    """One move of one effect; ``first_attempt_at`` is kept from the first time it is given."""

    row: EffectRow
    transition: Transition[EffectStatus]
    entry: JournalEntry
    first_attempt_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class NewAttempt:
    """A try to be recorded before its first byte leaves, with the key and the bytes it uses."""

    tenant_id: TenantId
    operation_id: OperationId
    attempt: Attempt
    epoch: int
    provider: str
    idempotency_key: str
    payload_digest: bytes
    entry: JournalEntry


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """A stored try; ``recover_at`` is when a machine does something about it next, if ever."""

    tenant_id: TenantId
    operation_id: OperationId
    attempt: Attempt
    epoch: int
    provider: str
    reported_at: datetime | None
    recover_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class AttemptMove:
    """What came of one try."""

    row: AttemptRow
    transition: Transition[AttemptStatus]
    evidence: JsonObject
    entry: JournalEntry


@dataclass(frozen=True, slots=True)
class RecoveryPlan:
    """What comes next for one unknown try: ``recover_at`` ``None`` leaves it to people."""

    row: AttemptRow
    recover_at: datetime | None
    lookups: int
    evidence: JsonObject


@dataclass(frozen=True, slots=True)
class LastLook:
    """An attempt as it is right before its first byte; ``now`` is the database's time."""

    status: AttemptStatus
    epoch: int
    deadline_at: datetime
    lease_owner: str | None
    lease_epoch: int
    now: datetime


async def insert(conn: AsyncConnection, effects: Sequence[NewEffect]) -> None:
    """Plan the parts of operations that were minted in this transaction."""
    planned = [e.planned for e in effects]
    await run(
        conn,
        "insert_effects",
        tenants=[e.tenant_id for e in effects],
        ids=[p.id for p in planned],
        operations=[e.operation_id for e in effects],
        positions=[e.position for e in effects],
        kinds=[p.kind.value for p in planned],
        capabilities=[p.capability.value for p in planned],
        providers=[p.provider for p in planned],
        keys=[idempotency_key(e.operation_id, e.planned.id) for e in effects],
        payloads=[p.payload for p in planned],
        digests=[hashlib.sha256(p.payload).digest() for p in planned],
        envelopes=[json.dumps(p.envelope) for p in planned],
        promises=[p.promise for p in planned],
        entries=as_rows(e.entry for e in effects),
    )


async def of_operations(
    conn: AsyncConnection, keys: Iterable[OperationKey]
) -> dict[OperationKey, list[EffectRow]]:
    """Read the parts of locked operations, in their order."""
    wanted = list(keys)
    rows = await run(
        conn,
        "effects_of_operations",
        tenants=[tenant for tenant, _ in wanted],
        operations=[id_ for _, id_ in wanted],
    )
    found: dict[OperationKey, list[EffectRow]] = {key: [] for key in wanted}
    for row in rows:
        effect = EffectRow(
            TenantId(row.tenant_id),
            EffectId(row.id),
            row.seq,
            EffectStatus(row.status),
            OperationId(row.operation_id),
            row.position,
            EffectKind(row.kind),
            Capability(row.capability),
            row.provider,
            row.idempotency_key,
            bytes(row.payload),
            bytes(row.payload_digest),
            row.envelope,
            row.first_attempt_at,
        )
        found[effect.tenant_id, effect.operation_id].append(effect)
    return found


async def move(conn: AsyncConnection, moves: Sequence[EffectMove]) -> None:
    """Apply moves of effects; any not in its source any more: ``LostRace``."""
    if not moves:
        return
    moved = await run(
        conn,
        "move_effects",
        tenants=[m.row.tenant_id for m in moves],
        ids=[m.row.id for m in moves],
        seqs=[m.row.seq for m in moves],
        sources=[m.transition.source.value for m in moves],
        targets=[m.transition.target.value for m in moves],
        firsts=[m.first_attempt_at for m in moves],
        entries=as_rows(m.entry for m in moves),
    )
    applied = len(moved.all())
    if applied != len(moves):
        raise LostRace("move_effects", len(moves) - applied)


async def open_attempts(
    conn: AsyncConnection, attempts: Sequence[NewAttempt], now: datetime
) -> None:
    """Record tries; a second open one of an effect: ``DuplicateKey``."""
    if not attempts:
        return
    await run(
        conn,
        "insert_attempts",
        tenants=[a.tenant_id for a in attempts],
        ids=[a.attempt.id for a in attempts],
        operations=[a.operation_id for a in attempts],
        effects=[a.attempt.effect_id for a in attempts],
        numbers=[a.attempt.number for a in attempts],
        epochs=[a.epoch for a in attempts],
        capabilities=[a.attempt.capability.value for a in attempts],
        providers=[a.provider for a in attempts],
        keys=[a.idempotency_key for a in attempts],
        digests=[a.payload_digest for a in attempts],
        deadlines=[a.attempt.deadline_at for a in attempts],
        concludes=[a.attempt.conclude_at for a in attempts],
        windows=[_seconds(a.attempt.terms.key_window) for a in attempts],
        lags=[_seconds(a.attempt.terms.lookup_lag) for a in attempts],
        now=now,
        entries=as_rows(a.entry for a in attempts),
    )


async def attempts_of(
    conn: AsyncConnection, keys: Iterable[OperationKey]
) -> dict[OperationKey, list[AttemptRow]]:
    """Read all tries of locked operations, in the order of their numbers per effect."""
    wanted = list(keys)
    rows = await run(
        conn,
        "attempts_of_operations",
        tenants=[tenant for tenant, _ in wanted],
        operations=[id_ for _, id_ in wanted],
    )
    found: dict[OperationKey, list[AttemptRow]] = {key: [] for key in wanted}
    for row in map(_attempt, rows):
        found[row.tenant_id, row.operation_id].append(row)
    return found


async def move_attempts(conn: AsyncConnection, moves: Sequence[AttemptMove], now: datetime) -> None:
    """Record what came of tries; any not in its source any more: ``LostRace``."""
    if not moves:
        return
    moved = await run(
        conn,
        "move_attempts",
        tenants=[m.row.tenant_id for m in moves],
        ids=[m.row.attempt.id for m in moves],
        seqs=[m.row.attempt.seq for m in moves],
        sources=[m.transition.source.value for m in moves],
        targets=[m.transition.target.value for m in moves],
        evidences=[json.dumps(m.evidence) for m in moves],
        now=now,
        entries=as_rows(m.entry for m in moves),
    )
    applied = len(moved.all())
    if applied != len(moves):
        raise LostRace("move_attempts", len(moves) - applied)


async def to_conclude(conn: AsyncConnection, most: int) -> list[AttemptRow]:
    """Find tries whose last possible moment is over; takes no lock."""
    return [_attempt(row) for row in await run(conn, "attempts_to_conclude", most=most)]


async def to_recover(
    conn: AsyncConnection, kinds: Iterable[EffectKind], most: int
) -> list[AttemptRow]:
    """Find unknown tries at effects of these kinds for which something is due; takes no lock."""
    named = sorted(kind.value for kind in kinds)
    return [_attempt(row) for row in await run(conn, "attempts_to_recover", kinds=named, most=most)]


async def plan_recoveries(conn: AsyncConnection, plans: Sequence[RecoveryPlan]) -> None:
    """Record what comes next for unknown tries; any not unknown any more: ``LostRace``."""
    if not plans:
        return
    planned = await run(
        conn,
        "plan_recoveries",
        tenants=[p.row.tenant_id for p in plans],
        ids=[p.row.attempt.id for p in plans],
        times=[p.recover_at for p in plans],
        lookups=[p.lookups for p in plans],
        evidences=[json.dumps(p.evidence) for p in plans],
    )
    done = len(planned.all())
    if done != len(plans):
        raise LostRace("plan_recoveries", len(plans) - done)


async def last_look(conn: AsyncConnection, tenant: TenantId, id_: AttemptId) -> LastLook | None:
    """Read a try once more, right before its first byte leaves."""
    row = (await run(conn, "attempt_right_before_the_call", tenant=tenant, id=id_)).one_or_none()
    if row is None:
        return None
    return LastLook(
        AttemptStatus(row.status),
        row.epoch,
        row.deadline_at,
        row.lease_owner,
        row.lease_epoch,
        row.now,
    )


def _attempt(row: Row[*tuple[Any, ...]]) -> AttemptRow:
    return AttemptRow(
        TenantId(row.tenant_id),
        OperationId(row.operation_id),
        Attempt(
            AttemptId(row.id),
            EffectId(row.effect_id),
            row.number,
            AttemptStatus(row.status),
            Capability(row.capability),
            row.opened_at,
            row.deadline_at,
            row.conclude_at,
            row.seq,
            row.evidence,
            Terms(_duration(row.key_window_seconds), _duration(row.lookup_lag_seconds)),
            row.lookups,
        ),
        row.epoch,
        row.provider,
        row.reported_at,
        row.recover_at,
    )


def _seconds(duration: timedelta | None) -> float | None:
    return None if duration is None else duration.total_seconds()


def _duration(seconds: float | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=seconds)


async def known_recipients(
    conn: AsyncConnection, tenant: TenantId, addresses: Iterable[str]
) -> frozenset[str]:
    """Name those of these addresses, in lower case, that a mail of ours was sent to before."""
    wanted = sorted(set(addresses))
    rows = await run(conn, "known_recipients", tenant=tenant, addresses=wanted)
    return frozenset(row.address.casefold() for row in rows)
