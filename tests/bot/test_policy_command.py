"""``signoff policy``: a file is checked and told before anything is started with it."""

from __future__ import annotations

import asyncio
import re
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bot.cli import main
from bot.commands.failing import CANNOT_START
from bot.policy_example import policy_example
from bot.sandbox.faults import Fault
from bot.sandbox.slack_server import SlackServer
from bot.sandbox.workspace import Workspace


def run(*arguments: str, **environ: str) -> Result:
    return CliRunner().invoke(main, ["policy", *arguments], env={"SIGNOFF_POLICY": None, **environ})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "policy.toml"
    path.write_text(policy_example())
    return path


def test_the_example_can_be_used_and_its_version_is_named(file: Path) -> None:
    said = run("check", str(file))
    assert said.exit_code == 0
    assert re.search(r"version is [0-9a-f]{16}\.", said.output)
    assert run("check", SIGNOFF_POLICY=str(file)).output == said.output


@pytest.mark.parametrize(
    ("line", "instead", "told"),
    [
        ("quorum = 1 ", "quorum = 0 ", "approval.quorum"),
        ("timezone = ", 'timezone = "Mars/Olympus" # ', "Europe/Amsterdam"),
        ("from = ", 'from = "Acme Support" # ', "email.from"),
        ("when_mail_is_not_sent = ", 'when_mail_is_not_sent = "perhaps" # ', "'leave'"),
        ("signature = ", 'signatur = "x" #', "email.signatur"),
    ],
)
def test_what_is_wrong_is_named_with_its_line_and_the_remedy(
    file: Path, line: str, instead: str, told: str
) -> None:
    source = policy_example().replace(line, instead, 1)
    file.write_text(source)
    number = 1 + next(n for n, text in enumerate(source.splitlines()) if instead in text)
    for command in ("check", "explain"):
        said = run(command, str(file))
        assert said.exit_code == CANNOT_START
        assert f"policy.toml:{number}: " in said.stderr
        assert told in said.stderr


def test_without_a_file_it_says_how_to_name_one(file: Path) -> None:
    assert "SIGNOFF_POLICY" in run("check").stderr
    missing = run("check", str(file.parent / "none.toml"))
    assert missing.exit_code == CANNOT_START
    assert "cannot be read" in missing.stderr


def test_what_a_policy_says_can_be_read_in_sentences(file: Path) -> None:
    said = run("explain", str(file)).output
    assert "Every full member of the workspace may ask." in said
    assert "U0123ABCD, U0456EFGH may decide. One of them has to approve." in said
    assert "There is 1 d to decide" in said
    assert "One run may cost $2.00" in said
    assert "people are asked whether it is opened again" in said
    file.write_text(policy_example().replace("quorum = 1 ", "quorum = 2 "))
    assert "2 of them have to approve." in run("explain", str(file)).output


async def test_a_check_asks_slack_who_is_in_the_groups_that_a_policy_names(file: Path) -> None:
    named = policy_example().replace('"U0456EFGH"', '"group:S0REVIEWERS", "group:S0GONE"')
    assert "group:S0GONE" in named
    file.write_text(named)
    unasked = run("check", str(file), SLACK_BOT_TOKEN="")
    assert "Set SLACK_BOT_TOKEN" in unasked.output
    async with SlackServer(Workspace.seeded()) as slack:
        asked = partial(
            run,
            "check",
            str(file),
            SLACK_BOT_TOKEN=slack.workspace.bot_token,
            SLACK_API_URL=slack.api_url,
        )
        said = await asyncio.to_thread(asked)
        assert said.exit_code == 0
        assert "User group S0REVIEWERS has 2 members." in said.output
        assert "in user group S0GONE: Slack says no_such_subteam" in said.output
        slack.faults.add("usergroups.users.list", fault=Fault.RATE_LIMITED)
        assert "Slack says ratelimited" in (await asyncio.to_thread(asked)).output
