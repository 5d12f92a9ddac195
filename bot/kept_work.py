"""Work that somebody waits for, but not for ever: whoever stops waiting does not stop the work.

Cancelling a transaction takes time of its own, which a click does not have; and a commit that is
under way is not undone by a cancellation. So the work goes on, kept and bounded, and whoever gave
up is told that nothing is known yet.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

_log = logging.getLogger(__name__)

MOST_AT_ONCE = 500
GRACE_SECONDS = 0.2
"""A loop that was busy elsewhere looks like a time-out at first; this tells them apart."""

T = TypeVar("T")


class TooMuchAtOnce(Exception):
    """So much is in hand already that nothing more is taken on."""


class KeptWork:
    """Runs work in tasks of its own and keeps them until they have ended."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    async def within(self, seconds: float, work: Coroutine[Any, Any, T]) -> T:
        """Return what the work comes to, or raise ``TimeoutError`` and let it go on.

        Raises ``TooMuchAtOnce`` without having begun.
        """
        task = self._start(work)
        try:
            for patience in (seconds, GRACE_SECONDS):
                await asyncio.wait({task}, timeout=patience)
                if task.done():
                    return task.result()
            raise TimeoutError
        finally:
            if not task.done():
                task.add_done_callback(_report)

    def begin(self, work: Coroutine[Any, Any, object]) -> None:
        """Let work be done for which nobody waits; beyond the bound it is dropped."""
        try:
            self._start(work).add_done_callback(_report)
        except TooMuchAtOnce:
            _log.warning("something for which nobody waits was dropped: too much is in hand")

    async def close(self) -> None:
        """Give what is in hand a moment, then let it go."""
        if not self._tasks:
            return
        _, left = await asyncio.wait(set(self._tasks), timeout=1.0)
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left)

    def _start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        if len(self._tasks) >= MOST_AT_ONCE:
            work.close()
            raise TooMuchAtOnce
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _report(task: asyncio.Task[Any]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.warning("work that nobody waited for any more failed: %s", type(error).__name__)
