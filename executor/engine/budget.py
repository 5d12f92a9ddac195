"""TM: money is held in one commit, the call is made, and it is charged with the record of its
reply.

An unrecorded call is made again only under a new reservation; the old one becomes ``unknown`` at
its deadline and stays counted. A call of a model is recorded with its reservation. Locks: policies,
runs, reservations, run budgets, tenant-days, cards, journal heads.
"""

from __future__ import annotations

from collections.abc import Sequence

from executor.engine.accept import lock_working_run
from executor.engine.engine import Engine
from executor.engine.failpoint import Commit
from executor.engine.purse import Ask, Held, Purse, ReserveResult
from executor.engine.warning import warn_once
from executor.store import journal, tenants


async def reserve(engine: Engine, asks: Sequence[Ask]) -> list[ReserveResult]:
    """Hold money before calls, folded in order where they share a run or a day; one commit.

    Opens its own transaction. A refusal names the limit, what was asked and what is left. Raises
    ``StaleEpoch`` when a run is no longer ours, ``CommitUnknown``: then what was held, if anything,
    becomes ``unknown`` at its deadline.
    """
    async with engine.committing(Commit.RESERVE) as conn:
        policies = await tenants.share_policies(conn, {a.run_key[0] for a in asks})
        for ask in sorted(asks, key=lambda a: (a.run_key[0], a.run_key[1].int)):
            await lock_working_run(conn, ask.run_key, ask.epoch)
        purse = await Purse.lock(conn, policies, {a.run_key for a in asks})
        chain = await journal.lock_chain(conn, {a.run_key for a in asks})
        results = [purse.hold(engine, ask, chain) for ask in asks]
        await purse.write(conn, chain)
        if all(isinstance(result, Held) for result in results):
            await warn_once(conn, engine, policies, purse.runs, purse.days, chain)
        await journal.advance(conn, chain)
    return results
