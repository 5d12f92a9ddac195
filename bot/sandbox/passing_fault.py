"""A fault that the demo ends by itself: whoever hangs goes on, whoever refuses listens again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

GIVEN_UP_AFTER_SECONDS = 4.0
"""What hangs goes on after this: when the executor of the demo has given up."""

LONGEST_REQUEST_SECONDS = 3
"""When the executor of the demo gives up."""

RETRY_AFTER_SECONDS = 2

Tried: TypeAlias = "Callable[[], Awaitable[None]]"
"""Waits until the executor has tried and recorded what came of it."""


class PassingFault:
    """Ends what was planned in time."""

    def __init__(self) -> None:
        self._ending: asyncio.Task[None] | None = None

    def end_later(self, ending: Awaitable[None]) -> None:
        """Let ``ending`` end the fault when its time has come."""

        async def end() -> None:
            await ending

        self._ending = asyncio.create_task(end(), name="end the fault")

    async def until_it_is_over(self) -> None:
        """Wait until the fault that was planned last does nothing any more."""
        if self._ending is not None:
            await asyncio.shield(self._ending)

    async def stop_ending(self) -> None:
        """End nothing any more."""
        if self._ending is not None:
            self._ending.cancel()
            await asyncio.wait({self._ending})
