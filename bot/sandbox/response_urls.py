"""A response URL takes five answers within thirty minutes, and then never again.

Source: Slack, "Handling user interaction". The URL itself is a bearer secret: the record holds
its number only.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from dataclasses import dataclass

RESPONSE_USES = 5
RESPONSE_SECONDS = 30 * 60.0
_REMEMBERED = 10_000


@dataclass
class ResponseUrl:
    """One issued URL. `ts` is the message that was clicked, if a message was."""

    number: int
    channel: str
    user: str
    issued_at: float
    ts: str | None = None
    is_ephemeral: bool = False
    uses: int = 0


class ResponseUrls:
    """Issue response URLs and count their uses."""

    def __init__(self) -> None:
        self._issued: OrderedDict[str, ResponseUrl] = OrderedDict()
        self._count = 0

    def issue(
        self, channel: str, user: str, now: float, ts: str | None, is_ephemeral: bool = False
    ) -> str:
        """Return the secret last part of a new response URL."""
        self._count += 1
        key = secrets.token_urlsafe(24)
        self._issued[key] = ResponseUrl(self._count, channel, user, now, ts, is_ephemeral)
        while len(self._issued) > _REMEMBERED:
            self._issued.popitem(last=False)
        return key

    def use(self, key: str, now: float) -> ResponseUrl | str:
        """Spend one use, or return Slack's error text: `expired_url` or `used_url`."""
        url = self._issued.get(key)
        if url is None or now - url.issued_at > RESPONSE_SECONDS:
            return "expired_url"
        if url.uses >= RESPONSE_USES:
            return "used_url"
        url.uses += 1
        return url
