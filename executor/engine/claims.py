"""Claims of due work: the only place that skips what others hold, and where epochs grow.

Tenants take turns, so that one with thousands of due runs keeps another waiting for one claim.
Locks: the turns of the tenants that are served, then as everywhere.
"""

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
from executor.store import admission, clock, journal, operation_leases, operations, progress, runs
from executor.store.admission import Work
from executor.store.connection import Connection
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
    """Take at most ``most`` due runs; a run that is taken over keeps its status and its place.

    Tenants take turns, and none has more runs at work than its policy allows. Opens its own
    transactions; from now on their progress is told. Raises ``CommitUnknown``: what was claimed, if
    anything, is due again when its lease ends.
    """
    asked = engine.clock.boottime()
    tried: set[TenantId] = set()
    while True:
        async with engine.committing(Commit.CLAIM_RUN) as conn:
            tenants = await admission.tenants_with_due_work(conn, Work.RUN, tried, most)
            if not tenants:
                return []
            # Who has a tenant's turn may give its places; where all are being served, there may be
            # something left when that is over.
            served = await admission.take_turns(
                conn, Work.RUN, tenants
            ) or await admission.wait_for_turns(conn, Work.RUN, tenants)
            rows = await runs.claim_due(conn, served, most)
            epochs = await _lease_runs(conn, engine, owner, rows) if rows else {}
        if epochs:
            break
        # All that is due there is held by others just now: the next tenants are looked at.
        tried.update(served or tenants)
    engine.ring(Kind.CARDS)
    trusted = trust_from(asked, engine.durations.lease)
    return [
        ClaimedRun(key, Lease(owner, epoch, trusted), takeovers)
        for key, (epoch, takeovers) in epochs.items()
    ]


async def _lease_runs(
    conn: Connection, engine: Engine, owner: str, rows: Sequence[runs.RunRow]
) -> dict[tuple[TenantId, RunId], tuple[int, int]]:
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
    return epochs


async def claim_operations(engine: Engine, owner: str, most: int) -> list[ClaimedOperation]:
    """Take at most ``most`` due operations, of tenants in turn; see ``claim_runs``.

    Opens its own transactions. There are as many places as workers have: two may serve one tenant.
    """
    asked = engine.clock.boottime()
    tried: set[TenantId] = set()
    while True:
        async with engine.committing(Commit.CLAIM_OPERATION) as conn:
            tenants = await admission.tenants_with_due_work(conn, Work.OPERATION, tried, most)
            if not tenants:
                return []
            await admission.take_turns(conn, Work.OPERATION, tenants)
            rows = await operation_leases.claim_due(conn, tenants, most)
            epochs = await _lease_operations(conn, engine, owner, rows) if rows else {}
        if epochs:
            break
        tried.update(tenants)
    trusted = trust_from(asked, engine.durations.lease)
    return [
        ClaimedOperation(Claim(key, owner, epoch), Lease(owner, epoch, trusted))
        for key, epoch in epochs.items()
    ]


async def _lease_operations(
    conn: Connection, engine: Engine, owner: str, rows: Sequence[operations.OperationRow]
) -> dict[operations.OperationKey, int]:
    until = await clock.now(conn) + timedelta(seconds=engine.durations.lease.ttl_seconds)
    return await operation_leases.lease(conn, rows, owner=owner, until=until)
