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
        """Open ``view`` for the person who clicked, or whisper that it did not open.

        What was pressed in a modal opens over it.
        """
        over = click.view is not None and click.view.type == "modal"
        await self.open_for(
            click.trigger_id, click.user.id, click.container.channel_id, view, over=over
        )

    async def open_for(
        self, trigger_id: str, user: str, channel: str, view: JsonObject, *, over: bool = False
    ) -> bool:
        """Open ``view`` for whoever caused this trigger; ``False``: it did not, and they know."""
        call = self._client.views_push if over else self._client.views_open
        try:
            async with asyncio.timeout(_OPEN_SECONDS):
                await call(trigger_id=trigger_id, view=dict(view))
        except LOST_CALL as error:
            _log.warning("a view could not be opened: %s", trouble(error).code)
            self._whisperer.say(channel, user, replies.view_not_opened())
            return False
        return True
