"""The web process's settings, read once from the environment; every problem is named at once."""

from __future__ import annotations

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
}


class BotSettings(Settings):
    """What the web process needs beside what every process needs."""

    slack_bot_token: SecretStr = Field(alias="SLACK_BOT_TOKEN", min_length=1)
    slack_signing_secret: SecretStr = Field(alias="SLACK_SIGNING_SECRET")
    slack_api_url: str = Field(default=SLACK_API_URL, alias="SLACK_API_URL", pattern=r"^https?://")
    host: str = Field(default="127.0.0.1", alias="SIGNOFF_HOST", min_length=1)
    outbox_lease_seconds: float = Field(
        default=30.0, alias="SIGNOFF_OUTBOX_LEASE_SECONDS", gt=0, le=600
    )
    port: int = Field(default=8080, alias="SIGNOFF_PORT", ge=0, le=65_535)

    @field_validator("slack_signing_secret")
    @classmethod
    def _somebody_can_sign(cls, value: SecretStr) -> SecretStr:
        if not any(part.strip() for part in value.get_secret_value().split(",")):
            raise ValueError("is empty, so nothing could be verified")
        return value

    @property
    def signing_secrets(self) -> tuple[bytes, ...]:
        """The secrets that requests may be signed with: one, or two while it is being changed."""
        parts = self.slack_signing_secret.get_secret_value().split(",")
        return tuple(part.strip().encode() for part in parts if part.strip())

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
