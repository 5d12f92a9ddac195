"""Slack's v0 signature, over the raw bytes that are sent.

Source: Slack, "Verifying requests from Slack": HMAC-SHA256 of `v0:{timestamp}:{body}`.
"""

from __future__ import annotations

import hashlib
import hmac


def signature_headers(secret: str, timestamp: int, body: bytes) -> dict[str, str]:
    """Return the two headers that prove the request to whoever knows the secret."""
    base = b"v0:%d:%b" % (timestamp, body)
    digest = hmac.new(secret.encode(), base, hashlib.sha256).hexdigest()
    return {"X-Slack-Request-Timestamp": str(timestamp), "X-Slack-Signature": f"v0={digest}"}
