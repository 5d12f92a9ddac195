"""Runs that waited for operations are woken by a transaction of its own, after those ended.

Waking them inside T5 would lock an operation before its run and deadlock with T1 and T7. Whoever
ends an operation marks it; whoever comes by wakes for it. A run that was stopped while something of
it was not known ends here, when it is. So do reopenings: see ``compensation_end``. Paused runs go
on, or end, with the raise that was asked for them: see ``pausing``. Locks: runs, operations,
approvals, cards, journal heads.
"""

from __future__ import annotations

from collections.abc import Sequence

from executor.domain import run
from executor.domain.journal import Chain
from executor.domain.operation import IN_DOUBT, RUN_WAITS_FOR, STOPS_RUN
from executor.domain.run import RunStatus
from executor.domain.transition import Reason, Transition
from executor.engine import endings, undriven
from executor.engine.compensation_end import conclude_all
from executor.engine.engine import Engine
from executor.engine.failpoint import Commit
from executor.engine.group import together_or_apart
from executor.engine.pausing import conclude_raises
from executor.engine.request_end import conclude
from executor.store import (
    agent_requests,
    compensations,
    journal,
    operations,
    pauses,
    proposals,
    runs,
)
from executor.store.connection import Connection
from executor.store.operations import OperationKey
from executor.store.wakeups import Kind

AT_ONCE = 100


async def wake(engine: Engine) -> int:
    """Wake the runs of operations that ended; returns how many operations were looked at.

    Opens its own transactions. Two wakers at once do no harm: a run is due once.
    """
    async with engine.database.transaction() as conn:
        ended = await operations.waking(conn, AT_ONCE)
    if ended:
        await together_or_apart(lambda some: _wake(engine, some), ended)
        engine.ring(Kind.WORK)
        engine.ring(Kind.CARDS)
    return len(ended)


async def _wake(engine: Engine, ended: Sequence[OperationKey]) -> None:
    async with engine.committing(Commit.WAKE) as conn:
        about = await compensations.about(conn, ended)
        of_reopenings = {(names.tenant_id, names.run_id) for names in about}
        keys = {*await proposals.waiting_runs(conn, ended), *of_reopenings}
        waiting = await pauses.waiting_for(conn, ended)
        keys |= {one.key for one in waiting}
        also = {*ended, *(n.key for n in about), *(n.closing_key for n in about)}
        locked = await endings.lock_run_with_operations(conn, list(keys), also=list(also))
        undriven_runs = [key for key, row in locked.runs.items() if not row.driven]
        of_agents = await agent_requests.runs_among(conn, undriven_runs)
        chain = await locked.chain(conn)
        for key, row in locked.runs.items():
            if row.status is RunStatus.CANCELLING:
                await _settle(conn, locked, row, chain)
            elif row.status is RunStatus.WAITING and not await _still_waits(conn, row):
                if row.driven:
                    await runs.make_due(conn, [key], chain.now)
                elif key in of_agents:
                    await conclude(conn, chain, row, await proposals.of_run(conn, key))
                elif key not in of_reopenings:
                    await undriven.complete(conn, chain, row)
        await conclude_raises(conn, locked, waiting, chain)
        await conclude_all(conn, locked, about, chain)
        await operations.clear_waking(conn, ended)
        await journal.advance(conn, chain)


async def _still_waits(conn: Connection, row: runs.RunRow) -> bool:
    """Say whether anything that the run proposed is still pending; read under the run's lock.

    What stops a driven run by having expired stops it at once, whatever else is pending.
    """
    proposed = await proposals.of_run(conn, row.key)
    if row.driven and any(STOPS_RUN in p.detail for p in proposed):
        return False
    return any(p.status in RUN_WAITS_FOR for p in proposed)


async def _settle(conn: Connection, locked: endings.Locked, row: runs.RunRow, chain: Chain) -> None:
    mine = [o for o in locked.operations.values() if o.run_id == row.id]
    if any(o.status in IN_DOUBT for o in mine):
        return
    decision = run.decide(row.status, run.DoubtSettled(row.reason or Reason.CANCELLED))
    if isinstance(decision, Transition):
        await endings.move_run(conn, row, decision, "executor", chain)
