"""Races between processes: many rounds, started together, and judged by the record alone.

    CASE = Case(
        {"approve": approve, "cancel": cancel_the_run}, cancelled_or_done, ("approve", "cancel")
    )
    won = await race(office, database_url, CASE)

Each actor is an async function and has a process of its own, with its own connections. It gets
ready, awaits the gun, and acts; what it returns is what it was told. The gun is a barrier between
the processes and, after it, a delay of up to 5 ms that is drawn for every actor and round. In some
rounds one actor is held back for longer, so that its rival has come further by then.

When all rounds are over, an executor does whatever is left, the records are read, and ``verdict``
says of each round who won; it raises where what happened and what was told do not agree.
"""

from __future__ import annotations

import asyncio
import hashlib
import multiprocessing
import random
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from threading import Barrier
from typing import Any

from executor.adapters.host_clock import SystemClock, mint_id
from executor.domain.lease import LeaseTerms
from executor.engine.claims import ClaimedOperation
from executor.engine.closure_email import ClosureEmails
from executor.engine.engine import Durations, Engine
from executor.engine.executing import execute, openings
from executor.engine.leases import operation_keeper
from executor.engine.sweeper import sweep
from executor.store.database import Database
from executor.store.operations import OperationKey
from tests.support.fake_mail import FakeMail
from tests.support.office import Office
from tests.support.race_record import Round, read_rounds
from tests.support.race_track import Prize, lay_track

ROUNDS = 200
AT_ONCE = 4
FEWEST_WINS = 4
"""A rival that wins fewer rounds than this does not race."""

_LONGEST_LAP_SECONDS = 60.0
_DELAY_SECONDS = 0.005
_HELD_BACK_SECONDS = 0.04

# A slow machine must not lose its claims by the clock: that is another race.
_PATIENT = Durations(
    lease=LeaseTerms(ttl_seconds=600.0, margin_seconds=5.0, heartbeat_seconds=60.0),
    first_byte_seconds=120.0,
    clock_allowance_seconds=1.0,
)

# Forked by a process that has imported everything and has no threads.
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload([__name__])


@dataclass
class Racer:
    """What one actor's process has: an engine of its own, a mail provider, and what it claimed.

    ``reserved`` are operations that have to wait for their round.
    """

    office: Office
    name: str
    reserved: frozenset[OperationKey] = frozenset()
    held: dict[OperationKey, ClaimedOperation] = field(default_factory=dict)
    claimed: set[OperationKey] = field(default_factory=set)
    claiming: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def take_over(self) -> None:
        """Claim, once, what was approved before the race; each is opened in its round."""
        async with self.claiming:
            while not self.reserved <= self.claimed:
                claims = await self.office.claim_operations(self.name)
                assert claims, "what was approved before the race is not due"
                self.held |= {c.claim.key: c for c in claims}
                self.claimed |= set(self.held)

    async def carry_out(self, prize: Prize) -> None:
        """Work as an executor does: open what it holds, or what is due, call, and report."""
        mine = self.held.pop(prize.key, None)
        due = [mine] if mine else await self.office.claim_operations(self.name)
        await self._carry_out_all(due)

    async def work(self) -> None:
        """Carry out whatever is due."""
        while claims := await self.office.claim_operations(self.name):
            await self._carry_out_all(claims)

    async def _carry_out_all(self, claims: Sequence[ClaimedOperation]) -> None:
        await asyncio.gather(*map(self._execute, claims))

    async def _execute(self, claimed: ClaimedOperation) -> None:
        engine, claim, providers = self.office.engine, claimed.claim, self.office.providers
        keeper = operation_keeper(engine, claim.key, claimed.lease)
        await execute(engine, providers, openings(engine, providers), claim, keeper)


Gun = Callable[[], Awaitable[None]]
Actor = Callable[[Racer, Prize, Gun], Awaitable[object]]


@dataclass(frozen=True)
class Case:
    """One race: who acts, how a round is judged, and who has to win some of them.

    ``granted_half``: every other round begins with an operation that was approved before, so that
    the rivals meet at its opening. ``alone``: each operation has a run of its own. ``at_once`` is
    how many rounds go on side by side. ``may_wait``: who comes too late leaves it to others.
    ``after`` is what people do when all rounds are over, before the executor does what is left.
    """

    actors: Mapping[str, Actor]
    verdict: Callable[[Round], str]
    winners: Sequence[str]
    granted_half: bool = True
    alone: bool = False
    at_once: int = AT_ONCE
    may_wait: bool = False
    after: Callable[[Office, Sequence[Prize]], Awaitable[None]] | None = None


async def race(office: Office, url: str, case: Case, *, rounds: int = ROUNDS) -> Counter[str]:
    """Run every round and return how often who has won; raises where one was not fair."""
    prizes = await lay_track(
        office, rounds, lanes=case.at_once, alone=case.alone, granted_half=case.granted_half
    )
    laps = await asyncio.to_thread(_run_all, url, case, prizes)
    if case.after is not None:
        await case.after(office, prizes)
    executor = _racer(office.database, "executor")
    await executor.work()
    await sweep(office.engine)
    sent = [*_sent_by(executor), *(mail for lap in laps.values() for mail in lap.sent)]
    told = [{name: lap.told[n] for name, lap in laps.items()} for n in range(rounds)]
    read = await read_rounds(office, prizes, told, sent)
    won = Counter(_judged(case, one) for one in read)
    few = [name for name in case.winners if won[name] < FEWEST_WINS]
    assert not few, f"{few} hardly ever won, so this was no race: {dict(won)}"
    return won


def _judged(case: Case, one: Round) -> str:
    try:
        one.check(may_wait=case.may_wait)
        return case.verdict(one)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{one}") from error


# The processes.


@dataclass(frozen=True)
class _Lap:
    """What one actor brings back: its answers in order, and the mails that its provider took."""

    told: list[object]
    sent: list[tuple[str, str]]


def _run_all(url: str, case: Case, prizes: Sequence[Prize]) -> dict[str, _Lap]:
    barrier = _FORKS.Barrier(len(case.actors), timeout=_LONGEST_LAP_SECONDS)
    receiving: dict[str, Connection[Any, Any]] = {}
    processes = []
    try:
        for place, (name, actor) in enumerate(case.actors.items()):
            receiving[name], sending = _FORKS.Pipe(duplex=False)
            delays = [_delay(name, place, len(case.actors), prize.round) for prize in prizes]
            run = partial(_run, url, name, actor, prizes, delays, case.at_once, barrier)
            process = _FORKS.Process(target=run, args=(sending,), daemon=True)
            process.start()
            sending.close()
            processes.append(process)
        return {name: _received(name, end) for name, end in receiving.items()}
    finally:
        for process in processes:
            process.kill()
            process.join()
            process.close()


def _received(name: str, end: Connection[Any, Any]) -> _Lap:
    with end:
        try:
            brought = end.recv()
        except EOFError:
            raise AssertionError(f"the process of {name!r} has died") from None
    assert isinstance(brought, _Lap), f"{name!r} has failed:\n{brought}"
    return brought


def _delay(name: str, place: int, actors: int, number: int) -> float:
    """Draw how long after the gun an actor begins; in some rounds one of them is held back."""
    drawn = random.Random(f"{name} {number}")
    seconds = drawn.uniform(0, _DELAY_SECONDS)
    if number // 2 % (actors + 2) == place:
        seconds += drawn.uniform(0, _HELD_BACK_SECONDS)
    return seconds


def _run(
    url: str,
    name: str,
    actor: Actor,
    prizes: Sequence[Prize],
    delays: Sequence[float],
    at_once: int,
    barrier: Barrier,
    answering: Connection[Any, Any],
) -> None:
    try:
        brought: object = asyncio.run(_run_lap(url, name, actor, prizes, delays, at_once, barrier))
    except BaseException:
        barrier.abort()
        brought = traceback.format_exc()
    answering.send(brought)


async def _run_lap(
    url: str,
    name: str,
    actor: Actor,
    prizes: Sequence[Prize],
    delays: Sequence[float],
    at_once: int,
    barrier: Barrier,
) -> _Lap:
    database = Database.connect(url, pool_size=2 * at_once, application_name=name)
    racer, told = _racer(database, name, prizes), list[object]()
    try:
        for first in range(0, len(prizes), at_once):
            # Nobody gets ready while somebody still is in the round before.
            barrier.wait()
            group = prizes[first : first + at_once]
            start = _Start(barrier, len(group))
            told += await asyncio.gather(
                *(_act(actor, racer, prize, start, delays[prize.round]) for prize in group)
            )
    finally:
        await database.dispose()
    return _Lap(told, _sent_by(racer))


@dataclass
class _Start:
    """Where the rounds of a group begin: once all of this process are ready, and all processes."""

    barrier: Barrier
    awaited: int
    begun: asyncio.Event = field(default_factory=asyncio.Event)

    async def wait(self) -> None:
        self.awaited -= 1
        if self.awaited == 0:
            # Nothing else goes on in this process now.
            self.barrier.wait()
            self.begun.set()
        await self.begun.wait()


async def _act(actor: Actor, racer: Racer, prize: Prize, start: _Start, delay: float) -> object:
    async def gun() -> None:
        await start.wait()
        await asyncio.sleep(delay)

    return await actor(racer, prize, gun)


def _racer(database: Database, name: str, prizes: Sequence[Prize] = ()) -> Racer:
    engine = Engine(database, SystemClock(), mint_id, _PATIENT)
    office = Office(database, engine, FakeMail(), ClosureEmails())
    return Racer(office, name, frozenset(prize.key for prize in prizes if prize.granted))


def _sent_by(racer: Racer) -> list[tuple[str, str]]:
    """List the mails that its provider took: the reference of each, and the digest of its bytes."""
    mails = racer.office.mail.sent
    return [(mail.reference, hashlib.sha256(mail.payload).hexdigest()) for mail in mails]
