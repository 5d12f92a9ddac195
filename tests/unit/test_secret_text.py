"""Secrets in text: found where they stand, hidden whole, and honest words left alone."""

from __future__ import annotations

import time

import pytest

from executor.domain.payloads import JsonObject
from executor.domain.secret_text import (
    HIDDEN,
    LOOKS_ALONE,
    Secrets,
    is_tainted,
    secrets_among,
)

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIB\nAAKC\n-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    "secret",
    [
        "xapp-1-FAKE0000",
        "xoxb-12345-67890-AbCdEf",
        "xoxe.xoxp-1-abcdef",
        "sk-proj-abcDEF0123456789abcd",
        "sk-ant-api03-abcDEF0123456789",
        "sk_live_abcDEF0123456789",
        "re_abcDEF0123456789xyz",
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        "AKIAIOSFODNN7EXAMPLE",
        "Bearer abcDEF0123456789.xyz",
        "bearer\nabcDEF0123456789.xyz",
        JWT,
        PEM,
        PEM[:60],
        "https://hooks.slack.com/services/T0/B0/abcDEF",
        "xapp-1\u200b-FAKE\u206000\u2066000",
    ],
)
def test_what_looks_like_a_secret_is_hidden_whole(secret: str) -> None:
    shown = LOOKS_ALONE.hide(f"Use {secret}, please: {secret}")
    assert secret not in shown
    assert HIDDEN in shown
    assert shown.startswith("Use ")
    for piece in ("FAKE", "AbCdEf", "0123456789", "MIIE", "abcDEF", "EXAMPLE", "c2lnbmF0"):
        assert piece not in shown
    assert is_tainted(secret)
    assert is_tainted(shown)


@pytest.mark.parametrize(
    "honest",
    [
        "Dear Pat, your invoice 2291 of 40 EUR is corrected.",
        "A token that begins with xoxb- or xapp- belongs to Slack.",
        "Set xoxb-your-token in the settings.",
        "The bearer of this letter may enter.",
        "Bearer tokens are explained at https://acme.example/docs/v2?page=10#top.",
        "We use sk-learn and re_compile; see task-1 and risk-20.",
        "Write to pat@cust.example or call +31 20 123 45 67.",
        "https://acme.example:8443/x?y=1",
        "日本語のテキスト \u200f",
        "postgres",
    ],
)
def test_honest_words_are_left_alone(honest: str) -> None:
    assert LOOKS_ALONE.hide(honest) == honest
    assert not is_tainted(honest)


def test_known_values_are_hidden_whatever_they_look_like() -> None:
    secrets = Secrets(["correct-horse-battery", "correct-horse-battery-staple", "hunter2!9", "pw1"])
    text = "correct-horse-battery-staple and hun\u200bter2!9, but pw1 is an ordinary word"
    assert secrets.hide(text) == f"{HIDDEN} and {HIDDEN}, but pw1 is an ordinary word"
    assert "horse" not in repr(secrets)


def test_every_text_and_key_of_a_value_is_looked_at() -> None:
    token = "xapp-1-FAKE0000"
    value: JsonObject = {"a": [token, 1, None, {token: f"x {token}"}], "b": True}
    assert LOOKS_ALONE.hide_in(value) == {
        "a": [HIDDEN, 1, None, {HIDDEN: f"x {HIDDEN}"}],
        "b": True,
    }


def test_settings_are_known_by_their_names_and_by_the_passwords_in_them() -> None:
    settings = {
        "SLACK_BOT_TOKEN": "opaque-bot-0000",
        "OPENAI_API_KEY": "opaque-model-0000",
        "SIGNOFF_SEALING_KEYS": "first-key-0000, second-key-0000",
        "SIGNOFF_POSTMARK_WEBHOOK_CREDENTIAL": "signoff:pass-by-postmark1",
        "DATABASE_URL": "postgresql://me:data-pass-1@db.example/x",
        "SMTP_URL": "smtp://me:postgres@mail.example",
        "SIGNOFF_POLICY": "/etc/signoff/policy-000000.toml",
        "KEYBOARD": "a-keyboard-layout-1",
        "SHORT_KEY": "abc",
        "REFUNDS_LOGIN": "opaque-login-0000",
        "BROKEN_URL": "http://[broken",
    }
    found = secrets_among(settings)
    assert found >= {
        "opaque-bot-0000",
        "opaque-model-0000",
        "first-key-0000",
        "second-key-0000",
        "pass-by-postmark1",
        "data-pass-1",
    }
    assert "opaque-login-0000" not in found
    assert "opaque-login-0000" in secrets_among(settings, ["REFUNDS_LOGIN"])
    for harmless in ("postgres", "/etc/signoff/policy-000000.toml", "a-keyboard-layout-1", "abc"):
        assert harmless not in found


@pytest.mark.parametrize(
    "unit", ["sk-", "xoxb-", "eyJ-", "a.", "a://", "Bearer ", "re_", "-----BEGIN PRIVATE KEY-----"]
)
def test_no_text_takes_long(unit: str) -> None:
    text = (unit * 200_000)[:200_000]
    before = time.process_time()
    LOOKS_ALONE.hide(text)
    assert time.process_time() - before < 2.0
