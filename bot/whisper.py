"""Private answers that nothing depends on: sent once, best effort, never on the way to an ack.

What was recorded is told by the notices of the database; this is for what could not be recorded.
Bounded: beyond ``MOST_AT_ONCE`` answers in flight, further ones are dropped.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from typing import Any

from slack_sdk.web.async_client import AsyncWebClient

from bot.slack_answers import LOST_CALL, trouble
from executor.domain.payloads import JsonObject

_log = logging.getLogger(__name__)

MOST_AT_ONCE = 50
_SECONDS = 5.0


class Whisperer:
    """Sends private answers in tasks of its own."""

    def __init__(self, client: AsyncWebClient) -> None:
        self._client = client
        self._tasks: set[asyncio.Task[None]] = set()

    def say(self, channel: str, user: str, text: str, *, thread_ts: str | None = None) -> None:
        """Start telling one person something; returns at once."""
        self._start(
            self._client.chat_postEphemeral(
                channel=channel,
                user=user,
                text=text,
                thread_ts=thread_ts,
                parse="none",
                link_names=False,
            )
        )

    def retire(self, channel: str, ts: str, text: str, blocks: Sequence[JsonObject]) -> None:
        """Start taking the buttons off a message of ours that is not the card."""
        self._start(
            self._client.chat_update(
                channel=channel,
                ts=ts,
                text=text,
                blocks=[dict(block) for block in blocks],
                parse="none",
                link_names=False,
            )
        )

    async def close(self) -> None:
        """Give what is in flight a moment, then let it go."""
        if not self._tasks:
            return
        _, left = await asyncio.wait(set(self._tasks), timeout=1.0)
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left)

    def _start(self, call: Coroutine[Any, Any, object]) -> None:
        if len(self._tasks) >= MOST_AT_ONCE:
            call.close()
            _log.warning("a private answer was dropped: too many are in flight")
            return
        task = asyncio.create_task(_sent(call), name="whisper")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _sent(call: Coroutine[Any, Any, object]) -> None:
    try:
        async with asyncio.timeout(_SECONDS):
            await call
    except LOST_CALL as error:
        _log.info("a private answer was not sent: %s", trouble(error).code)
