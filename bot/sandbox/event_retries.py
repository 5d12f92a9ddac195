"""Slack's three retries of an event that got no 2xx: at once, after a minute, after five.

Source: Slack, "Events API": headers x-slack-retry-num and x-slack-retry-reason; a non-2xx answer
with `X-Slack-No-Retry: 1` ends them, which cannot help when there was no answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from bot.sandbox.clock import Clock
from bot.sandbox.delivery import Delivery

RETRY_AFTER_SECONDS = (0.0, 60.0, 300.0)

Attempt = Callable[[int, str], Awaitable[Delivery]]


def retry_reason(delivery: Delivery) -> str:
    if delivery.timed_out:
        return "http_timeout"
    return "connection_failed" if delivery.status is None else "http_error"


def wants_retry(delivery: Delivery) -> bool:
    refused = delivery.headers.get("x-slack-no-retry") == "1"
    return not delivery.acknowledged and not (refused and delivery.status is not None)


class EventRetries:
    """Run the retries of every failed event, on the workspace's clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tasks: set[asyncio.Task[None]] = set()

    def follow(self, first: Delivery, attempt: Attempt) -> None:
        """Start retrying `first` in the background if Slack would."""
        if wants_retry(first):
            task = asyncio.create_task(self._retry(first, attempt))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _retry(self, last: Delivery, attempt: Attempt) -> None:
        for number, seconds in enumerate(RETRY_AFTER_SECONDS, start=1):
            await self._clock.sleep(seconds)
            last = await attempt(number, retry_reason(last))
            if not wants_retry(last):
                return

    async def settle(self) -> None:
        """Wait until no retry is left to make. Only useful on a clock that moves."""
        await asyncio.gather(*self._tasks)

    async def stop(self) -> None:
        """Cancel what is left and report the first failure that was not a cancellation."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):
                raise result
