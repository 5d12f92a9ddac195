"""At most one message per second and channel, with a burst that the test chooses.

Source: Slack's rate limits page, "chat.postMessage: 1 per second per channel, short bursts
allowed"; the size of the burst is not documented.
"""

from __future__ import annotations

import math


class ChannelBuckets:
    """One token bucket per channel: `burst` tokens, refilled at `per_second`."""

    def __init__(self, burst: int, per_second: float = 1.0) -> None:
        self._burst = burst
        self._per_second = per_second
        self._levels: dict[str, tuple[float, float]] = {}

    def retry_after(self, channel: str, now: float) -> int | None:
        """Take one token, or return the whole seconds to wait when there is none."""
        level, at = self._levels.get(channel, (float(self._burst), now))
        level = min(float(self._burst), level + max(0.0, now - at) * self._per_second)
        if level < 1.0:
            self._levels[channel] = (level, now)
            return max(1, math.ceil((1.0 - level) / self._per_second))
        self._levels[channel] = (level - 1.0, now)
        return None
