"""Claims of due work: the only place that skips what others hold, and where epochs grow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from executor.domain import run
from executor.domain.ids import RunId, TenantId
from executor.domain.lease import Lease, trust_from
from executor.domain.transition import Machine, Transition
from executor.engine.engine import Engine
from executor.engine.failpoint import Commit
from executor.engine.opening import Claim
from executor.store import clock, journal, operations, progress, runs
from executor.store.wakeups import Kind


@dataclass(frozen=True, slots=True)
class ClaimedRun:
    """A run that this worker holds.

    ``takeovers`` counts how often in a row it was taken from a worker that recorded no step: what
    kills its workers must not be driven for ever.
    """

    key: tuple[TenantId, RunId]
    lease: Lease
    takeovers: int = 0


@dataclass(frozen=True, slots=True)
class ClaimedOperation:
    """An operation that this worker holds."""

    claim: Claim
    lease: Lease


async def claim_runs(engine: Engine, owner: str, most: int) -> list[ClaimedRun]:
    """Take at most ``most`` due runs; a run that is taken over keeps its status.

    Opens its own transaction; from now on their progress is told. Raises ``CommitUnknown``: what
    was claimed, if anything, is due again when its lease ends.
    """
    asked = engine.clock.boottime()
    async with engine.committing(Commit.CLAIM_RUN) as conn:
        rows = await runs.claim_due(conn, most)
        if not rows:
            return []
        await progress.want(conn, [row.key for row in rows])
        chain = await journal.lock_chain(conn, [row.key for row in rows])
        taken = []
        for row in rows:
            decision = run.decide(row.status, run.Claimed())
            entry = (
                chain.move(Machine.RUN, row.tenant_id, row.id, row.id, row.seq, decision, owner)
                if isinstance(decision, Transition)
                else None
            )
            taken.append((row, entry))
        until = chain.now + timedelta(seconds=engine.durations.lease.ttl_seconds)
        epochs = await runs.lease(conn, taken, owner=owner, until=until)
        await journal.advance(conn, chain)
    engine.ring(Kind.CARDS)
    trusted = trust_from(asked, engine.durations.lease)
    return [
        ClaimedRun(key, Lease(owner, epoch, trusted), takeovers)
        for key, (epoch, takeovers) in epochs.items()
    ]


async def claim_operations(engine: Engine, owner: str, most: int) -> list[ClaimedOperation]:
    """Take at most ``most`` due operations. Opens its own transaction; see ``claim_runs``."""
    asked = engine.clock.boottime()
    async with engine.committing(Commit.CLAIM_OPERATION) as conn:
        rows: Sequence[operations.OperationRow] = await operations.claim_due(conn, most)
        if not rows:
            return []
        until = await clock.now(conn) + timedelta(seconds=engine.durations.lease.ttl_seconds)
        epochs = await operations.lease(conn, rows, owner=owner, until=until)
    trusted = trust_from(asked, engine.durations.lease)
    return [
        ClaimedOperation(Claim(key, owner, epoch), Lease(owner, epoch, trusted))
        for key, epoch in epochs.items()
    ]
