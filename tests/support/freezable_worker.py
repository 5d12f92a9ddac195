"""A worker in a process of its own that stops itself with SIGSTOP where it is told to.

``python -m tests.support.freezable_worker`` reads one JSON line a round from its standard input:
for each operation that is due the point at which it is to be frozen. It works on them as a worker
does, and once each has come to its point the process stops; woken, it goes on, and answers with
one line when all is at its end. Its clocks are the host's, moved by the number of seconds in a
file, so that nobody has to wait for the time that it is frozen.

Checks before the first byte are taken away here and nowhere in the product, so that a test can
show that each of them matters.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

from executor.adapters.host_clock import SystemClock, mint_id
from executor.adapters.mail.provider_choice import mail_from
from executor.domain.effect import AttemptStatus, Outcome
from executor.domain.errors import CommitUnknown, DatabaseUnavailable
from executor.engine import call, executing
from executor.engine.claims import ClaimedOperation, claim_operations
from executor.engine.closure_email import ClosureEmails
from executor.engine.engine import Engine
from executor.engine.leases import Keeper
from executor.engine.ports import OutgoingMail
from executor.store import effects
from executor.store.connection import Connection
from executor.store.database import Database
from tests.support.doubt import Doubt
from tests.support.fake_mail import FakeMail
from tests.support.office import SHORT, Office

OWNER = "frozen"
LOOK_BEFORE, LOOK_AFTER = "last_look.before", "last_look.after"
"""Points that no failpoint has: in the transaction that reads the attempt again, and after it."""

DATABASE_DEADLINE, BOOTTIME_DEADLINE, WALL_DEADLINE = (
    "the deadline on the database's clock",
    "the deadline on the boot-time clock",
    "the deadline on the wall clock",
)
TRUST, LEASE, STATUS = "the trust window", "the lease", "the attempt's status"

_FAR = timedelta(days=3_650)


@dataclass(frozen=True)
class Case:
    """What one operation meets: the point where it is frozen, and the checks that it lacks."""

    freeze_at: str | None = None
    without: frozenset[str] = frozenset()
    claimed: ClaimedOperation | None = None


NOTHING = Case()
CASE: ContextVar[Case] = ContextVar("case")
LOOKED: ContextVar[bool] = ContextVar("looked", default=False)


class MovedClock(SystemClock):
    """The host's clocks, moved by as many seconds as a file says."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def boottime(self) -> float:
        return super().boottime() + float(self._file.read_text())

    def wall(self) -> datetime:
        if WALL_DEADLINE in CASE.get(NOTHING).without:
            return datetime(2000, 1, 1, tzinfo=UTC)
        return super().wall() + timedelta(seconds=float(self._file.read_text()))


@dataclass
class Freezer:
    """Holds each operation at its point, and stops the process when the last one has come there."""

    awaited: int = 0
    woken: asyncio.Event = field(default_factory=asyncio.Event)

    async def reach(self, name: str) -> None:
        """Stop here if this is the point; whoever sends SIGCONT lets everything go on."""
        if name != CASE.get(NOTHING).freeze_at or self.woken.is_set():
            return
        self.awaited -= 1
        if self.awaited == 0:
            os.kill(os.getpid(), signal.SIGSTOP)
            self.woken.set()
        await self.woken.wait()


@dataclass
class Round:
    """One round of a worker: what it claims, drives, and sends."""

    engine: Engine
    doubt: Doubt
    freezer: Freezer
    left: list[str] = field(default_factory=list)

    async def work(self, points: Mapping[str, Any]) -> None:
        """Claim what is due and drive each operation to its point, and after that to its end.

        A single point under ``"claim"`` is that of the claim itself.
        """
        self.freezer.awaited = len(points)
        self.freezer.woken.clear()
        CASE.set(_case(points.get("claim", [None, []])))
        try:
            claims = await claim_operations(self.engine, OWNER, 100)
        except (DatabaseUnavailable, CommitUnknown) as error:
            self.left.append(str(error))
            return
        await asyncio.gather(*(self._drive(claimed, points) for claimed in claims))

    async def _drive(self, claimed: ClaimedOperation, points: Mapping[str, Any]) -> None:
        operation = str(claimed.claim.key[1])
        if operation in points:
            CASE.set(_case(points[operation]))
        CASE.set(replace(CASE.get(NOTHING), claimed=claimed))
        try:
            await self.doubt.execute(claimed)
        except (DatabaseUnavailable, CommitUnknown) as error:
            # A worker leaves it as it is recorded.
            self.left.append(str(error))


def _case(told: list[Any]) -> Case:
    freeze_at, without = told
    return Case(freeze_at, frozenset(without))


def _operation() -> str:
    claimed = CASE.get(NOTHING).claimed
    assert claimed is not None
    return str(claimed.claim.key[1])


def _watch(adapter: type[Any], sent: Counter[str]) -> None:
    """Count what this process asks the provider to send, by operation."""
    real_send = adapter.send

    async def send(mail_port: Any, mail: OutgoingMail) -> Outcome:
        sent[_operation()] += 1
        outcome: Outcome = await real_send(mail_port, mail)
        return outcome

    patch.object(adapter, "send", send).start()


def _take_checks_away(freezer: Freezer) -> None:
    """Let every check see what it would see if all were well, where the case lacks it."""
    real_look, real_transaction = effects.last_look, Database.transaction
    real_trust, real_deadline = Keeper.trusted, call.deadline_from

    @asynccontextmanager
    async def transaction(database: Database) -> AsyncIterator[Connection]:
        async with real_transaction(database) as conn:
            yield conn
        if LOOKED.get():
            LOOKED.set(False)
            await freezer.reach(LOOK_AFTER)

    async def last_look(conn: Connection, *given: Any) -> effects.LastLook | None:
        case = CASE.get(NOTHING)
        await freezer.reach(LOOK_BEFORE)
        look = await real_look(conn, *given)
        LOOKED.set(True)
        if look is None or case.claimed is None:
            return look
        if DATABASE_DEADLINE in case.without:
            look = replace(look, deadline_at=look.now + _FAR)
        if LEASE in case.without:
            held = case.claimed.claim
            look = replace(look, lease_owner=held.owner, lease_epoch=held.epoch)
        if STATUS in case.without:
            look = replace(look, status=AttemptStatus.DISPATCHED)
        return look

    def trusted(keeper: Keeper) -> bool:
        return TRUST in CASE.get(NOTHING).without or real_trust(keeper)

    def deadline_from(engine: Engine, asked_at_boottime: float) -> call.Deadline:
        if BOOTTIME_DEADLINE in CASE.get(NOTHING).without:
            return call.Deadline(float("inf"), 0.0)
        return real_deadline(engine, asked_at_boottime)

    patch.object(Database, "transaction", transaction).start()
    patch.object(effects, "last_look", last_look).start()
    patch.object(Keeper, "trusted", trusted).start()
    patch.object(executing, "deadline_from", deadline_from).start()


async def main() -> None:
    """Serve rounds until standard input ends."""
    clock, freezer = MovedClock(Path(os.environ["FREEZABLE_CLOCK"])), Freezer()
    database = Database.connect(os.environ["DATABASE_URL"], pool_size=20, application_name=OWNER)
    engine = Engine(database, clock, mint_id, SHORT, freezer)
    doubt = Doubt(Office(database, engine, FakeMail(), ClosureEmails()), mail_from(os.environ))
    sent: Counter[str] = Counter()
    _watch(type(doubt.mail), sent)
    _take_checks_away(freezer)
    try:
        while line := await asyncio.to_thread(sys.stdin.readline):
            sent.clear()
            work = Round(engine, doubt, freezer)
            await asyncio.create_task(work.work(json.loads(line)))
            print(json.dumps({"sent": sent, "left": work.left}), flush=True)
    finally:
        await database.dispose()


if __name__ == "__main__":
    asyncio.run(main())
