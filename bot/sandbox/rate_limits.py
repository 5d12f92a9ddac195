"""How often each method may be called before Slack answers 429, with bursts that the test chooses.

Source: Slack's rate limits page (2026): "chat.postMessage: 1 per second per channel", Tier 3 "50+
per minute" for each method and workspace; the size of the bursts is not documented. A call that is
refused costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping

POST = "chat.postMessage"
TIER_3 = frozenset(
    {
        "chat.update",
        "chat.delete",
        "conversations.history",
        "conversations.replies",
        "conversations.info",
        "team.info",
    }
)


class Buckets:
    """One token bucket for each key: `burst` tokens, refilled at `per_second`."""

    def __init__(self, burst: int, per_second: float = 1.0) -> None:
        self._burst = burst
        self._per_second = per_second
        self._levels: dict[str, tuple[float, float]] = {}

    def retry_after(self, key: str, now: float) -> int | None:
        """Take one token, or return the whole seconds to wait when there is none."""
        level, at = self._levels.get(key, (float(self._burst), now))
        level = min(float(self._burst), level + max(0.0, now - at) * self._per_second)
        if level < 1.0:
            self._levels[key] = (level, now)
            return max(1, math.ceil((1.0 - level) / self._per_second))
        self._levels[key] = (level - 1.0, now)
        return None


class RateLimits:
    """The limits of one workspace: of posts by channel, of Tier 3 methods by method."""

    def __init__(self, post_burst: int, tier_3_burst: int) -> None:
        self._posts = Buckets(post_burst)
        self._tier_3 = Buckets(tier_3_burst, 50 / 60)

    def retry_after(
        self, method: str, args: Mapping[str, object], channels: Container[str], now: float
    ) -> int | None:
        """Count one call, or return the whole seconds to wait when it comes too soon."""
        if method == POST:
            channel = str(args.get("channel", ""))
            return self._posts.retry_after(channel, now) if channel in channels else None
        return self._tier_3.retry_after(method, now) if method in TIER_3 else None
