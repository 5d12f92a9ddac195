"""Settings, read once from the environment and passed on as frozen values; units stand in the
names.

Every problem is named at once, with how to get what is missing.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import get_args

import platformdirs
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from executor.domain.lease import LeaseTerms
from executor.domain.policy import Policy
from executor.domain.policy_section import Misplaced

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
    sweep_seconds: float = Field(default=4.0, alias="SIGNOFF_SWEEP_SECONDS", gt=0, le=60)
    grace_seconds: float = Field(default=20.0, alias="SIGNOFF_GRACE_SECONDS", ge=0)
    model_timeout_seconds: float = Field(
        default=110.0, alias="SIGNOFF_MODEL_TIMEOUT_SECONDS", gt=0, le=3_600
    )

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
        raise PolicyInvalid("\n".join(_policy_problems(path, source, error))) from error


_IDS = (
    'Slack user ids such as "U0123ABCD", or "group:" and the id of a user group: "group:S0123ABCD"'
)
_MEMBERS = f"write {_IDS}"
_WHO = f'{_MEMBERS}, or "role:" and a role: "role:leads"'
_CHANNEL = 'write the id of a channel, such as "C0123ABCD": it stands at the bottom of its details'
_POLICY_REMEDIES: Mapping[str, str] = {
    "team": 'write the id of the workspace, such as "T0123ABCD"',
    "channel": _CHANNEL,
    "fallback_channel": _CHANNEL,
    "requesters": f'write "everyone", or a list of {_IDS}',
    "approvers": _MEMBERS,
    "editors": _MEMBERS,
    "operators": _MEMBERS,
    "members": _MEMBERS,
    "escalate_to": _MEMBERS,
    "agents": 'write a list of the Slack user ids of bots, such as ["U0123ABCD"]',
    "rules": "write each rule as a section of its own that begins with [[rules]]",
    "roles": "begin each role with [roles.leads], its name in small letters, and list its members",
    "servers": "begin each server with a name in small letters, such as [servers.billing]",
    "command": 'write a list, such as ["billing-mcp", "--stdio"]',
    "reads": 'write a list of names of tools, such as ["find_invoice"]',
    "tools": 'write a list of names, such as ["find_invoice", "refund"]',
    "timeout_seconds": "write whole seconds, 1 to 3600",
    "costs": 'write whole micro-dollars, 10000 is one cent, such as "email.send" = 400',
    "prices": 'begin each model with its name in quotes, such as [prices."gpt-4.1"]',
    "input_usd_per_million": "write dollars, such as 0.10",
    "output_usd_per_million": "write dollars, such as 0.40",
    "cache_read_usd_per_million": "write dollars, such as 0.10",
    "cache_write_usd_per_million": "write dollars, such as 0.10",
    "warn_at_percent": "write a whole number, 1 to 100",
    "max_active_runs": "write a whole number, at least 1",
    "max_queued_runs": "write a whole number, at least 1",
    "environment": 'write names of variables, such as ["BILLING_API_KEY"]',
    "token_from": 'write the name of a variable, such as "BILLING_TOKEN"',
    "url": 'write an address that begins with "https://"',
    "amount_above": "write a number, such as 100 or 99.95",
    "language_not_in": 'write language tags, such as ["en", "pt-BR"]',
}
_POLICY_REMEDIES_IN_RULES = {
    "approvers": _WHO,
    "name": 'give it a name, such as name = "to strangers"',
    "tools": 'write some of "close_ticket", "reopen_ticket" and "call_tool"; a rule names no tool '
    "of a server by itself",
}
_POLICY_REMEDIES_IN = {
    "rules": _POLICY_REMEDIES_IN_RULES,
    "budget": {"approvers": _WHO, "quorum": "write a whole number, 1 to 20"},
    "servers": {"requesters": _WHO},
}
"""What is said of a setting in these sections only."""


def _policy_problems(path: Path, source: str, error: ValidationError) -> list[str]:
    """Say each problem once, with its line and what to write instead."""
    lines: dict[tuple[int | str, ...], str] = {}
    for problem in error.errors(include_url=False):
        # What is not a name of ours is how pydantic names the branch of a choice.
        where = tuple(p for p in problem["loc"] if isinstance(p, int) or _NAME.fullmatch(p))
        cause = problem.get("ctx", {}).get("error")
        where = (*where, *cause.at) if isinstance(cause, Misplaced) else where
        if any(where[: len(known)] == known or known[: len(where)] == where for known in lines):
            continue
        # The line tells which of several is meant.
        named = ".".join(part for part in where if isinstance(part, str)) or "policy"
        lines[where] = f"{path}:{_line_of(source, where)}: {named}: {_told(problem, where)}"
    return list(lines.values())


def _told(problem: ErrorDetails, where: tuple[int | str, ...]) -> str:
    names = [part for part in where if isinstance(part, str)]
    name = names[-1] if names else ""
    section = names[0] if names else ""
    remedy = _POLICY_REMEDIES.get(name, _POLICY_REMEDIES.get(section, ""))
    own = _POLICY_REMEDIES_IN.get(section, {})
    remedy = own.get(name, _POLICY_REMEDIES.get(name, "") if section == "rules" else remedy)
    match problem["type"]:
        case "missing":
            what = "it is missing"
        case "extra_forbidden":
            near = get_close_matches(name, _settings_of(Policy) - {name}, n=1)
            remedy = f"did you mean {near[0]}?" if near else "leave it out"
            what = "there is no such setting here"
        case "too_short":
            what = "it is empty"
        case "string_pattern_mismatch" | "tuple_type" | "literal_error" if remedy:
            given = problem["input"]
            what = (
                f"{given[:80]!r} cannot stand here" if isinstance(given, str) else "it does not fit"
            )
        case "value_error":
            return problem["msg"].removeprefix("Value error, ")
        case _:
            what = problem["msg"]
    return f"{what}; {remedy}" if remedy else what


def _settings_of(section: type[BaseModel]) -> set[str]:
    """Name every setting of a section, and of those within it."""
    names: set[str] = set()
    for name, setting in section.model_fields.items():
        names.add(setting.alias or name)
        within = (setting.annotation, *get_args(setting.annotation))
        for kind in within:
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                names |= _settings_of(kind)
    return names


_NAME = re.compile(r"[A-Za-z0-9_.:/-]+")
_HEADER = re.compile(r"(\[\[?)\s*([^\[\]]+?)\s*\]\]?\s*(?:#.*)?")
_KEY = re.compile(r"([A-Za-z0-9_.:/\s\"'-]+?)\s*=")
_PART = re.compile(r"\"[^\"]*\"|'[^']*'|[^.\"']+")


def _line_of(source: str, location: tuple[int | str, ...]) -> int:
    """Find the line that an error is about: its key, or else the table that it is in, or the top.

    Of an array of tables, the one that is meant.
    """
    table: tuple[int | str, ...] = ()
    counts: Counter[tuple[int | str, ...]] = Counter()
    found, depth = 1, 0
    for number, line in enumerate(source.splitlines(), start=1):
        header, key = _HEADER.fullmatch(line.strip()), _KEY.match(line.strip())
        if header is not None:
            table = _parts(header[2])
            if header[1] == "[[":
                counts[table] += 1
                table = (*table, counts[table] - 1)
            here = table
        elif key is not None:
            here = (*table, *_parts(key[1]))
        else:
            continue
        shared = min(len(here), len(location))
        if shared > depth and location[:shared] == here[:shared]:
            found, depth = number, shared
    return found


def _parts(dotted: str) -> tuple[str, ...]:
    """Split a dotted name of TOML."""
    return tuple(part.strip().strip("\"'") for part in _PART.findall(dotted))
