"""Cards go only where they can be seen and where no other organisation reads along.

A channel can become shared, be archived or lose the bot after it was chosen (docs.slack.dev,
conversations.info, 2026), so it is looked at before each new message; what was found well is
believed for a minute, what was not is looked at again each time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from slack_sdk.web.async_client import AsyncWebClient

from bot.slack_answers import SHARED

BELIEVED_SECONDS = 60.0
_MOST_REMEMBERED = 1_000


class ChannelSafety:
    """Remembers for a minute which channels a card may be posted in."""

    def __init__(
        self, client: AsyncWebClient, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._client = client
        self._monotonic = monotonic
        self._well: dict[str, float] = {}

    async def objection(self, channel: str) -> str | None:
        """Say why no card may be posted in a channel, as Slack's error would; raises what the SDK
        does.
        """
        looked_at = self._well.get(channel)
        asked_at = self._monotonic()
        if looked_at is not None and asked_at - looked_at < BELIEVED_SECONDS:
            return None
        self._well.pop(channel, None)
        answer = await self._client.conversations_info(channel=channel)
        found = answer.get("channel")
        objection = _objection(found) if isinstance(found, Mapping) else SHARED
        if objection is None:
            if len(self._well) >= _MOST_REMEMBERED:
                self._well.clear()
            self._well[channel] = asked_at
        return objection

    def forget(self, channel: str) -> None:
        """Look again next time: something has changed there, or a message was refused."""
        self._well.pop(channel, None)


def _objection(channel: Mapping[str, object]) -> str | None:
    """What is not told counts for the worse as far as others are concerned."""
    if channel.get("is_ext_shared") or channel.get("is_pending_ext_shared"):
        return SHARED
    if channel.get("is_shared") and not channel.get("is_org_shared"):
        return SHARED
    if channel.get("is_archived"):
        return "is_archived"
    return "not_in_channel" if channel.get("is_member") is False else None
