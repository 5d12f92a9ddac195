"""A loop that takes due work and does it, several pieces at once, and outlives each of them.

Level-triggered: what is due stands in the database, so a lost wake-up, a crash or a failed piece
only delays. Bounded: at most ``most`` pieces are in hand.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from executor.domain.errors import ExecutorError

_log = logging.getLogger(__name__)

_SHORTEST_REST_SECONDS = 0.01

ItemT = TypeVar("ItemT")


class DueWork(Generic[ItemT]):
    """Takes with ``take`` and does with ``do``; ``wait`` returns early when there is news.

    ``again_in`` says in how many seconds more will be due, where the last ``take`` could tell.
    """

    def __init__(
        self,
        name: str,
        take: Callable[[int], Awaitable[Sequence[ItemT]]],
        do: Callable[[ItemT], Awaitable[None]],
        wait: Callable[[float], Awaitable[bool]],
        *,
        most: int = 8,
        poll_seconds: float = 1.0,
        again_in: Callable[[], float | None] = lambda: None,
    ) -> None:
        self._name = name
        self._take = take
        self._do = do
        self._wait = wait
        self._most = most
        self._poll_seconds = poll_seconds
        self._again_in = again_in
        self._in_hand: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Work until cancelled; then what is in hand is cancelled too, and is due again later."""
        try:
            while True:
                taken = await self._take_some()
                for item in taken:
                    task = asyncio.create_task(self._guarded(item), name=self._name)
                    self._in_hand.add(task)
                    task.add_done_callback(self._in_hand.discard)
                if not taken:
                    await self._rest()
        finally:
            await self._let_go()

    async def _take_some(self) -> Sequence[ItemT]:
        room = self._most - len(self._in_hand)
        if room <= 0:
            return ()
        try:
            return await self._take(room)
        except ExecutorError as error:
            _log.warning("%s: nothing could be taken: %s", self._name, type(error).__name__)
        except Exception:
            _log.exception("%s: nothing could be taken", self._name)
        # Whatever is wrong is not mended by asking faster.
        await asyncio.sleep(self._poll_seconds)
        return ()

    async def _guarded(self, item: ItemT) -> None:
        try:
            await self._do(item)
        except ExecutorError as error:
            _log.warning("%s: left for later: %s", self._name, type(error).__name__)
        except Exception:
            _log.exception("%s: one piece failed; it is due again later", self._name)

    async def _rest(self) -> None:
        """Wait for news, for the end of a piece (it may have made another due), or the poll."""
        again_in = self._again_in()
        rest = self._poll_seconds if again_in is None else min(self._poll_seconds, again_in)
        news = asyncio.ensure_future(self._wait(max(rest, _SHORTEST_REST_SECONDS)))
        try:
            await asyncio.wait({news, *self._in_hand}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            news.cancel()
            await asyncio.wait({news})
        if not news.cancelled():
            news.result()

    async def _let_go(self) -> None:
        held = set(self._in_hand)
        for task in held:
            task.cancel()
        if held:
            await asyncio.wait(held)
