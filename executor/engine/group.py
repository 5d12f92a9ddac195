"""Concurrent callers join the group that forms while the previous commit is in flight.

One item is a group of one. A caller that is cancelled or times out never cancels its group: what it
asked for may be committed all the same. A group that the database refuses is tried again item by
item, so that one bad item costs only itself; a group whose COMMIT is unknown is not, for each of
its items has to be read back first.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from executor.domain.errors import CommitUnknown, DatabaseUnavailable

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")

_log = logging.getLogger(__name__)

# Neither is the fault of an item: the first has to be read back, the second will be tried again.
_NOBODYS_FAULT = (CommitUnknown, DatabaseUnavailable)


class Group(Generic[ItemT, ResultT]):
    """Runs ``apply`` over whatever was asked for meanwhile, at most ``most`` items at once.

    ``apply`` takes items and returns one result an item, in order, from one transaction.
    """

    def __init__(
        self, apply: Callable[[Sequence[ItemT]], Awaitable[Sequence[ResultT]]], *, most: int = 200
    ) -> None:
        self._apply = apply
        self._most = most
        self._waiting: list[tuple[ItemT, asyncio.Future[ResultT]]] = []
        self._running: asyncio.Task[None] | None = None

    async def submit(self, item: ItemT) -> ResultT:
        """Join the next group and return this item's own result, or raise its own error."""
        answer: asyncio.Future[ResultT] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, answer))
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._run(), name="group")
        return await answer

    async def idle(self) -> None:
        """Wait until everything that was submitted has been answered."""
        while self._running is not None and not self._running.done():
            await asyncio.wait({self._running})

    async def _run(self) -> None:
        while self._waiting:
            group, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
            await self._run_group(group)

    async def _run_group(self, group: list[tuple[ItemT, asyncio.Future[ResultT]]]) -> None:
        try:
            results = await self._apply([item for item, _ in group])
        except _NOBODYS_FAULT as error:
            _fail(group, error)
        except Exception as error:
            if len(group) == 1:
                _fail(group, error)
                return
            for pair in group:
                await self._run_group([pair])
        except asyncio.CancelledError:
            for _, answer in group:
                answer.cancel()
            raise
        else:
            for (_, answer), result in zip(group, results, strict=True):
                if not answer.done():
                    answer.set_result(result)


def _fail(group: Sequence[tuple[object, asyncio.Future[ResultT]]], error: Exception) -> None:
    for _, answer in group:
        if not answer.done():
            answer.set_exception(error)


async def together_or_apart(
    apply: Callable[[Sequence[ItemT]], Awaitable[object]], items: Sequence[ItemT]
) -> None:
    """Apply ``items`` in one commit or, where that fails, each in its own, past those that fail.

    For sweeps, which nobody waits for: an item that fails is logged and found again by the next.
    Raises ``CommitUnknown`` and ``DatabaseUnavailable``.
    """
    try:
        await apply(items)
    except _NOBODYS_FAULT:
        raise
    except Exception:
        if len(items) == 1:
            _log.exception("an item was left as it is recorded: %r", items[0])
            return
        for item in items:
            await together_or_apart(apply, [item])
