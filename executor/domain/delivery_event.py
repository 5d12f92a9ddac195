"""What a provider tells us later about a mail, once it is proved to come from the provider.

Any event about a mail proves that the provider had accepted it, ``failed`` and ``suppressed``
included: it took the mail over and then did not hand it on. Events repeat and come in any order.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from executor.domain.payloads import JsonObject, storable_text

LONGEST_WEBHOOK = 1 << 20
"""Octets of the longest body that is looked at."""

_REFERENCE = re.compile(r"[A-Za-z0-9_-]{1,80}")
_LONGEST_TEXT = 300
_MOST_RECIPIENTS = 50


class DeliveryKind(StrEnum):
    """What happened to a mail at the provider or beyond."""

    ACCEPTED = "accepted"
    DELIVERED = "delivered"
    DELAYED = "delayed"
    BOUNCED = "bounced"
    COMPLAINED = "complained"
    FAILED = "failed"
    SUPPRESSED = "suppressed"


@dataclass(frozen=True, slots=True)
class DeliveryEvent:
    """One event; ``reference`` is the effect's id, or ``None`` for a mail that is not ours.

    ``event_id`` is the same whenever the same event comes again; ``provider_id`` is the mail's.
    """

    event_id: str
    reference: str | None
    provider_id: str
    kind: DeliveryKind
    happened_at: datetime
    evidence: JsonObject


class RefusalReason(StrEnum):
    """Why a webhook is not believed."""

    TOO_LARGE = "too_large"
    MALFORMED = "malformed"
    NOT_AUTHENTIC = "not_authentic"
    STALE = "stale"


class WebhookRefused(Exception):
    """A request is not a webhook of the provider, or not one that can be read."""

    def __init__(self, reason: RefusalReason) -> None:
        super().__init__(f"the webhook was refused: {reason.value}")
        self.reason = reason


def reference_from(value: object) -> str | None:
    """Read our reference; anything that could not have been made by us is none."""
    return value if isinstance(value, str) and _REFERENCE.fullmatch(value) else None


def short_text(text: str) -> str:
    """Make untrusted text fit to be recorded."""
    return storable_text(text[:_LONGEST_TEXT])


def short_texts(texts: list[str]) -> list[str]:
    """Make untrusted texts fit to be recorded."""
    return [short_text(text) for text in texts[:_MOST_RECIPIENTS]]
