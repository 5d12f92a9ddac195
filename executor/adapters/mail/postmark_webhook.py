"""Webhooks of Postmark, which are not signed: only a credential in their URL says whose they are.

Postmark sends user and password of the webhook's URL as basic authentication (Postmark, "Webhooks
overview", 2026). There is no timestamp to be believed and no id of the delivery, so the same event
may come any number of times; it is known again by the digest of its bytes. Nothing that a request
holds raises anything but ``WebhookRefused``.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from binascii import Error as BinasciiError
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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
)
from executor.domain.payloads import JsonValue

_LONGEST_CREDENTIAL = 2_000
# Bounces that are none: answers and requests of recipients, which say nothing about delivery.
_NO_BOUNCE = frozenset(
    {
        "AddressChange",
        "AutoResponder",
        "ChallengeVerification",
        "OpenRelayTest",
        "Subscribe",
        "TestClient",
        "Unsubscribe",
    }
)


@dataclass(frozen=True, slots=True)
class WebhookCredential:
    """User and password as they stand in the URL that Postmark calls."""

    user: str
    password: SecretStr


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")


class _Record(_Strict):
    RecordType: str = Field(min_length=1, max_length=80)


class _Mail(_Strict):
    MessageID: str = Field(pattern=r"^[A-Za-z0-9-]{1,100}$")
    Metadata: dict[str, str] = Field(default_factory=dict, max_length=50)


class _Delivery(_Mail):
    DeliveredAt: AwareDatetime
    Recipient: str = ""


class _Bounce(_Mail):
    """A bounce, and a spam complaint, which Postmark records in the same fields."""

    BouncedAt: AwareDatetime
    Email: str = ""
    Type: str = ""


def read_postmark_webhook(
    body: bytes, headers: Mapping[str, str], credentials: Sequence[WebhookCredential]
) -> DeliveryEvent | None:
    """Verify and read one webhook.

    ``None`` for an authentic event that says nothing about delivery (opens, clicks, out-of-office
    answers). Raises ``WebhookRefused``.
    """
    if len(body) > LONGEST_WEBHOOK:
        raise WebhookRefused(RefusalReason.TOO_LARGE)
    _verify(headers, credentials)
    try:
        record = _Record.model_validate_json(body).RecordType
        if record == "Delivery":
            delivery = _Delivery.model_validate_json(body)
            return _event(body, delivery, DeliveryKind.DELIVERED, record, delivery.Recipient)
        if record == "SpamComplaint":
            complaint = _Bounce.model_validate_json(body)
            return _event(body, complaint, DeliveryKind.COMPLAINED, record)
        if record == "Bounce":
            bounce = _Bounce.model_validate_json(body)
            delayed = bounce.Type == "Transient"
            kind = DeliveryKind.DELAYED if delayed else DeliveryKind.BOUNCED
            return None if bounce.Type in _NO_BOUNCE else _event(body, bounce, kind, record)
    except ValidationError:
        # Its words would repeat the body.
        raise WebhookRefused(RefusalReason.MALFORMED) from None
    return None


def _event(
    body: bytes,
    mail: _Delivery | _Bounce,
    kind: DeliveryKind,
    record: str,
    recipient: str = "",
) -> DeliveryEvent:
    evidence: dict[str, JsonValue] = {"provider": "postmark", "event": record}
    happened_at = mail.DeliveredAt if isinstance(mail, _Delivery) else mail.BouncedAt
    if isinstance(mail, _Bounce):
        recipient = mail.Email
        evidence["bounce"] = short_text(mail.Type)
    evidence["recipients"] = [short_text(recipient)] if recipient else []
    reference = reference_from(mail.Metadata.get(REFERENCE_NAME))
    event_id = hashlib.sha256(body).hexdigest()
    return DeliveryEvent(event_id, reference, mail.MessageID, kind, happened_at, evidence)


def _verify(headers: Mapping[str, str], credentials: Sequence[WebhookCredential]) -> None:
    given = {name.lower(): value for name, value in headers.items()}
    scheme, _, encoded = given.get("authorization", "").partition(" ")
    if scheme.lower() != "basic" or len(encoded) > _LONGEST_CREDENTIAL:
        raise WebhookRefused(RefusalReason.NOT_AUTHENTIC)
    try:
        offered = base64.b64decode(encoded.strip(), validate=True)
    except (BinasciiError, ValueError):
        raise WebhookRefused(RefusalReason.NOT_AUTHENTIC) from None
    # Digests are compared, so that the time taken tells neither which one fitted nor its length.
    fits = [
        hmac.compare_digest(hashlib.sha256(offered).digest(), _digest(credential))
        for credential in credentials
    ]
    if not any(fits):
        raise WebhookRefused(RefusalReason.NOT_AUTHENTIC)


def _digest(credential: WebhookCredential) -> bytes:
    pair = f"{credential.user}:{credential.password.get_secret_value()}"
    return hashlib.sha256(pair.encode()).digest()
