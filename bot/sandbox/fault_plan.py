"""When a double fails: one plan by number of call, no chance involved."""

from __future__ import annotations

import asyncio
from typing import Generic, TypeVar

F = TypeVar("F")


class FaultPlan(Generic[F]):
    """Which calls fail, and how; calls are counted from 1."""

    def __init__(self) -> None:
        self.calls = 0
        self._planned: dict[int | None, F] = {}
        self._released = asyncio.Event()
        self._hanging = asyncio.Event()

    def plan(self, fault: F, *, call: int | None = None) -> None:
        """Fail at this call, or at every call that has no fault of its own."""
        self._planned[call] = fault

    def count(self) -> F | None:
        """Count one call and say what happens to it."""
        self.calls += 1
        return self._planned.get(self.calls, self._planned.get(None))

    def release(self) -> None:
        """Let everything go on that hangs, and nothing hang any more."""
        self._released.set()

    async def wait_for_hang(self, timeout: float = 10.0) -> None:
        """Wait until a call hangs."""
        async with asyncio.timeout(timeout):
            await self._hanging.wait()

    async def hang(self) -> None:
        """Wait until released."""
        self._hanging.set()
        await self._released.wait()
