"""Where a decision needs a second factor or more room, a one-time link goes to the person alone.

Whoever holds only the Slack session can read that message and cannot answer the page's question.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from slack_sdk.web.async_client import AsyncWebClient

from bot.slack_answers import LOST_CALL, trouble
from executor.domain.errors import ExecutorError
from executor.engine.click import Click
from executor.engine.decision_links import VALID_FOR, issue
from executor.engine.engine import Engine
from executor.engine.second_factor import Sealer

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StepUp:
    """What second factors need of this installation: its own address, and the keys of its seals."""

    public_url: str
    sealer: Sealer


class LinkSender:
    """Sends links; best effort, for another click sends another."""

    def __init__(self, engine: Engine, client: AsyncWebClient, public_url: str) -> None:
        self._engine = engine
        self._client = client
        self._url = public_url.rstrip("/")

    async def send(self, click: Click) -> bool:
        """Make a link for whoever clicked and send it to that person alone."""
        try:
            token = await issue(self._engine, click)
        except ExecutorError as error:
            _log.warning("no link could be made: %s", type(error).__name__)
            return False
        minutes = int(VALID_FOR.total_seconds() // 60)
        text = (
            f"Read all of it and decide within {minutes} minutes: {self._url}/decide/{token} "
            "This link is yours alone and decides nothing by being looked at."
        )
        try:
            await self._client.chat_postMessage(
                channel=click.user_id, text=text, unfurl_links=False, unfurl_media=False
            )
        except LOST_CALL as error:
            _log.warning("a link could not be sent: %s", trouble(error).code)
            return False
        return True
