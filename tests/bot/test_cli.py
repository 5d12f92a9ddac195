"""The ``signoff`` command: its help, its errors, which say what to do, and the desk's commands."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from bot.cli import main
from bot.commands.manifest import BOT_SCOPES, slack_manifest
from bot.event_names import GROUP_EVENTS, PEOPLE_EVENTS
from bot.policy_example import policy_example
from bot.sandbox import seed
from bot.sandbox.crash_points import CRASH_PLANS, UNREACHED
from bot.sandbox.demo_policy import demo_policy
from bot.sandbox.web_api import METHODS
from executor.domain.policy import Policy
from executor.engine.failpoint import ALL_POINTS

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = ("demo", "doubt", "explain", "grants", "manifest", "migrate", "policy", "tickets", "up")
URL = "https://signoff.example.com"
TICKET = {
    "id": "4201",
    "subject": "Double charge",
    "language": "en",
    "customer": {"name": "Pat Neil", "email": "pat@cust.example"},
    "messages": [{"kind": "customer", "author": "Pat Neil", "body": "I was charged twice."}],
}


def run(*arguments: str, env: dict[str, str | None] | None = None, stdin: str = "") -> Result:
    return CliRunner().invoke(main, list(arguments), env=env, input=stdin)


@pytest.fixture
def policy_file(tmp_path: Path) -> Path:
    file = tmp_path / "policy.toml"
    file.write_text(demo_policy(), encoding="utf-8")
    return file


class Desk:
    """The command on a database of its own."""

    def __init__(self, url: str, policy_file: Path) -> None:
        self._env: dict[str, str | None] = {
            "DATABASE_URL": url,
            "SIGNOFF_POLICY": str(policy_file),
        }

    async def run(self, *arguments: str, stdin: str = "") -> Result:
        # The command has a loop of its own.
        return await asyncio.to_thread(run, *arguments, env=self._env, stdin=stdin)

    async def json(self, *arguments: str, stdin: str = "") -> Any:
        result = await self.run(*arguments, "--json", stdin=stdin)
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)


@pytest.fixture
def desk(database_url: str, policy_file: Path) -> Desk:
    return Desk(database_url, policy_file)


def test_the_installed_command_is_this_one() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert EntryPoint("signoff", project["scripts"]["signoff"], "console_scripts").load() is main


def test_the_version_is_told_whether_installed_or_not() -> None:
    result = run("--version")
    assert result.exit_code == 0
    assert result.stdout.startswith("signoff ")


def test_help_names_every_command_and_where_to_start() -> None:
    result = run("--help")
    assert result.exit_code == 0
    assert all(f"  {name} " in result.stdout for name in COMMANDS)
    assert "signoff demo" in result.stdout
    listed = result.stdout.partition("Commands:")[2]
    assert "..." not in listed, "a summary was cut off"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str) -> None:
    result = run(command, "-h")
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) > 5


def test_help_imports_nothing_that_is_slow() -> None:
    slow = ("sqlalchemy", "pydantic", "aiohttp", "slack_bolt", "slack_sdk", "aiosmtpd", "jinja2")
    script = (
        "import sys\nfrom click.testing import CliRunner\nfrom bot.cli import main\n"
        "assert CliRunner().invoke(main, ['--help']).exit_code == 0\n"
        f"print([name for name in {slow!r} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_an_unknown_command_is_a_wrong_command_line() -> None:
    result = run("dmeo")
    assert result.exit_code == 2
    assert "dmeo" in result.stderr


# up


def test_up_names_everything_that_is_missing_at_once_and_how_to_get_it() -> None:
    result = run("up")
    assert result.exit_code == 78
    for name, remedy in (
        ("SLACK_BOT_TOKEN", "OAuth & Permissions"),
        ("SLACK_SIGNING_SECRET", "Basic Information"),
        ("SIGNOFF_POLICY", "policy file"),
    ):
        assert result.stderr.count(f"{name} is missing") == 1
        assert remedy in result.stderr
    for provider in ("SMTP_URL", "RESEND_API_KEY", "POSTMARK_SERVER_TOKEN"):
        assert result.stderr.count(f"set {provider} to") == 1


def test_up_names_what_is_wrong_and_never_repeats_a_secret(policy_file: Path) -> None:
    result = run(
        "up",
        env={
            "SLACK_BOT_TOKEN": "xoxb-very-secret",
            "SLACK_SIGNING_SECRET": ",",
            "SIGNOFF_POLICY": str(policy_file),
            "SMTP_URL": "http://user:hunter2@mail.example",
            "SIGNOFF_LEASE_TTL_SECONDS": "-3",
        },
    )
    assert result.exit_code == 78
    assert "SLACK_SIGNING_SECRET" in result.stderr
    assert "SIGNOFF_LEASE_TTL_SECONDS" in result.stderr
    assert "hunter2" not in result.stderr
    assert "very-secret" not in result.stderr


def test_up_says_where_the_policy_file_is_wrong(tmp_path: Path) -> None:
    broken = tmp_path / "policy.toml"
    broken.write_text(demo_policy().replace("quorum = 1 ", "quorum = 9 "), encoding="utf-8")
    result = run(
        "up",
        env={
            "SLACK_BOT_TOKEN": "xoxb-1",
            "SLACK_SIGNING_SECRET": "secret",
            "SIGNOFF_POLICY": str(broken),
            "SMTP_URL": "smtp://127.0.0.1:25",
        },
    )
    assert result.exit_code == 78
    assert str(broken) in result.stderr
    assert "approvers" in result.stderr


# manifest and policy


def test_the_manifest_asks_for_what_the_bot_uses_and_no_more() -> None:
    result = run("manifest", "--url", f"{URL}/")
    assert result.exit_code == 0
    manifest = json.loads(result.stdout)
    assert manifest == slack_manifest(URL)
    assert manifest["oauth_config"]["scopes"]["bot"] == sorted(BOT_SCOPES)
    assert not {"chat:write.public", "chat:write.customize"} & set(BOT_SCOPES)
    # The sandbox grants what the manifest asks for, so that a missing scope fails in the demo.
    assert set(BOT_SCOPES) <= seed.SCOPES
    asked_at = {
        manifest["features"]["slash_commands"][0]["url"],
        manifest["settings"]["event_subscriptions"]["request_url"],
        manifest["settings"]["interactivity"]["request_url"],
    }
    assert asked_at == {f"{URL}/slack/events"}
    assert manifest["settings"]["interactivity"]["is_enabled"] is True
    heard = manifest["settings"]["event_subscriptions"]["bot_events"]
    assert {"app_mention", *PEOPLE_EVENTS, *GROUP_EVENTS} <= set(heard)
    assert len(heard) == len(set(heard))


def test_the_manifest_asks_for_the_scope_of_every_method_that_the_bot_calls() -> None:
    source = "".join(path.read_text() for path in (ROOT / "bot").glob("*.py"))
    called = {name for name in METHODS if f"client.{name.replace('.', '_')}" in source}
    assert {"chat.postMessage", "users.info", "usergroups.users.list"} <= called
    needed = {
        scope.format(kind=kind)
        for name in called
        if (scope := METHODS[name].scope) is not None
        for kind in ("channels", "groups")
    }
    assert needed <= set(BOT_SCOPES)


def test_the_manifest_keeps_slacks_limits() -> None:
    manifest: Any = slack_manifest(URL)
    assert len(manifest["display_information"]["name"]) <= 35
    assert len(manifest["display_information"]["description"]) <= 140
    assert len(manifest["features"]["bot_user"]["display_name"]) <= 80
    [command] = manifest["features"]["slash_commands"]
    assert command["command"].startswith("/")
    assert 2 <= len(command["command"]) <= 32
    assert len(command["description"]) <= 2_000
    assert len(command["usage_hint"]) <= 1_000


@pytest.mark.parametrize(
    "url", ["http://signoff.example.com", "signoff.example.com", "https://", f"{URL}/slack/events"]
)
def test_an_address_that_slack_could_not_use_is_refused(url: str) -> None:
    result = run("manifest", "--url", url)
    assert result.exit_code == 2
    assert "https" in result.stderr or "leave" in result.stderr


def test_the_example_policy_is_a_valid_one_and_the_demos_comes_from_it() -> None:
    result = run("policy", "example")
    assert result.exit_code == 0
    assert result.stdout == policy_example()
    Policy.model_validate(tomllib.loads(result.stdout))
    demo = Policy.model_validate(tomllib.loads(demo_policy(decide_within_seconds=2)))
    assert demo.tenant_id == seed.team().id
    assert demo.approval.decide_within_seconds == 2
    assert demo.slack.channel in {channel.id for channel in seed.channels()}
    assert set(demo.people.approvers) <= {user.id for user in seed.users()}


# demo


def test_the_failpoints_are_listed_with_the_program_that_reaches_them() -> None:
    plans = json.loads(run("demo", "--list-failpoints", "--json").stdout)
    assert [plan["point"] for plan in plans] == [
        point for point in ALL_POINTS if point.rpartition(".")[0] not in {*map(str, UNREACHED)}
    ]
    assert {plan["process"] for plan in plans} == {"bot", "executor"}
    assert {p["point"] for p in plans if p["in_doubt"]} >= {"open.after", "report.before"}
    listed = run("demo", "--list-failpoints").stdout.splitlines()
    assert len(listed) == len(CRASH_PLANS)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--once", "--crash", "nowhere"), "--list-failpoints"),
        (("--reject",), "--once"),
        (("--json",), "--once"),
        (("--once", "--stale", "--crash", "cancel.after"), "--stale"),
        (("--once", "--timeout", "0"), "--timeout"),
    ],
)
def test_a_wrong_use_of_the_demo_says_what_is_right(arguments: tuple[str, ...], said: str) -> None:
    result = run("demo", *arguments)
    assert result.exit_code == 2
    assert said in result.stderr


# migrate


async def test_migrate_moves_an_empty_database_once(
    empty_database_url: str, policy_file: Path
) -> None:
    desk = Desk(empty_database_url, policy_file)
    refused = await desk.run("tickets", "show")
    assert refused.exit_code == 78
    assert "signoff migrate" in refused.stderr
    applied = await desk.json("migrate")
    assert applied["applied"][0].startswith("0001_")
    assert (await desk.run("migrate")).stdout == "The database is up to date.\n"
    assert (await desk.run("tickets", "show")).exit_code == 0


async def test_a_database_that_is_away_is_named_as_such(policy_file: Path) -> None:
    desk = Desk("postgresql://nobody@127.0.0.1:1/none", policy_file)
    result = await desk.run("migrate")
    assert result.exit_code == 1
    assert "DATABASE_URL" in result.stderr
    wrong = await Desk("mysql://nobody@127.0.0.1/none", policy_file).run("migrate")
    assert wrong.exit_code == 78
    assert "PostgreSQL" in wrong.stderr


# tickets


async def test_tickets_are_imported_shown_answered_and_reopened(desk: Desk, tmp_path: Path) -> None:
    file = tmp_path / "tickets.jsonl"
    file.write_text(json.dumps(TICKET) + "\n", encoding="utf-8")
    imported = await desk.json("tickets", "import", str(file))
    assert imported == [{"id": "4201", "result": "imported", "version": 1}]
    again = await desk.json("tickets", "import", str(file))
    assert again == [{"id": "4201", "result": "known", "version": 1}]
    answered = await desk.json("tickets", "reply", "4201", "It is refunded.", "--author", "Mia")
    assert answered == {"id": "4201", "version": 2, "reopened": False}
    written = await desk.json("tickets", "reply", "4201", "Thank you!", "--as-customer")
    assert written["version"] == 3
    shown = await desk.json("tickets", "show", "4201")
    assert [change["author"] for change in shown["conversation"]] == ["Pat Neil", "Mia", "Pat Neil"]
    assert "open already" in (await desk.run("tickets", "reopen", "4201")).stdout
    listed = await desk.run("tickets", "show")
    assert "4201" in listed.stdout
    assert "Double charge" in listed.stdout
    assert "Thank you!" in (await desk.run("tickets", "show", "4201")).stdout


async def test_a_closed_ticket_is_reopened(desk: Desk) -> None:
    closed = json.dumps(TICKET | {"status": "closed"})
    await desk.json("tickets", "import", "-", stdin=closed)
    assert (await desk.json("tickets", "reopen", "4201"))["reopened"] is True


async def test_a_ticket_is_added_and_its_id_is_not_given_twice(desk: Desk) -> None:
    add = ("tickets", "add", "77", "--subject", "Hello", "--name", "Ann", "--body", "Hi")
    assert (await desk.run(*add, "--email", "ann@cust.example")).exit_code == 0
    taken = await desk.run(*add, "--email", "other@cust.example")
    assert taken.exit_code == 1
    assert "customer.email" in taken.stdout
    assert "other ids" in taken.stderr


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "line 2"),
        (json.dumps(TICKET | {"customer": {"name": "P", "email": "no address"}}), "customer.email"),
        (json.dumps(TICKET), "line 1"),
    ],
)
async def test_a_line_that_cannot_be_imported_is_named(desk: Desk, line: str, said: str) -> None:
    lines = f"{json.dumps(TICKET)}\n{line}\n"
    result = await desk.run("tickets", "import", "-", stdin=lines)
    assert result.exit_code == 1
    assert "line 2" in result.stderr
    assert said in result.stderr
    # Nothing of a file that cannot be read is imported.
    assert await desk.json("tickets", "show") == []


async def test_what_is_not_there_is_named(desk: Desk) -> None:
    for arguments in (("show", "9"), ("reply", "9", "Hello"), ("reopen", "9")):
        result = await desk.run("tickets", *arguments)
        assert result.exit_code == 1
        assert "no ticket 9" in result.stderr


def test_tickets_without_a_policy_say_where_to_get_one() -> None:
    result = run("tickets", "show")
    assert result.exit_code == 78
    assert "signoff policy example" in result.stderr
