"""One claimed operation: open its next attempt, call, report. Nothing else starts an effect."""

from __future__ import annotations

from datetime import timedelta
from typing import assert_never

from executor.domain.errors import CommitUnknown
from executor.engine.call import call, deadline_from
from executor.engine.engine import Engine
from executor.engine.group import Group
from executor.engine.leases import Keeper
from executor.engine.opening import (
    Claim,
    LostLease,
    NotOpened,
    Opened,
    OpenResult,
    PutOff,
    Ready,
    open_attempts,
    read_back,
)
from executor.engine.providers import Providers
from executor.engine.sighting import see_before_opening
from executor.store import clock, operation_leases
from executor.store.wakeups import Kind

Openings = Group[Ready, OpenResult]


def openings(engine: Engine, providers: Providers) -> Openings:
    """Group the openings of concurrently claimed operations into one commit each."""
    return Group(lambda ready: open_attempts(engine, providers, ready))


async def execute(
    engine: Engine, providers: Providers, group: Openings, claim: Claim, keeper: Keeper
) -> None:
    """Drive one claimed operation as far as it goes without waiting.

    A call goes out only if its attempt is known to be stored with the own epoch and its deadline is
    ahead. A lease that is not trusted any more starts nothing. An outside ticket is looked at right
    before the opening. Raises ``DatabaseUnavailable``
    where nothing was opened.
    """
    looking = see_before_opening(engine, providers, claim.key)
    ready = Ready(claim, await keeper.while_kept(looking, abandon=False))
    if not keeper.trusted():
        return
    deadline = deadline_from(engine, engine.clock.boottime())
    try:
        opened = await keeper.while_kept(group.submit(ready), abandon=False)
    except CommitUnknown:
        opened = await read_back(engine, claim)
    match opened:
        case Opened():
            await keeper.while_kept(
                call(engine, providers, claim, keeper, opened, deadline), abandon=False
            )
        case PutOff(wait=wait):
            identity = timedelta(seconds=engine.durations.identity_retry_seconds)
            await hand_back(engine, claim, identity if wait is None else wait)
        case NotOpened() | LostLease():
            return
        case _:
            assert_never(opened)


async def hand_back(engine: Engine, claim: Claim, wait: timedelta) -> None:
    """Give an operation up so that any worker takes it after ``wait``."""
    async with engine.database.transaction() as conn:
        due_at = await clock.now(conn) + wait
        await operation_leases.hand_back(
            conn, claim.key, owner=claim.owner, epoch=claim.epoch, due_at=due_at
        )
    engine.ring(Kind.WORK)
