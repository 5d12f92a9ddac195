"""Settings, read once from the environment and passed on as frozen values; units stand in the
names.

Every problem is named at once, with how to get what is missing.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

import platformdirs
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from executor.domain.lease import LeaseTerms
from executor.domain.policy import Policy

POLICY_HELP = "set SIGNOFF_POLICY to the path of your policy file (see the README, Settings)"


class SettingsInvalid(Exception):
    """Settings are missing or wrong; ``problems`` names all of them, each with its remedy."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class Settings(BaseModel):
    """What every process of Signoff needs.

    ``database_url`` is ``None`` for the private PostgreSQL in ``home``.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)

    database_url: str | None = Field(default=None, alias="DATABASE_URL", min_length=1)
    home: Path = Field(
        default_factory=lambda: Path(platformdirs.user_data_dir("signoff")), alias="SIGNOFF_HOME"
    )
    policy_path: Path = Field(alias="SIGNOFF_POLICY")
    failpoint: str | None = Field(default=None, alias="SIGNOFF_FAILPOINT", min_length=1)
    log_level: str = Field(
        default="INFO", alias="SIGNOFF_LOG_LEVEL", pattern=r"^(DEBUG|INFO|WARNING|ERROR)$"
    )
    pool_size: int = Field(default=8, alias="SIGNOFF_POOL_SIZE", ge=2, le=200)


class ExecutorSettings(Settings):
    """What the worker process needs beside that, its mail provider and its ticket desk.

    Durations are in seconds.
    """

    lease_ttl_seconds: float = Field(default=30.0, alias="SIGNOFF_LEASE_TTL_SECONDS", gt=0)
    lease_margin_seconds: float = Field(default=5.0, alias="SIGNOFF_LEASE_MARGIN_SECONDS", gt=0)
    heartbeat_seconds: float = Field(default=8.0, alias="SIGNOFF_HEARTBEAT_SECONDS", gt=0)
    first_byte_seconds: float = Field(default=10.0, alias="SIGNOFF_FIRST_BYTE_SECONDS", gt=0)
    clock_allowance_seconds: float = Field(
        default=5.0, alias="SIGNOFF_CLOCK_ALLOWANCE_SECONDS", gt=0
    )
    retry_seconds: float = Field(default=5.0, alias="SIGNOFF_RETRY_SECONDS", gt=0)
    sweep_seconds: float = Field(default=5.0, alias="SIGNOFF_SWEEP_SECONDS", gt=0, le=60)
    grace_seconds: float = Field(default=20.0, alias="SIGNOFF_GRACE_SECONDS", ge=0)

    @model_validator(mode="after")
    def _durations_fit_each_other(self) -> ExecutorSettings:
        LeaseTerms(self.lease_ttl_seconds, self.lease_margin_seconds, self.heartbeat_seconds)
        if self.first_byte_seconds >= self.lease_ttl_seconds:
            raise ValueError(
                "SIGNOFF_FIRST_BYTE_SECONDS must be shorter than SIGNOFF_LEASE_TTL_SECONDS"
            )
        return self


HELP: Mapping[str, str] = {"SIGNOFF_POLICY": POLICY_HELP}


def executor_settings(environ: Mapping[str, str]) -> ExecutorSettings:
    """Read the worker's settings; raises ``SettingsInvalid`` naming every problem at once."""
    try:
        return ExecutorSettings.model_validate(dict(environ))
    except ValidationError as error:
        raise SettingsInvalid(problems_of(error, HELP)) from error


def problems_of(error: ValidationError, remedies: Mapping[str, str]) -> list[str]:
    """Say each problem of a settings model in one line, with its remedy; never repeats a value."""
    lines = []
    for problem in error.errors(include_url=False, include_input=False):
        name = str(problem["loc"][0]) if problem["loc"] else "settings"
        what = "is missing" if problem["type"] == "missing" else problem["msg"]
        remedy = remedies.get(name)
        lines.append(f"{name} {what}" + (f": {remedy}" if remedy else ""))
    return lines


class PolicyInvalid(Exception):
    """The policy file cannot be used; the message names each line and its remedy."""


def load_policy(path: Path) -> Policy:
    """Read and check the policy file; raises ``PolicyInvalid``."""
    try:
        source = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PolicyInvalid(f"{path} cannot be read ({error}); {POLICY_HELP}") from error
    try:
        document = tomllib.loads(source)
    except tomllib.TOMLDecodeError as error:
        raise PolicyInvalid(f"{path} is not valid TOML: {error}") from error
    try:
        return Policy.model_validate(document)
    except ValidationError as error:
        problems = [
            f"{path}:{_line_of(source, problem['loc'])}: "
            f"{'.'.join(str(part) for part in problem['loc']) or 'policy'}: {problem['msg']}"
            for problem in error.errors(include_url=False)
        ]
        raise PolicyInvalid("\n".join(problems)) from error


def _line_of(source: str, location: tuple[int | str, ...]) -> int:
    """Find the line that an error is about: its key inside its table, or the table, or the top."""
    names = [part for part in location if isinstance(part, str)]
    lines = source.splitlines()
    found, inside = 1, len(names) < 2
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if names and text == f"[{names[0]}]":
            found, inside = number, True
        elif text.startswith("["):
            inside = False
        elif inside and names and text.split("=")[0].strip() == names[-1]:
            return number
    return found
