"""A notification saves waiting and is never needed: behind each wait stands a slow sweep.

NOTIFY goes out in a transaction of its own, once for a whole group of changes: inside every
commit it would make the commits wait in line. The listening connection is watched by its own
check, because one that is half-open gives no error; while there is none, every wait ends by its
time limit.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from sqlalchemy import text

from executor.domain.errors import DatabaseUnavailable
from executor.store.failures import LOST_CONNECTION, one_line

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import asyncpg

    from executor.store.database import Database

_log = logging.getLogger(__name__)

_CHANNEL = "signoff"
_NOTIFY = text(f"SELECT pg_notify('{_CHANNEL}', :kind)")


class Kind(StrEnum):
    """What there may be something new of."""

    WORK = "work"
    CARDS = "cards"
    IDENTITIES = "identities"
    INBOX = "inbox"


@dataclass(frozen=True)
class ListenerTiming:
    """How often the listening connection is checked, and how fast it is opened anew, in seconds.

    A connection that died silently is noticed within ``check_interval`` + ``check_timeout``.
    """

    check_interval_seconds: float = 20.0
    check_timeout_seconds: float = 5.0
    first_delay_seconds: float = 0.1
    longest_delay_seconds: float = 5.0


async def notify(database: Database, kind: Kind) -> None:
    """Wake whoever waits for ``kind``, in any process. Opens its own transaction.

    Call it after the commit that made the work, once for the whole group. Raises what
    ``Database.transaction`` raises; the sweep finds the work all the same.
    """
    async with database.transaction() as conn:
        await conn.execute(_NOTIFY, {"kind": kind.value})


@asynccontextmanager
async def listening(
    database: Database, timing: ListenerTiming | None = None
) -> AsyncIterator[Listener]:
    """Yield a ``Listener`` that listens, and keeps coming back, until the block ends."""
    listener = Listener(database, timing or ListenerTiming())
    task = asyncio.create_task(listener.run(), name="listener")
    try:
        yield listener
    finally:
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled():
            task.result()


class Listener:
    """Hears the notifications of all processes over one connection outside the pool."""

    def __init__(self, database: Database, timing: ListenerTiming) -> None:
        self._database = database
        self._timing = timing
        self._news = {kind: asyncio.Event() for kind in Kind}
        self._connected = asyncio.Event()
        self._lost_at: float | None = None

    @property
    def is_listening(self) -> bool:
        """Whether notifications arrive, as far as the last check could tell."""
        return self._connected.is_set()

    async def wait(self, kind: Kind, timeout_seconds: float) -> bool:
        """Wait until there may be news of ``kind``; False if it is only time for the slow sweep.

        News that came since the last wait counts. After each new connection there may be news of
        every kind. News wakes everybody who waits for its kind, or else the next one who does.
        """
        event = self._news[kind]
        try:
            async with asyncio.timeout(timeout_seconds):
                await event.wait()
        except TimeoutError:
            return False
        event.clear()
        return True

    async def until_listening(self) -> None:
        """Wait until notifications arrive."""
        await self._connected.wait()

    async def run(self) -> None:
        """Listen until cancelled; a lost connection is opened anew, after ever longer delays."""
        loop = asyncio.get_running_loop()
        delay = self._timing.first_delay_seconds
        while True:
            started = loop.time()
            try:
                await self._listen_until_lost()
                self._note_loss("the server hung up")
            except (*LOST_CONNECTION, DatabaseUnavailable) as error:
                self._note_loss(one_line(error))
            finally:
                self._connected.clear()
            # A connection that dies as soon as it lives is no reason to try faster.
            if loop.time() - started > self._timing.longest_delay_seconds:
                delay = self._timing.first_delay_seconds
            await asyncio.sleep(delay)
            delay = min(2 * delay, self._timing.longest_delay_seconds)

    async def _listen_until_lost(self) -> None:
        connection = await self._database.open_dedicated("listener")
        try:
            lost = asyncio.Event()
            connection.add_termination_listener(lambda _: lost.set())
            async with asyncio.timeout(self._timing.check_timeout_seconds):
                await connection.add_listener(_CHANNEL, self._hear)
            self._note_connection()
            while not await _within(lost, self._timing.check_interval_seconds):
                await connection.fetchval("SELECT 1", timeout=self._timing.check_timeout_seconds)
        finally:
            connection.terminate()

    def _hear(self, _conn: asyncpg.Connection, _pid: int, _channel: str, payload: object) -> None:
        # A newer process may know kinds that this one does not.
        for kind, event in self._news.items():
            if kind == payload:
                event.set()

    def _note_connection(self) -> None:
        self._connected.set()
        for event in self._news.values():
            event.set()
        if self._lost_at is not None:
            away = asyncio.get_running_loop().time() - self._lost_at
            self._lost_at = None
            _log.info("notifications arrive again after %.1f s", away)

    def _note_loss(self, reason: str) -> None:
        # Once per outage, however many attempts it takes.
        if self._lost_at is None:
            self._lost_at = asyncio.get_running_loop().time()
            _log.warning("notifications do not arrive, work is found by sweeps only: %s", reason)


async def _within(event: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True
