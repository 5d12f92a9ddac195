"""Cards go only where no other organisation reads along; Slack is asked again every minute.

A channel can become shared after it was chosen (docs.slack.dev, conversations.info, 2026), so it is
looked at before each new message.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from slack_sdk.web.async_client import AsyncWebClient

BELIEVED_SECONDS = 60.0
_MOST_REMEMBERED = 1_000

SHARED = "channel_is_shared"
"""The problem of a card that may not be posted where it belongs."""


class ChannelSafety:
    """Remembers for a minute which channels are shared with others."""

    def __init__(
        self, client: AsyncWebClient, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._client = client
        self._monotonic = monotonic
        self._known: dict[str, tuple[float, bool]] = {}

    async def is_shared(self, channel: str) -> bool:
        """Say whether others read a channel, or are about to; raises what the SDK does."""
        known = self._known.get(channel)
        if known is not None and self._monotonic() - known[0] < BELIEVED_SECONDS:
            return known[1]
        asked_at = self._monotonic()
        answer = await self._client.conversations_info(channel=channel)
        found = answer.get("channel")
        shared = _is_shared(found) if isinstance(found, Mapping) else True
        if len(self._known) >= _MOST_REMEMBERED:
            self._known.clear()
        self._known[channel] = (asked_at, shared)
        return shared


def _is_shared(channel: Mapping[str, object]) -> bool:
    if channel.get("is_ext_shared") or channel.get("is_pending_ext_shared"):
        return True
    return bool(channel.get("is_shared")) and not channel.get("is_org_shared")
