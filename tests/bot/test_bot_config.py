"""Settings: everything that is missing is named at once, and nothing works unverified."""

from __future__ import annotations

import pytest

from bot.config import bot_settings
from executor.config import SettingsInvalid

GOOD = {
    "SIGNOFF_POLICY": "/etc/signoff/policy.toml",
    "SLACK_BOT_TOKEN": "xoxb-1-2-abc",
    "SLACK_SIGNING_SECRET": "8f742231b10e8888abcd99yyyzzz85a5",
}


def test_all_missing_settings_are_named_at_once_with_where_to_get_them() -> None:
    with pytest.raises(SettingsInvalid) as refused:
        bot_settings({})
    told = "\n".join(refused.value.problems)
    for name in GOOD:
        assert f"{name} is missing: " in told
    assert "OAuth & Permissions" in told
    assert "Basic Information" in told


@pytest.mark.parametrize("secret", ["", " ", ",", " , "])
def test_b012_without_a_signing_secret_the_service_refuses_to_start(secret: str) -> None:
    with pytest.raises(SettingsInvalid, match="SLACK_SIGNING_SECRET"):
        bot_settings({**GOOD, "SLACK_SIGNING_SECRET": secret})


def test_two_secrets_are_taken_while_one_is_being_changed() -> None:
    settings = bot_settings({**GOOD, "SLACK_SIGNING_SECRET": "new, old"})
    assert settings.signing_secrets == (b"new", b"old")


def test_only_this_machine_is_served_unless_a_platform_gives_a_port() -> None:
    settings = bot_settings(GOOD)
    assert (settings.host, settings.port) == ("127.0.0.1", 8080)
    settings = bot_settings({**GOOD, "PORT": "5000"})
    assert (settings.host, settings.port) == ("0.0.0.0", 5000)
    settings = bot_settings({**GOOD, "PORT": "5000", "SIGNOFF_HOST": "::1", "SIGNOFF_PORT": "9"})
    assert (settings.host, settings.port) == ("::1", 9)


def test_no_secret_stands_in_a_representation_or_an_error() -> None:
    settings = bot_settings(GOOD)
    assert GOOD["SLACK_BOT_TOKEN"] not in repr(settings)
    assert GOOD["SLACK_SIGNING_SECRET"] not in repr(settings)
    with pytest.raises(SettingsInvalid) as refused:
        bot_settings({**GOOD, "SIGNOFF_PORT": "many", "SLACK_API_URL": "xoxb-in-the-wrong-place"})
    assert "xoxb" not in str(refused.value)
    assert len(refused.value.problems) == 2


def test_webhook_secrets_are_read_with_their_successors_and_none_is_no_door() -> None:
    settings = bot_settings(GOOD)
    assert (settings.resend_webhook_secrets, settings.postmark_webhook_credentials) == ((), ())
    settings = bot_settings(
        {
            **GOOD,
            "SIGNOFF_RESEND_WEBHOOK_SECRET": "whsec_bmV3, whsec_b2xkZXI=",
            "SIGNOFF_POSTMARK_WEBHOOK_CREDENTIAL": "signoff:new:er, signoff:old",
        }
    )
    secrets = [secret.get_secret_value() for secret in settings.resend_webhook_secrets]
    assert secrets == ["whsec_bmV3", "whsec_b2xkZXI="]
    pairs = [(u, word.get_secret_value()) for u, word in settings.postmark_webhook_credentials]
    assert pairs == [("signoff", "new:er"), ("signoff", "old")]
    assert not any(word in repr(settings) for word in ("bmV3", "b2xkZXI", "new:er", "old"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SIGNOFF_RESEND_WEBHOOK_SECRET", ""),
        ("SIGNOFF_RESEND_WEBHOOK_SECRET", " , "),
        ("SIGNOFF_RESEND_WEBHOOK_SECRET", "whsec_"),
        ("SIGNOFF_RESEND_WEBHOOK_SECRET", "bmV3"),
        ("SIGNOFF_RESEND_WEBHOOK_SECRET", "whsec_bmV3,whsec_hunter2"),
        ("SIGNOFF_POSTMARK_WEBHOOK_CREDENTIAL", ""),
        ("SIGNOFF_POSTMARK_WEBHOOK_CREDENTIAL", "hunter2"),
        ("SIGNOFF_POSTMARK_WEBHOOK_CREDENTIAL", "user:"),
        ("SIGNOFF_POSTMARK_WEBHOOK_CREDENTIAL", ":hunter2"),
    ],
)
def test_a_webhook_secret_that_verifies_nothing_is_refused_unrepeated(
    name: str, value: str
) -> None:
    with pytest.raises(SettingsInvalid, match=name) as refused:
        bot_settings({**GOOD, name: value})
    assert "hunter2" not in str(refused.value)
