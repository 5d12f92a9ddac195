"""One request to the bot: signed, sent once, and given the seconds that Slack gives it.

The time runs from sending. What the bot's answer means to the person is decided in `answers.py`.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

import aiohttp

from bot.sandbox.model import Json
from bot.sandbox.signing import signature_headers

Kind = Literal["block_actions", "slash", "view_submission", "view_closed", "event"]
FORM = "application/x-www-form-urlencoded"
JSON = "application/json"


class NotConnected(RuntimeError):
    """Raised when a person acts and no bot is there to be told."""


class Sees(StrEnum):
    """What the person sees of a delivery."""

    NOTHING = "nothing"
    WARNING_SIGN = "warning sign"
    OPERATION_TIMEOUT = "operation_timeout"
    DISPATCH_FAILED = "dispatch_failed"
    EPHEMERAL = "ephemeral text"
    IN_CHANNEL = "message in channel"
    VIEW_ERRORS = "view errors"
    VIEW_CHANGED = "another view"
    TROUBLE_CONNECTING = "trouble connecting"


@dataclass(frozen=True)
class SignedRequest:
    """The exact bytes and headers, so that a replay is the same request."""

    kind: Kind
    user: str
    body: bytes
    headers: dict[str, str]
    context: Json = field(default_factory=dict)


@dataclass
class Delivery:
    """What came of one sending. `status` is None when no answer came in time."""

    request: SignedRequest
    number: int
    status: int | None = None
    body: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    timed_out: bool = False
    sees: Sees = Sees.NOTHING
    said: str | None = None
    view_errors: dict[str, str] = field(default_factory=dict)
    copies: list[Delivery] = field(default_factory=list)

    @property
    def acknowledged(self) -> bool:
        """Tell whether the bot answered as Slack wants: 200, any 2xx for events, and in time."""
        if self.status is None:
            return False
        return 200 <= self.status < 300 if self.request.kind == "event" else self.status == 200

    def to_json(self) -> Json:
        return {
            "sees": self.said or self.sees.value,
            "status": self.status,
            "seconds": round(self.seconds, 3),
        }


def signed(
    kind: Kind,
    user: str,
    body: bytes,
    *,
    secret: str,
    timestamp: float,
    content_type: str = FORM,
    extra: dict[str, str] | None = None,
    context: Json | None = None,
) -> SignedRequest:
    """Sign the bytes as of `timestamp`, Unix seconds."""
    headers = {
        "Content-Type": content_type,
        "User-Agent": "Slackbot 1.0 (+https://api.slack.com/robots)",
        **signature_headers(secret, int(timestamp), body),
        **(extra or {}),
    }
    return SignedRequest(kind, user, body, headers, context or {})


async def send(url: str, request: SignedRequest, number: int, limit_seconds: float) -> Delivery:
    """Post the request to `url`. Never raises for what the bot does: the Delivery tells it."""
    delivery = Delivery(request, number)
    started = time.monotonic()
    try:
        async with (
            asyncio.timeout(limit_seconds),
            aiohttp.ClientSession(auto_decompress=True) as session,
            session.post(
                url, data=request.body, headers=request.headers, allow_redirects=False
            ) as response,
        ):
            delivery.body = await response.text()
            delivery.status = response.status
            delivery.headers = {k.lower(): v for k, v in response.headers.items()}
    except TimeoutError:
        delivery.timed_out = True
    except (aiohttp.ClientError, OSError, UnicodeDecodeError) as error:
        delivery.body = type(error).__name__
    delivery.seconds = time.monotonic() - started
    return delivery
