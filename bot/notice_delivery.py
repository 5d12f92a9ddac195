"""Stored private answers are told, best effort: at most three tries, then forgotten. One that came
too soon for Slack waits as long as Slack says, and that was no try.

Slack does not promise that an ephemeral message arrives, and the card tells the same to everybody.
"""

from __future__ import annotations

import asyncio
import logging

from slack_sdk.web.async_client import AsyncWebClient

from bot.notice_text import notice_text
from bot.slack_answers import LOST_CALL, Proof, trouble
from executor.engine.engine import Engine
from executor.engine.presenting import Notice, drop_notice, put_off_notice

_log = logging.getLogger(__name__)

MOST_TRIES = 3
_SECONDS = 10.0


class NoticeDelivery:
    """Tells people what their clicks came to."""

    def __init__(self, engine: Engine, client: AsyncWebClient) -> None:
        self._engine = engine
        self._client = client

    async def deliver(self, notice: Notice) -> None:
        """Tell one person, or leave it for the next try; its lease spaces the tries."""
        try:
            async with asyncio.timeout(_SECONDS):
                await self._client.chat_postEphemeral(
                    channel=notice.channel,
                    user=notice.user_id,
                    text=notice_text(notice.answer),
                    parse="none",
                    link_names=False,
                )
        except LOST_CALL as error:
            problem = trouble(error)
            _log.info("a private answer was not sent (try %d): %s", notice.tries, problem.code)
            if problem.proof is Proof.RATE_LIMITED:
                await put_off_notice(self._engine, notice, problem.retry_after_seconds)
                return
            if problem.proof is not Proof.REFUSED and notice.tries < MOST_TRIES:
                return
        await drop_notice(self._engine, notice)
