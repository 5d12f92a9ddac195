"""Private answers that nothing depends on: best effort, never on the way to an ack.

What was recorded is told by the notices of the database; this is for what could not be recorded.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from slack_sdk.web.async_client import AsyncWebClient

from bot.kept_work import KeptWork
from bot.slack_answers import LOST_CALL, Proof, trouble
from executor.domain.payloads import JsonObject

_log = logging.getLogger(__name__)

_SECONDS = 5.0
_LONGEST_WAIT_SECONDS = 30.0
"""What is said later than this answers nothing any more."""

MOST_TRIES = 3
"""A busy Slack loses an answer that nobody stored; saying the same thing twice harms nobody."""


class Whisperer:
    """Sends private answers in the background."""

    def __init__(self, client: AsyncWebClient, kept: KeptWork) -> None:
        self._client = client
        self._kept = kept

    def say(self, channel: str, user: str, text: str, *, thread_ts: str | None = None) -> None:
        """Start telling one person something; returns at once. Views have no channel: nothing."""
        if channel:
            self._kept.begin(
                _sent(
                    partial(
                        self._client.chat_postEphemeral,
                        channel=channel,
                        user=user,
                        text=text,
                        thread_ts=thread_ts,
                        parse="none",
                        link_names=False,
                    )
                )
            )

    async def retire(self, channel: str, ts: str, text: str, blocks: Sequence[JsonObject]) -> None:
        """Take the buttons off a message of ours that is not the card."""
        await _sent(
            partial(
                self._client.chat_update,
                channel=channel,
                ts=ts,
                text=text,
                blocks=[dict(block) for block in blocks],
                parse="none",
                link_names=False,
            )
        )


async def _sent(call: Callable[[], Awaitable[object]]) -> None:
    for tried in range(1, MOST_TRIES + 1):
        try:
            async with asyncio.timeout(_SECONDS):
                await call()
        except LOST_CALL as error:
            problem = trouble(error)
            _log.info("a private answer was not sent (try %d): %s", tried, problem.code)
            if (
                problem.proof is Proof.REFUSED
                or problem.retry_after_seconds > _LONGEST_WAIT_SECONDS
            ):
                return
            await asyncio.sleep(problem.retry_after_seconds)
        else:
            return
