"""The same wish of the same person within a minute is the same wish, as long as its run goes on.

A person who saw a time-out presses Enter again; what they pressed has another trigger id, so that
its origin does not tell. Locks: the wish itself (advisory, before all others), then as ``start``.
"""

from __future__ import annotations

from executor.engine.engine import Engine
from executor.engine.failpoint import Commit
from executor.engine.start import Started, StartRequest, StartResult, goal_of, start_in
from executor.store import repeats
from executor.store.wakeups import Kind

REPEATED_WITHIN_SECONDS = 60.0


async def start_unless_repeated(engine: Engine, request: StartRequest) -> StartResult:
    """Start a run, or return the one that the same words started a moment ago and that goes on.

    Opens its own transaction. The same origin again returns the run that it started. Raises
    ``CommitUnknown``; calling again with the same origin is then safe.
    """
    goal = goal_of(request)
    async with engine.committing(Commit.START) as conn:
        await repeats.lock_wish(conn, request.tenant_id, request.requester, goal)
        earlier = await repeats.find_recent(
            conn, request.tenant_id, request.requester, goal, REPEATED_WITHIN_SECONDS
        )
        if earlier is not None:
            return Started(earlier[0], earlier[1], again=True)
        [result] = await start_in(conn, engine, [request])
    engine.ring(Kind.WORK)
    return result
