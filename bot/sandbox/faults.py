"""Planned misfortune: which call of which method goes wrong, and how.

Call numbers count from 1 per method since the server started. A fault fires at most `times` times.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from bot.sandbox.model import Json


class Fault(StrEnum):
    """What happens to the call. "Commit" is the moment the workspace changes."""

    NOT_DELIVERED = "not_delivered"  # the connection is reset before the commit
    LOST_AFTER_COMMIT = "lost_after_commit"  # the connection is reset after it
    HANGS_BEFORE_COMMIT = "hangs_before_commit"  # nothing until `release`, then the call goes on
    HANGS_AFTER_COMMIT = "hangs_after_commit"  # committed, no answer until `release`
    TRUNCATED_BODY = "truncated_body"  # committed, the answer ends in the middle
    RATE_LIMITED = "rate_limited"  # 429 with Retry-After of `seconds`
    ERROR_500_BEFORE_COMMIT = "error_500_before_commit"
    ERROR_500_AFTER_COMMIT = "error_500_after_commit"
    FATAL_ERROR_AFTER_COMMIT = "fatal_error_after_commit"
    INTERNAL_ERROR_BEFORE_COMMIT = "internal_error_before_commit"
    SLOW = "slow"  # committed at once, answered after `seconds` on the machine's clock
    DELIVERED_TWICE = "delivered_twice"  # a proxy repeats the request; the second is answered
    HISTORY_LAGS = "history_lags"  # history and replies miss the `count` newest messages
    MESSAGE_DELETED = "message_deleted"  # someone deletes the addressed message just before
    CHANNEL_ARCHIVED = "channel_archived"
    CHANNEL_BECOMES_SHARED = "channel_becomes_shared"
    TOKEN_REVOKED = "token_revoked"  # noqa: S105  (a name, not a token)
    EDIT_WINDOW_CLOSED = "edit_window_closed"
    REFUSED = "refused"  # answered with Slack's own error `error`, before the commit
    BOT_REMOVED = "bot_removed"  # someone takes the bot out of the channel
    CHANNEL_DELETED = "channel_deleted"
    APP_UNINSTALLED = "app_uninstalled"
    TEXT_TRIMMED = "text_trimmed"  # Slack stores the block text without its outer white space


ERRORS = frozenset(
    {
        "account_inactive",
        "channel_not_found",
        "ekm_access_denied",
        "invalid_auth",
        "invalid_blocks",
        "is_archived",
        "message_limit_exceeded",
        "messages_tab_disabled",
        "missing_scope",
        "msg_blocks_too_long",
        "no_permission",
        "not_in_channel",
        "restricted_action",
        "restricted_action_read_only_channel",
        "team_access_not_granted",
        "token_expired",
        "token_revoked",
    }
)
"""What a call can be refused with by plan: names of Slack's reference alone."""


@dataclass
class PlannedFault:
    """One fault that waits for its call. `released` lets hanging calls go on."""

    method: str
    fault: Fault
    call: int | None
    when: Callable[[Json], bool] | None
    times: int
    seconds: float
    count: int
    probability: float | None
    released: asyncio.Event
    fired: asyncio.Event
    error: str = ""
    firings: int = 0

    def release(self) -> None:
        """Let calls that hang because of this fault go on."""
        self.released.set()


class Faults:
    """Plan faults and say, for each call as it comes, which one strikes."""

    def __init__(self, seed: int = 0) -> None:
        self._planned: list[PlannedFault] = []
        self._calls: Counter[str] = Counter()
        self._random = random.Random(seed)  # noqa: S311  (repeatable on purpose)

    def add(
        self,
        method: str,
        *,
        fault: Fault,
        call: int | None = None,
        when: Callable[[Json], bool] | None = None,
        times: int = 1,
        seconds: float = 1.0,
        count: int = 1,
        probability: float | None = None,
        error: str = "",
    ) -> PlannedFault:
        """Plan a fault for call number `call`, or calls whose arguments satisfy `when`, or both.

        With neither it strikes the next `times` calls. `method` may be "*". `probability` makes
        it strike by a draw from the seed. `error` is what a refused call is answered with.
        """
        if (fault is Fault.REFUSED) != (error in ERRORS):
            raise ValueError(f"a call is refused with an error of Slack's, not with {error!r}")
        planned = PlannedFault(method, fault, call, when, times, seconds, count, probability,
                               asyncio.Event(), asyncio.Event(), error)  # fmt: skip
        self._planned.append(planned)
        return planned

    def strike(self, method: str, args: Json) -> PlannedFault | None:
        """Count this call and return the first planned fault that fits it."""
        self._calls[method] += 1
        for planned in self._planned:
            if self._fits(planned, method, args):
                planned.firings += 1
                planned.fired.set()
                return planned
        return None

    def _fits(self, planned: PlannedFault, method: str, args: Json) -> bool:
        if planned.method not in (method, "*") or planned.firings >= planned.times:
            return False
        if planned.call is not None and planned.call != self._calls[method]:
            return False
        if planned.when is not None and not planned.when(args):
            return False
        return planned.probability is None or self._random.random() < planned.probability

    def clear(self) -> None:
        """Forget every planned fault and release whatever hangs."""
        for planned in self._planned:
            planned.release()
        self._planned.clear()
