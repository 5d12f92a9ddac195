"""``signoff doubt`` and ``signoff explain``: what is in doubt, an operator's word, and why."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bot.cli import main
from executor.domain.ids import OperationId
from executor.domain.transition import Reason
from executor.store.database import Database
from tests.support import invariants
from tests.support.fake_mail import applied, unknown
from tests.support.office import TEAM, Office

POLICY = f"""
[slack]
team = "{TEAM}"
channel = "C0APPROVALS"
[people]
requesters = "everyone"
approvers = ["U0REVIEWER"]
[email]
from = "Acme Support <support@acme.example>"
"""


class Operator:
    """The command line of one operator, and the office it looks into."""

    def __init__(self, office: Office, url: str, policy_file: Path) -> None:
        self.office = office
        self._env: dict[str, str | None] = {
            "DATABASE_URL": url,
            "SIGNOFF_POLICY": str(policy_file),
        }

    async def run(self, *arguments: str) -> Result:
        # The command has a loop of its own.
        return await asyncio.to_thread(CliRunner().invoke, main, list(arguments), env=self._env)

    async def in_doubt(self, ticket: str = "4101") -> OperationId:
        """Walk to an operation of which nobody knows whether it was done."""
        claimed, opened = await self.office.opened(ticket)
        await self.office.report(claimed, opened, unknown())
        return claimed.claim.key[1]


@pytest.fixture
async def operator(
    database: Database, database_url: str, tmp_path: Path
) -> AsyncIterator[Operator]:
    file = tmp_path / "policy.toml"
    file.write_text(POLICY, encoding="utf-8")
    yield Operator(await Office.open(database), database_url, file)
    await invariants.check(database)


async def test_nothing_in_doubt_is_a_success(operator: Operator) -> None:
    result = await operator.run("doubt")
    assert (result.exit_code, result.stdout) == (0, "Nothing is in doubt.\n")
    result = await operator.run("doubt", "--json")
    assert (result.exit_code, json.loads(result.stdout)) == (0, [])


async def test_everything_in_doubt_is_listed_the_oldest_first(operator: Operator) -> None:
    await operator.in_doubt("4102")
    await operator.office.later(hours=3)
    await operator.in_doubt("4101")
    result = await operator.run("doubt", "--json")
    assert result.exit_code == 1
    oldest, newest = json.loads(result.stdout)
    assert (oldest["operation"], oldest["ticket"], newest["ticket"]) == ("op_1", "4102", "4101")
    assert oldest["age_seconds"] >= 3 * 3_600 > newest["age_seconds"]
    assert oldest["recover_at"] is None
    assert "a person has to say" in oldest["next_action"]
    [attempt] = oldest["attempts"]
    assert (attempt["status"], attempt["evidence"]["phase"]) == ("unknown", "content")
    shown = (await operator.run("doubt")).stdout
    assert shown.index("op_1 of run_1, ticket 4102") < shown.index("op_2 of run_2, ticket 4101")


async def test_one_in_doubt_is_shown_with_its_evidence(operator: Operator) -> None:
    await operator.in_doubt()
    result = await operator.run("doubt", "show", "op_1")
    assert result.exit_code == 0
    assert "phase: content" in result.stdout
    assert "may be on its way until" in result.stdout
    missing = await operator.run("doubt", "show", "op_9")
    assert missing.exit_code == 1
    assert "op_9 is not in doubt" in missing.stderr


@pytest.mark.parametrize(
    ("word", "status"), [("sent", "succeeded"), ("not-sent", "partial"), ("leave", "unknown")]
)
async def test_an_operators_word_is_recorded_with_name_and_note(
    operator: Operator, word: str, status: str
) -> None:
    operation = await operator.in_doubt()
    result = await operator.run(
        "doubt", "settle", "op_1", "--word", word, "--by", "Olga", "--note", "Asked the host."
    )
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(f"Recorded ({word}). op_1: ")
    assert await operator.office.status(operation) == status
    notes = await operator.office.rows(
        "SELECT actor, detail ->> 'note' FROM journal WHERE event = 'word_given'"
    )
    assert notes == [("operator:Olga", "Asked the host.")]
    assert (await operator.run("doubt")).exit_code == (1 if word == "leave" else 0)


async def test_what_is_not_in_doubt_cannot_be_settled(operator: Operator) -> None:
    claimed, opened = await operator.office.opened()
    await operator.office.report(claimed, opened, applied())
    settle = ("doubt", "settle", "op_1", "--word", "sent", "--note", "x", "--by")
    result = await operator.run(*settle, "Olga")
    assert result.exit_code == 1
    assert "op_1 is not in doubt" in result.stderr
    assert (await operator.run(*settle, " ")).exit_code == 2


async def test_the_command_line_cannot_have_anything_sent(operator: Operator) -> None:
    await operator.in_doubt()
    result = await operator.run(
        "doubt", "settle", "op_1", "--word", "send-again", "--by", "Olga", "--note", "x"
    )
    assert result.exit_code == 2


@pytest.mark.parametrize("command", ["explain", "doubt show"])
async def test_a_name_that_is_no_operation_is_a_wrong_command_line(
    operator: Operator, command: str
) -> None:
    result = await operator.run(*command.split(), "run_7")
    assert result.exit_code == 2
    assert "op_12" in result.stderr


async def test_explain_tells_why_and_everything_that_happened_in_order(
    operator: Operator,
) -> None:
    operation = await operator.in_doubt()
    await operator.in_doubt("4102")
    await operator.run(
        "doubt", "settle", "op_1", "--word", "not-sent", "--by", "Olga", "--note", "Pat has\x1b it"
    )
    assert await operator.office.reason(operation) == Reason.SAID_NOT_SENT.value
    result = await operator.run("explain", "op_1")
    assert result.exit_code == 0, result.output
    told = result.stdout
    assert "op_1 of run_1, about ticket 4101: done in part." in told
    assert "Why: Somebody found out that it was not sent." in told
    assert "slack:T0TEAM1:U0REVIEWER voted approve" in told
    order = [
        "operation born -> awaiting",
        "note, voted, by slack:T0TEAM1:U0REVIEWER",
        "approval open -> granted",
        "attempt born -> dispatched",
        "operation approved -> executing",
        "attempt dispatched -> unknown",
        "operation executing -> unknown",
        "note, word given, by operator:Olga",
        "attempt unknown -> not_applied",
        "operation unknown -> partial",
    ]
    history = told.partition("What happened, in order:")[2]
    positions = [history.find(entry) for entry in order]
    assert -1 not in positions, told
    assert positions == sorted(positions), told
    assert "4102" not in history
    assert "\x1b" not in told
    missing = await operator.run("explain", "op_77")
    assert (missing.exit_code, "no operation op_77" in missing.stderr) == (1, True)
