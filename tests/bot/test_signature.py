"""The signature is judged over raw bytes, with every secret, and its age only once it holds."""

from __future__ import annotations

import pytest

from bot.ingress.signature import OLDEST_SECONDS, Verdict, request_hash, verify
from bot.sandbox.signing import signature_headers

NOW = 1_700_000_000
BODY = b"payload=%7B%22type%22%3A%22block_actions%22%7D"
NEW, OLD = "new-secret", "old-secret"
SECRETS = [NEW.encode(), OLD.encode()]


def signed(secret: str = NEW, at: int = NOW, body: bytes = BODY) -> tuple[str, str]:
    headers = signature_headers(secret, at, body)
    return headers["X-Slack-Request-Timestamp"], headers["X-Slack-Signature"]


@pytest.mark.parametrize(
    ("secret", "age", "verdict"),
    [
        (NEW, 0, Verdict.OK),
        (OLD, 0, Verdict.OK),
        (NEW, OLDEST_SECONDS, Verdict.OK),
        (NEW, -OLDEST_SECONDS, Verdict.OK),
        (NEW, OLDEST_SECONDS + 1, Verdict.STALE_TIMESTAMP),
        (NEW, -OLDEST_SECONDS - 1, Verdict.STALE_TIMESTAMP),
        (OLD, 600, Verdict.STALE_TIMESTAMP),
        ("another", 0, Verdict.BAD_SIGNATURE),
        ("another", 600, Verdict.BAD_SIGNATURE),
        ("", 0, Verdict.BAD_SIGNATURE),
    ],
)
def test_a_signature_and_its_age_are_told_apart(secret: str, age: int, verdict: Verdict) -> None:
    timestamp, signature = signed(secret, NOW - age)
    assert verify(BODY, timestamp, signature, SECRETS, NOW) is verdict


@pytest.mark.parametrize(
    "timestamp",
    [
        None,
        "",
        "abc",
        "1.5",
        "-1700000000",
        " 1700000000",
        "1700000000\n",
        "１７０００００００0",
        "9" * 13,
    ],
)
def test_a_timestamp_that_is_no_number_is_malformed(timestamp: str | None) -> None:
    assert verify(BODY, timestamp, signed()[1], SECRETS, NOW) is Verdict.MALFORMED


@pytest.mark.parametrize(
    "signature",
    [None, "", "v0=", "v0=" + "g" * 64, "v0=" + "A" * 64, "v1=" + "a" * 64, "a" * 64,
     "v0=" + "a" * 63, "v0=" + "a" * 65, "v0=" + "é" * 64],
)  # fmt: skip
def test_a_signature_of_another_form_is_malformed(signature: str | None) -> None:
    assert verify(BODY, str(NOW), signature, SECRETS, NOW) is Verdict.MALFORMED


def test_b011_each_body_passes_with_its_own_signature_only() -> None:
    upper, lower = b"payload=%7B%22a%22%3A%22%2F%22%7D", b"payload=%7b%22a%22%3a%22%2f%22%7d"
    of_upper, of_lower = signed(body=upper), signed(body=lower)
    assert verify(upper, *of_upper, SECRETS, NOW) is Verdict.OK
    assert verify(lower, *of_lower, SECRETS, NOW) is Verdict.OK
    assert verify(upper, *of_lower, SECRETS, NOW) is Verdict.BAD_SIGNATURE
    assert verify(lower, *of_upper, SECRETS, NOW) is Verdict.BAD_SIGNATURE


def test_a_changed_timestamp_breaks_the_signature() -> None:
    _, signature = signed()
    assert verify(BODY, str(NOW + 1), signature, SECRETS, NOW) is Verdict.BAD_SIGNATURE


def test_only_the_same_bytes_have_the_same_hash() -> None:
    timestamp, signature = signed()
    later = signed(at=NOW + 1)
    assert request_hash(BODY, timestamp, signature) == request_hash(BODY, timestamp, signature)
    assert request_hash(BODY, timestamp, signature) != request_hash(BODY, *later)
    assert request_hash(BODY, timestamp, signature) != request_hash(BODY + b" ", *signed())
