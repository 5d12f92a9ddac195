"""What Slack's answer to a call proves: refused, rate limited, never sent, or unknown; and what a
refusal is about: this message, its channel, or the whole workspace.

Source: docs.slack.dev, errors of chat.postMessage and chat.update, and rate limits (2026). Slack
says of ``fatal_error`` and ``internal_error`` that the operation may have succeeded all the same;
5xx, a time-out and a lost connection prove as little.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError

_CODE = re.compile(r"[A-Za-z0-9_.-]{1,80}")
LONGEST_WAIT_SECONDS = 3_600.0
"""Slack's Retry-After is obeyed up to this; a wrong header must not stop everything for ever."""

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
_TIMEOUT, _CONNECTION_REFUSED, _HTTP = "timeout", "connection_refused", "http_"
_NO_ANSWER = frozenset({_TIMEOUT, _CONNECTION_REFUSED})
_RATE_LIMITED = frozenset({"ratelimited", "rate_limited"})
_OF_THE_WORKSPACE = frozenset(
    {
        "access_denied",
        "account_inactive",
        "accesslimited",
        "app_uninstalled",
        "ekm_access_denied",
        "enterprise_is_restricted",
        "invalid_auth",
        "message_limit_exceeded",
        "missing_scope",
        "no_permission",
        "not_allowed_token_type",
        "not_authed",
        "org_login_required",
        "team_access_not_granted",
        "team_not_found",
        "token_expired",
        "token_revoked",
        "two_factor_setup_required",
    }
)
SHARED = "channel_is_shared"
"""Our own code: another organisation reads along in the channel."""

_OF_THE_CHANNEL = frozenset(
    {
        SHARED,
        "channel_not_found",
        "channel_type_not_supported",
        "is_archived",
        "is_inactive",
        "not_in_channel",
        "restricted_action",
        "restricted_action_non_threadable_channel",
        "restricted_action_read_only_channel",
        "restricted_action_thread_only_channel",
        "user_is_restricted",
    }
)
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


class Scope(StrEnum):
    """What a failed call is about: where it would fail again."""

    MESSAGE = "message"
    CHANNEL = "channel"
    WORKSPACE = "workspace"


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
    def scope(self) -> Scope:
        """Say what a refusal is about; what is no refusal may have to do with anything."""
        if self.proof is Proof.REFUSED and self.code in _OF_THE_WORKSPACE:
            return Scope.WORKSPACE
        if self.proof is Proof.REFUSED and self.code in _OF_THE_CHANNEL:
            return Scope.CHANNEL
        return Scope.MESSAGE

    @property
    def is_nobody(self) -> bool:
        """Say whether Slack knows no such person."""
        return self.proof is Proof.REFUSED and self.code in _NOBODY


def is_refusal(code: str) -> bool:
    """Say whether a problem's code is that of a refusal, and not of an answer that was lost."""
    lost = code in _UNKNOWN or code in _NO_ANSWER or code.startswith(_HTTP)
    return not lost and code == code.lower()


def trouble(error: BaseException) -> Trouble:
    """Classify what a call through the SDK raised."""
    if isinstance(error, SlackApiError):
        return _refusal(error)
    if isinstance(error, aiohttp.ClientConnectorError):
        return Trouble(Proof.NOT_SENT, _CONNECTION_REFUSED)
    if isinstance(error, TimeoutError):
        return Trouble(Proof.UNKNOWN, _TIMEOUT)
    return Trouble(Proof.UNKNOWN, type(error).__name__)


def _refusal(error: SlackApiError) -> Trouble:
    response = error.response
    status = getattr(response, "status_code", getattr(response, "status", None))
    data = getattr(response, "data", None)
    code = _code(data.get("error")) if isinstance(data, Mapping) else None
    if status == 429 or code in _RATE_LIMITED:
        wait = _seconds(getattr(response, "headers", {}))
        return Trouble(Proof.RATE_LIMITED, "ratelimited", wait)
    if not isinstance(code, str) or code in _UNKNOWN or (isinstance(status, int) and status >= 500):
        return Trouble(Proof.UNKNOWN, code if isinstance(code, str) else f"{_HTTP}{status}")
    return Trouble(Proof.REFUSED, code)


def _code(error: object) -> str | None:
    """Read Slack's own code; what does not look like one is not repeated anywhere."""
    if not isinstance(error, str):
        return None
    return error if _CODE.fullmatch(error) else "unreadable_error"


def _seconds(headers: Mapping[str, str]) -> float:
    found = next((v for k, v in headers.items() if k.lower() == "retry-after"), "")
    try:
        return min(max(float(found), 1.0), LONGEST_WAIT_SECONDS)
    except ValueError:
        return 30.0
