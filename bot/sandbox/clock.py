"""The workspace's time. Everything that expires reads this clock and no other.

Only the three seconds Slack waits for an answer are measured on the machine's own clock, because
the bot under test really runs during them.
"""

from __future__ import annotations

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """Tell the time in Unix seconds and wait on it."""

    def now(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


class WallClock:
    """Follow the machine's clock."""

    def now(self) -> float:
        return time.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class VirtualClock:
    """Stand still until a test moves it."""

    def __init__(self, start: float | None = None) -> None:
        """Start at `start` Unix seconds, by default at the machine's present time.

        The default lets signatures made on this clock pass a verifier that reads the real one.
        """
        self._now = time.time() if start is None else start
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []
        self._slept = asyncio.Event()

    def now(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self._now + seconds, woken))
        self._slept.set()
        await woken

    async def until_sleeping(self, count: int = 1) -> None:
        """Wait until at least `count` tasks wait on this clock, so that `advance` wakes them."""
        while sum(not woken.done() for _, woken in self._sleepers) < count:
            self._slept.clear()
            await self._slept.wait()

    def advance(self, seconds: float) -> None:
        """Move the time forward and wake whoever was waiting for it."""
        self._now += seconds
        due = [woken for at, woken in self._sleepers if at <= self._now]
        self._sleepers = [(at, woken) for at, woken in self._sleepers if at > self._now]
        for woken in due:
            if not woken.done():
                woken.set_result(None)
