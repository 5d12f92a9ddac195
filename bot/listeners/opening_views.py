"""Opens a modal for whoever pressed a button; where Slack does not, the person is told.

The trigger is good for three seconds and one use.
"""

from __future__ import annotations

import asyncio
import logging

from slack_sdk.web.async_client import AsyncWebClient

from bot import replies
from bot.listeners.payload import ButtonClick
from bot.slack_answers import LOST_CALL, trouble
from bot.whisper import Whisperer
from executor.domain.payloads import JsonObject

_log = logging.getLogger(__name__)

_OPEN_SECONDS = 1.2


class ViewOpener:
    """Opens modals in one workspace."""

    def __init__(self, client: AsyncWebClient, whisperer: Whisperer) -> None:
        self._client = client
        self._whisperer = whisperer

    async def open(self, click: ButtonClick, view: JsonObject) -> None:
        """Open ``view`` for the person who clicked, or whisper that it did not open."""
        try:
            async with asyncio.timeout(_OPEN_SECONDS):
                await self._client.views_open(trigger_id=click.trigger_id, view=dict(view))
        except LOST_CALL as error:
            _log.warning("a view could not be opened: %s", trouble(error).code)
            self._whisperer.say(
                click.container.channel_id, click.user.id, replies.view_not_opened()
            )
