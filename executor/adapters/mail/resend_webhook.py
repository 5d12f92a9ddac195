"""Webhooks of Resend, which are signed as Svix does it, over the raw bytes.

HMAC-SHA256 of ``{svix-id}.{svix-timestamp}.{body}`` under the secret behind ``whsec_`` (base64);
``svix-signature`` holds one or more ``v1,<base64>`` with spaces between, several while a secret is
being changed (Resend, "Verify webhooks requests", 2026). The timestamp is believed only once a
signature holds. Nothing that a request holds raises anything but ``WebhookRefused``.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from binascii import Error as BinasciiError
from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, SecretStr, ValidationError

from executor.adapters.mail.json_mail import REFERENCE_NAME
from executor.domain.delivery_event import (
    LONGEST_WEBHOOK,
    DeliveryEvent,
    DeliveryKind,
    RefusalReason,
    WebhookRefused,
    reference_from,
    short_text,
    short_texts,
)
from executor.domain.payloads import JsonValue

OLDEST_SECONDS = 300
"""How far a webhook's timestamp may be from this host's clock, on either side."""

_KINDS = {
    "email.sent": DeliveryKind.ACCEPTED,
    "email.scheduled": DeliveryKind.ACCEPTED,
    "email.delivered": DeliveryKind.DELIVERED,
    "email.delivery_delayed": DeliveryKind.DELAYED,
    "email.bounced": DeliveryKind.BOUNCED,
    "email.complained": DeliveryKind.COMPLAINED,
    "email.failed": DeliveryKind.FAILED,
    "email.suppressed": DeliveryKind.SUPPRESSED,
}
_ID = re.compile(r"[A-Za-z0-9_.-]{1,200}")
_TIMESTAMP = re.compile(r"[0-9]{1,12}")
_SIGNATURES = re.compile(r"[\x20-\x7e]{1,4000}")
_MOST_SIGNATURES = 20


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")


class _Kind(_Strict):
    type: str = Field(min_length=1, max_length=80)


class _Bounce(_Strict):
    type: str = ""
    subType: str = ""


class _Tag(_Strict):
    name: str
    value: str


class _Mail(_Strict):
    email_id: str = Field(pattern=r"^[A-Za-z0-9-]{1,100}$")
    to: list[str] = Field(default_factory=list, max_length=200)
    # An object in webhooks (resend-openapi 1.5.0), a list where mail is sent; both are known.
    tags: dict[str, str] | list[_Tag] = Field(default_factory=dict)
    bounce: _Bounce | None = None


class _Event(_Strict):
    type: Literal[
        "email.sent",
        "email.scheduled",
        "email.delivered",
        "email.delivery_delayed",
        "email.bounced",
        "email.complained",
        "email.failed",
        "email.suppressed",
    ]
    created_at: AwareDatetime
    data: _Mail


def signing_key(secret: SecretStr) -> bytes:
    """Read ``whsec_…``; raises ``ValueError`` that never holds the secret."""
    text = secret.get_secret_value().strip().removeprefix("whsec_")
    try:
        key = base64.b64decode(text, validate=True)
    except (BinasciiError, ValueError):
        key = b""
    if not key:
        raise ValueError("RESEND_WEBHOOK_SECRET must be whsec_ and base64, as Resend shows it")
    return key


def read_resend_webhook(
    body: bytes, headers: Mapping[str, str], keys: Sequence[bytes], now: float
) -> DeliveryEvent | None:
    """Verify and read one webhook; ``now`` is this host's clock in Unix seconds.

    ``None`` for an authentic event that says nothing about delivery (opened, clicked, contacts).
    The same event may come again; ``svix-id`` is the same then, and stands in the evidence. Raises
    ``WebhookRefused``.
    """
    if len(body) > LONGEST_WEBHOOK:
        raise WebhookRefused(RefusalReason.TOO_LARGE)
    event_id = _verify(body, headers, keys, now)
    try:
        kind = _KINDS.get(_Kind.model_validate_json(body).type)
        if kind is None:
            return None
        event = _Event.model_validate_json(body)
    except ValidationError:
        # Its words would repeat the body.
        raise WebhookRefused(RefusalReason.MALFORMED) from None
    mail = event.data
    tags = mail.tags if isinstance(mail.tags, dict) else {t.name: t.value for t in mail.tags}
    evidence: dict[str, JsonValue] = {
        "provider": "resend",
        "event": event.type,
        "event_id": event_id,
        "recipients": short_texts(mail.to),
    }
    if mail.bounce is not None:
        evidence["bounce"] = short_text(f"{mail.bounce.type} {mail.bounce.subType}".strip())
    return DeliveryEvent(
        event_id,
        reference_from(tags.get(REFERENCE_NAME)),
        mail.email_id,
        kind,
        event.created_at,
        evidence,
    )


def _verify(body: bytes, headers: Mapping[str, str], keys: Sequence[bytes], now: float) -> str:
    """Return the id of an authentic request."""
    given = {name.lower(): value for name, value in headers.items()}
    event_id = given.get("svix-id", "")
    timestamp = given.get("svix-timestamp", "")
    signatures = given.get("svix-signature", "")
    if not (
        _ID.fullmatch(event_id)
        and _TIMESTAMP.fullmatch(timestamp)
        and _SIGNATURES.fullmatch(signatures)
    ):
        raise WebhookRefused(RefusalReason.MALFORMED)
    offered = [
        word.removeprefix("v1,").encode("ascii")
        for word in signatures.split(" ")[:_MOST_SIGNATURES]
        if word.startswith("v1,")
    ]
    wanted = [base64.b64encode(_mac(key, event_id, timestamp, body)) for key in keys]
    # Every pair is compared, so that the time taken does not tell which one fitted.
    fits = [hmac.compare_digest(mine, theirs) for mine in wanted for theirs in offered]
    if not any(fits):
        raise WebhookRefused(RefusalReason.NOT_AUTHENTIC)
    if abs(now - int(timestamp)) > OLDEST_SECONDS:
        raise WebhookRefused(RefusalReason.STALE)
    return event_id


def _mac(key: bytes, event_id: str, timestamp: str, body: bytes) -> bytes:
    signed = b"%b.%b.%b" % (event_id.encode("ascii"), timestamp.encode("ascii"), body)
    return hmac.new(key, signed, hashlib.sha256).digest()
