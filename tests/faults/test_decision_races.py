"""Clicks against everything that can come between: one wins by the journal, and both are told so.

Two hundred rounds each, at two or three processes at once; see ``tests.support.racing``. Races
against a revocation and an edit are in ``test_revocation_races.py`` and ``test_edit_races.py``.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from datetime import datetime

import pytest
from sqlalchemy import text

from executor.domain.approval import Vote
from executor.domain.policy import Policy
from executor.domain.run import RunStatus
from executor.domain.transition import NoChange, Reason
from executor.engine.click import ClickResult, Recorded
from executor.engine.desk import write_as_agent
from executor.engine.endings import Stopped, cancel, expire
from executor.store import approvals, clock, operations, tenants
from executor.store.database import Database
from tests.support import invariants
from tests.support.office import RENE, RIKO, SAM, TENANT, Office, policy
from tests.support.race_clicks import approve, approve_too, check_told
from tests.support.race_record import DONE, Round
from tests.support.race_track import Prize
from tests.support.racing import Case, Gun, Racer, race


async def reject(racer: Racer, prize: Prize, gun: Gun) -> ClickResult:
    await gun()
    [told] = await racer.office.decide(prize.click(RIKO, Vote.REJECT))
    return told


# Against a cancel.


async def cancel_the_run(racer: Racer, prize: Prize, gun: Gun) -> object:
    await gun()
    return await cancel(racer.office.engine, TENANT, prize.run_number, RIKO)


def cancelled_or_done(one: Round) -> str:
    check_told(one)
    stopped, number = one.told["cancel"], one.prize.number
    assert isinstance(stopped, Stopped)
    if one.status != DONE:
        assert (one.status, one.reason) == ("withdrawn", "cancelled")
        assert (stopped.status, stopped.withdrawn) == (RunStatus.CANCELLED, (number,))
        assert stopped.sending == ()
        return "cancel"
    stop = one.move("run", stopped.status.value)
    assert stop is not None
    under_way = one.status_at("operation", stop) == "executing"
    assert (stopped.status is RunStatus.CANCELLING) == under_way
    assert (stopped.withdrawn, stopped.sending) == ((), (number,) if under_way else ())
    return "approve"


# Against the end of the time to decide, or to use.


@dataclass(frozen=True)
class Looked:
    """What came of looking for what is over; ``held`` is while this process had the row locked."""

    ended: int
    held: tuple[datetime, datetime] | None


async def expire_it(racer: Racer, prize: Prize, gun: Gun) -> Looked:
    """Let the time be over about when the approval is, and sweep as soon as it is.

    In every third round somebody has the row locked meanwhile, so that a click that was there in
    time gets its turn when it is late.
    """
    drawn = random.Random(prize.round)
    seconds = await _let_it_end(racer.office.database, prize, drawn.uniform(0.5, 1.5))
    over = asyncio.get_running_loop().time() + seconds
    await gun()
    held = await _hold(racer.office.database, prize, over) if prize.round % 3 == 0 else None
    await _sleep_until(over - drawn.uniform(0, 0.002))
    return Looked(await _sweep(racer, prize, over), held)


# The more of it has expired the more time is given, so that it stays a race on any machine.
_GIVEN_SECONDS = (
    "SELECT 0.005 * power(1.15, count(*) FILTER (WHERE status = 'expired') "
    "    - count(*) FILTER (WHERE status = 'consumed'))::float8 FROM approvals"
)


async def _let_it_end(database: Database, prize: Prize, times: float) -> float:
    column = "use_by" if prize.granted else "decide_by"
    async with database.transaction() as conn:
        seconds: float = times * (await conn.execute(text(_GIVEN_SECONDS))).scalar_one()
        await conn.execute(
            text(
                f"UPDATE approvals SET {column} = signoff_clock() "  # noqa: S608
                "+ make_interval(secs => :seconds) WHERE id = :id"
            ),
            {"seconds": seconds, "id": prize.approval},
        )
    return seconds


async def _hold(database: Database, prize: Prize, over: float) -> tuple[datetime, datetime]:
    async with database.transaction() as conn:
        await operations.lock(conn, [prize.key])
        since = await clock.now(conn)
        await _sleep_until(over + 0.002)
        return since, await clock.now(conn)


async def _sweep(racer: Racer, prize: Prize, over: float) -> int:
    loop = asyncio.get_running_loop()
    while True:
        last_look = loop.time() > over + 0.002
        async with racer.office.database.transaction() as conn:
            found = await approvals.past_their_time(conn, 100)
        if prize.key in found:
            return await expire(racer.office.engine, [prize.key])
        if last_look:
            return 0
        await asyncio.sleep(0.001)


async def _sleep_until(moment: float) -> None:
    await asyncio.sleep(max(0.0, moment - asyncio.get_running_loop().time()))


def expired_or_done(one: Round) -> str:
    check_told(one)
    looked = one.told["expire"]
    if looked.held is not None:
        since, until = looked.held
        stolen = [e for e in one.entries if since < e.at < until]
        assert not stolen, f"decided while somebody else had the lock: {stolen}"
    over = one.standing.use_by if one.prize.granted else one.standing.decide_by
    if one.status == DONE:
        decided = one.move("approval", "consumed" if one.prize.granted else "granted")
        assert decided is not None
        assert decided.at < over, "it was too late"
        assert looked.ended == 0
        return "approve"
    expired = one.move("operation", "expired")
    assert expired is not None
    assert expired.at >= over, "there was time left"
    why = Reason.TIME_TO_USE_OVER if one.prize.granted else Reason.EXPIRED
    assert one.reason == why
    return "expire"


# Against another person's change of the ticket.


async def write_on_the_ticket(racer: Racer, prize: Prize, gun: Gun) -> object:
    await gun()
    database = racer.office.database
    return await write_as_agent(database, TENANT, prize.ticket, author="Kim", body="Wait for me.")


def changed_or_done(one: Round) -> str:
    check_told(one)
    written = one.told["change"].version
    if one.status == DONE:
        closed = (3, "closed", str(one.prize.operation))
        assert one.changes == [closed, (4, "agent_message", None)]
        assert written == 4
        return "approve"
    assert (one.status, one.reason) == ("stale", "version_changed")
    assert one.changes == [(3, "agent_message", None)]
    assert written == 3
    return "change"


# Against a change of the policy.

LOOSE = policy()
NOT_RENE = policy(people={"requesters": ["U0REQUESTER"], "approvers": ["U0SECOND"]})
TWO_VOTES = policy(approval={"quorum": 2})
HARMLESS = policy(tenant={"name": "Acme Support"})


async def change_the_policy(racer: Racer, prize: Prize, gun: Gun) -> datetime:
    """Put the loose policy in force before the race; returns when another one was."""
    await _activate(racer.office.database, LOOSE)
    await gun()
    return await _activate(racer.office.database, _changed(prize))


def _changed(prize: Prize) -> Policy:
    return (NOT_RENE, TWO_VOTES, HARMLESS)[prize.round // 2 % 3]


async def _activate(database: Database, wanted: Policy) -> datetime:
    """Activate a policy; returns a moment at which nobody held the old one or read the new one."""
    async with database.transaction() as conn:
        await tenants.put_policy(conn, wanted)
        return await clock.now(conn)


def forbidden_or_done(one: Round) -> str:
    changed_at, changed, told = one.told["policy"], _changed(one.prize), one.told["approve"]
    late = [e for e in one.notes("voted") if e.at > changed_at]
    assert not late or changed is not NOT_RENE, "a vote of somebody who may not vote was counted"
    check_told(one, quorum=2 if late and changed is TWO_VOTES else 0)
    opened = one.move("operation", "executing")
    if changed is HARMLESS:
        assert opened is not None, "a policy that lets it has stopped it"
        return "approve"
    if opened is not None:
        assert opened.at < changed_at, "it was opened against the policy in force"
        return "approve"
    if one.move("approval", "granted") is not None:
        assert (one.status, one.reason) == ("stale", "not_permitted")
    else:
        assert one.status == "awaiting"
        assert isinstance(told, Recorded) or told.reason is Reason.NOT_PERMITTED
    return "policy"


# Against each other.


def the_second_decides(one: Round) -> str:
    told = {name: one.told[name] for name in ("rene", "sam")}
    for who, name in ((RENE, "rene"), (SAM, "sam")):
        assert isinstance(told[name], Recorded), "nothing stands against either vote"
        one.check_told(who, told[name])
    assert one.status == DONE
    [decisive] = [name for name, answer in told.items() if answer.decided]
    return decisive


def counted_once(one: Round) -> str:
    """The same person's vote from two places, as B063 has it: a button and its double."""
    counted = {n: told for n, told in one.told.items() if not isinstance(told, NoChange)}
    [(first, told)] = counted.items()
    one.check_told(RENE, told)
    assert one.status == DONE
    return first


def rejected_or_done(one: Round) -> str:
    one.check_told(RENE, one.told["rene"])
    one.check_told(SAM, one.told["sam"])
    one.check_told(RIKO, one.told["reject"], Vote.REJECT)
    rejected = isinstance(one.told["reject"], Recorded)
    assert one.status == ("rejected" if rejected else DONE)
    return "reject" if rejected else "approve"


RACES = {
    "a cancel": Case(
        {"approve": approve, "cancel": cancel_the_run},
        cancelled_or_done,
        ("approve", "cancel"),
        alone=True,
    ),
    "the deadline": Case(
        {"approve": approve, "expire": expire_it}, expired_or_done, ("approve", "expire")
    ),
    "a change of the ticket": Case(
        {"approve": approve, "change": write_on_the_ticket}, changed_or_done, ("approve", "change")
    ),
    # The policy binds every operation of the tenant, so that only one is raced for at a time.
    "a change of the policy": Case(
        {"approve": approve, "policy": change_the_policy},
        forbidden_or_done,
        ("approve", "policy"),
        at_once=1,
        may_wait=True,
    ),
    "the other vote": Case(
        {"rene": approve, "sam": approve_too},
        the_second_decides,
        ("rene", "sam"),
        granted_half=False,
    ),
    "its double": Case(
        {"first": approve, "second": approve},
        counted_once,
        ("first", "second"),
        granted_half=False,
    ),
    "a rejection": Case(
        {"rene": approve, "sam": approve_too, "reject": reject},
        rejected_or_done,
        ("approve", "reject"),
        granted_half=False,
    ),
}
TWO_ARE_NEEDED = ("the other vote", "a rejection")


@pytest.mark.parametrize("name", RACES)
async def test_an_approval_and_its_rival_have_one_winner_and_each_is_told_the_truth(
    database: Database, database_url: str, name: str
) -> None:
    active = TWO_VOTES if name in TWO_ARE_NEEDED else LOOSE
    office = await Office.open(database, active=active)
    await race(office, database_url, RACES[name])
    await invariants.check(database)
