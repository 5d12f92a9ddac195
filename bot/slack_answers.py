"""What Slack's answer to a call proves: refused, rate limited, never sent, or unknown.

Source: docs.slack.dev, errors of chat.postMessage and chat.update, and rate limits (2026). Slack
says of ``fatal_error`` and ``internal_error`` that the operation may have succeeded all the same;
5xx, a time-out and a lost connection prove as little.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError

LONGEST_WAIT_SECONDS = 300.0

_UNKNOWN = frozenset(
    {
        "fatal_error",
        "internal_error",
        "request_timeout",
        "service_unavailable",
        "update_failed",
        "team_added_to_org",
    }
)
_RATE_LIMITED = frozenset({"ratelimited", "rate_limited", "message_limit_exceeded"})
_MESSAGE_IS_GONE = frozenset(
    {
        "message_not_found",
        "edit_window_closed",
        "is_inactive",
        "cant_update_message",
        "block_mismatch",
        "streaming_state_conflict",
        "channel_not_found",
        "not_in_channel",
    }
)
_NOBODY = frozenset(
    {"user_not_found", "user_not_visible", "users_not_found", "user_is_not_visible"}
)

LOST_CALL = (SlackClientError, aiohttp.ClientError, TimeoutError, OSError)
"""Every way in which a call through the SDK can fail."""


class Proof(StrEnum):
    """What a failed call proves."""

    REFUSED = "refused"
    RATE_LIMITED = "rate_limited"
    NOT_SENT = "not_sent"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Trouble:
    """A failed call: what it proves, and Slack's error code or the kind of failure; no content."""

    proof: Proof
    code: str
    retry_after_seconds: float = 0.0

    @property
    def message_is_gone(self) -> bool:
        """Say whether an update can never succeed again, so that a new message is needed."""
        return self.proof is Proof.REFUSED and self.code in _MESSAGE_IS_GONE

    @property
    def is_nobody(self) -> bool:
        """Say whether Slack knows no such person."""
        return self.proof is Proof.REFUSED and self.code in _NOBODY


def trouble(error: BaseException) -> Trouble:
    """Classify what a call through the SDK raised."""
    if isinstance(error, SlackApiError):
        return _refusal(error)
    if isinstance(error, aiohttp.ClientConnectorError):
        return Trouble(Proof.NOT_SENT, "connection_refused")
    if isinstance(error, TimeoutError):
        return Trouble(Proof.UNKNOWN, "timeout")
    return Trouble(Proof.UNKNOWN, type(error).__name__)


def _refusal(error: SlackApiError) -> Trouble:
    response = error.response
    status = getattr(response, "status_code", getattr(response, "status", None))
    data = getattr(response, "data", None)
    code = data.get("error") if isinstance(data, Mapping) else None
    if status == 429 or code in _RATE_LIMITED:
        wait = _seconds(getattr(response, "headers", {}))
        return Trouble(Proof.RATE_LIMITED, "ratelimited", wait)
    if not isinstance(code, str) or code in _UNKNOWN or (isinstance(status, int) and status >= 500):
        return Trouble(Proof.UNKNOWN, code if isinstance(code, str) else f"http_{status}")
    return Trouble(Proof.REFUSED, code)


def _seconds(headers: Mapping[str, str]) -> float:
    found = next((v for k, v in headers.items() if k.lower() == "retry-after"), "")
    try:
        return min(max(float(found), 1.0), LONGEST_WAIT_SECONDS)
    except ValueError:
        return 30.0
