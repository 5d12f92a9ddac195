"""Whether a request comes from Slack, decided over its raw bytes and nothing else.

HMAC-SHA256 of ``v0:{timestamp}:{body}`` (docs.slack.dev, verifying requests from Slack, 2026),
compared in constant time with each configured secret: a regenerated secret leaves the old one valid
for a day. The timestamp is believed only once its signature holds, so that a request signed with a
wrong secret and one from a clock that drifted are told apart. Pure.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Sequence
from enum import StrEnum

OLDEST_SECONDS = 300
"""How far a request's timestamp may be from this host's clock, on either side."""

_TIMESTAMP = re.compile(r"[0-9]{1,12}")
_SIGNATURE = re.compile(r"v0=[0-9a-f]{64}")


class Verdict(StrEnum):
    """What the signature and its age say."""

    OK = "ok"
    MALFORMED = "malformed"
    BAD_SIGNATURE = "bad_signature"
    STALE_TIMESTAMP = "stale_timestamp"


def verify(
    body: bytes, timestamp: str | None, signature: str | None, secrets: Sequence[bytes], now: float
) -> Verdict:
    """Judge one request; ``now`` is this host's clock in Unix seconds."""
    if timestamp is None or signature is None:
        return Verdict.MALFORMED
    if not _TIMESTAMP.fullmatch(timestamp) or not _SIGNATURE.fullmatch(signature):
        return Verdict.MALFORMED
    signed = b"v0:%b:%b" % (timestamp.encode(), body)
    # Every secret is tried, so that the time taken does not tell which one fitted.
    fits = [hmac.compare_digest(_signature(secret, signed), signature) for secret in secrets]
    if not any(fits):
        return Verdict.BAD_SIGNATURE
    if abs(now - int(timestamp)) > OLDEST_SECONDS:
        return Verdict.STALE_TIMESTAMP
    return Verdict.OK


def request_hash(body: bytes, timestamp: str, signature: str) -> bytes:
    """Name one signed request; the same bytes sent again have the same name."""
    return hashlib.sha256(b"%b:%b:%b" % (timestamp.encode(), signature.encode(), body)).digest()


def _signature(secret: bytes, signed: bytes) -> str:
    return f"v0={hmac.new(secret, signed, hashlib.sha256).hexdigest()}"
