"""The web process's settings, read once from the environment; every problem is named at once."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pydantic import Field, SecretStr, ValidationError, field_validator

from executor.config import POLICY_HELP, Settings, SettingsInvalid, problems_of

SLACK_API_URL = "https://slack.com/api/"

HELP: Mapping[str, str] = {
    "SIGNOFF_POLICY": POLICY_HELP,
    "SLACK_BOT_TOKEN": (
        "install the app into your workspace, then copy the Bot User OAuth Token (xoxb-…) from "
        "OAuth & Permissions on api.slack.com/apps"
    ),
    "SLACK_SIGNING_SECRET": (
        "copy the Signing Secret from Basic Information on api.slack.com/apps; while it is being "
        "changed, write the new and the old one with a comma between"
    ),
    "SIGNOFF_SEALING_KEY": (
        "print one with `signoff second-factor key`; while it is being changed, write the new and "
        "the old one with a comma between"
    ),
    "SIGNOFF_PUBLIC_URL": "write the address at which people's browsers reach this process",
    "SIGNOFF_RESEND_WEBHOOK_SECRET": (
        "copy the Signing Secret (whsec_…) of the webhook at resend.com/webhooks; while it is "
        "being changed, write the new and the old one with a comma between"
    ),
    "SIGNOFF_POSTMARK_WEBHOOK_CREDENTIAL": (
        "write user:password as they stand in the webhook's URL at Postmark; while they are being "
        "changed, write the new and the old pair with a comma between"
    ),
}
_SEALING_KEY = re.compile(r"[A-Za-z0-9_-]{43}=")
_RESEND_SECRET = re.compile(r"whsec_(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")


class BotSettings(Settings):
    """What the web process needs beside what every process needs."""

    slack_bot_token: SecretStr = Field(alias="SLACK_BOT_TOKEN", min_length=1)
    slack_signing_secret: SecretStr = Field(alias="SLACK_SIGNING_SECRET")
    slack_api_url: str = Field(default=SLACK_API_URL, alias="SLACK_API_URL", pattern=r"^https?://")
    resend_webhook_secret: SecretStr | None = Field(
        default=None, alias="SIGNOFF_RESEND_WEBHOOK_SECRET"
    )
    postmark_webhook_credential: SecretStr | None = Field(
        default=None, alias="SIGNOFF_POSTMARK_WEBHOOK_CREDENTIAL"
    )
    host: str = Field(default="127.0.0.1", alias="SIGNOFF_HOST", min_length=1)
    outbox_lease_seconds: float = Field(
        default=30.0, alias="SIGNOFF_OUTBOX_LEASE_SECONDS", gt=0, le=600
    )
    slack_pace: float = Field(default=1.0, alias="SIGNOFF_SLACK_PACE", gt=0, le=100)
    public_url: str | None = Field(
        default=None, alias="SIGNOFF_PUBLIC_URL", pattern=r"^https?://[^/\s]+[^\s]*$"
    )
    sealing_key: SecretStr | None = Field(default=None, alias="SIGNOFF_SEALING_KEY")
    port: int = Field(default=8080, alias="SIGNOFF_PORT", ge=0, le=65_535)

    @field_validator("slack_signing_secret")
    @classmethod
    def _somebody_can_sign(cls, value: SecretStr) -> SecretStr:
        if not _parts(value):
            raise ValueError("is empty, so nothing could be verified")
        return value

    @field_validator("resend_webhook_secret")
    @classmethod
    def _resend_can_sign(cls, value: SecretStr) -> SecretStr:
        parts = _parts(value)
        if not parts or not all(_RESEND_SECRET.fullmatch(p) and p != "whsec_" for p in parts):
            raise ValueError("is not whsec_ and base64, so nothing could be verified")
        return value

    @field_validator("postmark_webhook_credential")
    @classmethod
    def _postmark_can_log_in(cls, value: SecretStr) -> SecretStr:
        pairs = [part.partition(":") for part in _parts(value)]
        if not pairs or not all(user and password for user, _, password in pairs):
            raise ValueError("is not user:password, so nothing could be verified")
        return value

    @field_validator("sealing_key")
    @classmethod
    def _something_can_be_sealed(cls, value: SecretStr) -> SecretStr:
        parts = _parts(value)
        if not parts or not all(_SEALING_KEY.fullmatch(part) for part in parts):
            raise ValueError("is not 32 bytes in URL-safe base64, so nothing could be sealed")
        return value

    @property
    def sealing_keys(self) -> tuple[str, ...]:
        """The keys of the seals on second factors, the newest first; none: there are none."""
        return tuple(_parts(self.sealing_key))

    @property
    def signing_secrets(self) -> tuple[bytes, ...]:
        """The secrets that requests may be signed with: one, or two while it is being changed."""
        return tuple(part.encode() for part in _parts(self.slack_signing_secret))

    @property
    def resend_webhook_secrets(self) -> tuple[SecretStr, ...]:
        """The secrets that Resend's webhooks may be signed with; none: it has no door here."""
        return tuple(SecretStr(part) for part in _parts(self.resend_webhook_secret))

    @property
    def postmark_webhook_credentials(self) -> tuple[tuple[str, SecretStr], ...]:
        """The users and passwords that Postmark may come with; none: it has no door here."""
        pairs = [part.partition(":") for part in _parts(self.postmark_webhook_credential)]
        return tuple((user, SecretStr(password)) for user, _, password in pairs)

    @property
    def base_url(self) -> str:
        """Slack's address as the SDK wants it, with a slash at its end."""
        return self.slack_api_url.rstrip("/") + "/"


def bot_settings(environ: Mapping[str, str]) -> BotSettings:
    """Read the settings; raises ``SettingsInvalid``. A platform's own ``PORT`` is honoured."""
    given = dict(environ)
    if "PORT" in given and "SIGNOFF_PORT" not in given:
        given["SIGNOFF_PORT"] = given["PORT"]
        # A platform that gives a port reaches us from outside.
        given.setdefault("SIGNOFF_HOST", "0.0.0.0")  # noqa: S104
    try:
        return BotSettings.model_validate(given)
    except ValidationError as error:
        raise SettingsInvalid(problems_of(error, HELP)) from error


def _parts(value: SecretStr | None) -> list[str]:
    """Split a setting that may hold several values while one is being changed."""
    given = "" if value is None else value.get_secret_value()
    return [part.strip() for part in given.split(",") if part.strip()]
