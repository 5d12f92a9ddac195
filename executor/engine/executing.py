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
    open_attempts,
    read_back,
)
from executor.engine.ports import MailPort
from executor.store import clock, operations
from executor.store.wakeups import Kind

Openings = Group[Claim, OpenResult]


def openings(engine: Engine, mail: MailPort) -> Openings:
    """Group the openings of concurrently claimed operations into one commit each."""
    return Group(lambda claims: open_attempts(engine, mail, claims))


async def execute(
    engine: Engine, mail: MailPort, group: Openings, claim: Claim, keeper: Keeper
) -> None:
    """Drive one claimed operation as far as it goes without waiting.

    A call goes out only if its attempt is known to be stored with the own epoch and its deadline is
    ahead. A lease that is not trusted any more starts nothing. Raises ``DatabaseUnavailable``
    where nothing was opened.
    """
    if not keeper.trusted():
        return
    deadline = deadline_from(engine, engine.clock.boottime())
    try:
        opened = await keeper.while_kept(group.submit(claim), abandon=False)
    except CommitUnknown:
        opened = await read_back(engine, claim)
    match opened:
        case Opened():
            await keeper.while_kept(
                call(engine, mail, claim, keeper, opened, deadline), abandon=False
            )
        case PutOff():
            await hand_back(engine, claim, engine.durations.identity_retry_seconds)
        case NotOpened() | LostLease():
            return
        case _:
            assert_never(opened)


async def hand_back(engine: Engine, claim: Claim, seconds: float) -> None:
    """Give an operation up so that any worker takes it after ``seconds``."""
    async with engine.database.transaction() as conn:
        due_at = await clock.now(conn) + timedelta(seconds=seconds)
        await operations.hand_back(
            conn, claim.key, owner=claim.owner, epoch=claim.epoch, due_at=due_at
        )
    engine.ring(Kind.WORK)
