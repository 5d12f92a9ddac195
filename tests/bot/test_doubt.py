"""``signoff doubt``: what is in doubt, of all tenants or of one, and an operator's word on it."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from executor.engine.reconciler import reconcile
from executor.store.database import Database
from tests.support import invariants
from tests.support.fake_mail import applied
from tests.support.office import TEAM, Office
from tests.support.operator import Operator


@pytest.fixture
async def operator(
    database: Database, database_url: str, tmp_path: Path
) -> AsyncIterator[Operator]:
    """An operator of one tenant."""
    yield Operator(await Office.open(database), database_url, tmp_path / "policy.toml")
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
    assert "A person has to say whether it was sent" in oldest["next_action"]
    assert "signoff doubt settle op_1 --tenant T0TEAM1" in oldest["next_action"]
    [attempt] = oldest["attempts"]
    assert (attempt["status"], attempt["evidence"]["phase"]) == ("unknown", "content")
    shown = (await operator.run("doubt")).stdout
    assert shown.index(f"op_1 of run_1, tenant {TEAM}, ticket 4102") < shown.index(
        f"op_2 of run_2, tenant {TEAM}, ticket 4101"
    )


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


@pytest.mark.parametrize("command", ["explain", "doubt show", "doubt settle"])
async def test_a_name_that_is_no_operation_is_a_wrong_command_line(
    operator: Operator, command: str
) -> None:
    result = await operator.run(*command.split(), "run_7")
    assert result.exit_code == 2
    assert "op_12" in result.stderr


async def test_what_nobody_concludes_in_time_is_in_doubt_as_well(operator: Operator) -> None:
    await operator.office.opened()
    assert (await operator.run("doubt")).exit_code == 0
    await operator.office.later(minutes=10)
    listed = await operator.run("doubt")
    assert listed.exit_code == 1
    assert "executing since" in listed.stdout
    assert "see that one runs" in listed.stdout
    refused = await operator.run(
        "doubt", "settle", "op_1", "--word", "sent", "--by", "Olga", "--note", "x"
    )
    assert refused.exit_code == 1
    await reconcile(operator.office.engine)
    assert "unknown since" in (await operator.run("doubt")).stdout


async def test_an_operation_that_becomes_unknown_is_an_alert_that_names_it(
    operator: Operator, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        operation = await operator.in_doubt()
    run = await operator.office.run_of(operation)
    [alert] = [r for r in caplog.records if r.levelno >= logging.ERROR]
    told = alert.getMessage()
    assert told.startswith("op_1 is unknown")
    assert "email.send through smtp:test" in told
    assert str(run) in told
    assert f"signoff doubt show op_1 --tenant {TEAM}" in told


@pytest.fixture
async def of_two_tenants(database: Database, database_url: str, tmp_path: Path) -> Operator:
    """An operator of two tenants, each of which has one doubt; that of ``T0OTHER`` is older."""
    operator = Operator(await Office.open(database), database_url, tmp_path / "policy.toml")
    await operator.in_doubt()
    await operator.give_everything_to("T0OTHER")
    await operator.office.later(hours=1)
    await operator.office.import_ticket("4102")
    await operator.in_doubt("4102")
    return operator


async def test_the_doubts_of_all_tenants_are_listed_the_oldest_first(
    of_two_tenants: Operator,
) -> None:
    listed = await of_two_tenants.run("doubt", "--json", without_policy=True)
    assert listed.exit_code == 1
    assert [(one["tenant"], one["ticket"]) for one in json.loads(listed.stdout)] == [
        ("T0OTHER", "4101"),
        (TEAM, "4102"),
    ]
    for tenant, ticket in (("T0OTHER", "4101"), (TEAM, "4102")):
        listed = await of_two_tenants.run("doubt", "--json", "--tenant", tenant)
        assert [one["ticket"] for one in json.loads(listed.stdout)] == [ticket]
        number = json.loads(listed.stdout)[0]["operation"]
        shown = await of_two_tenants.run("doubt", "show", number, "--tenant", tenant)
        assert (shown.exit_code, f"tenant {tenant}, ticket {ticket}" in shown.stdout) == (0, True)
        told = await of_two_tenants.run("explain", number, "--tenant", tenant)
        assert (told.exit_code, f"ticket {ticket}" in told.stdout) == (0, True)


async def test_a_word_settles_the_doubt_of_the_named_tenant_alone(
    of_two_tenants: Operator,
) -> None:
    settled = await of_two_tenants.run(
        "doubt", "settle", "op_1", "--tenant", "T0OTHER",
        "--word", "sent", "--by", "Olga", "--note", "Asked.",
    )  # fmt: skip
    assert settled.exit_code == 0, settled.output
    left = await of_two_tenants.run("doubt", "--json")
    assert [one["tenant"] for one in json.loads(left.stdout)] == [TEAM]


async def test_a_tenant_is_named_by_the_policy_file_or_has_to_be(of_two_tenants: Operator) -> None:
    listed = json.loads((await of_two_tenants.run("doubt", "--json", "--tenant", TEAM)).stdout)
    mine = listed[0]["operation"]
    assert f"tenant {TEAM}" in (await of_two_tenants.run("doubt", "show", mine)).stdout
    unnamed = await of_two_tenants.run("doubt", "show", mine, without_policy=True)
    assert unnamed.exit_code == 78
    assert f"--tenant; there are: T0OTHER, {TEAM}" in unnamed.stderr
    wrong = await of_two_tenants.run("doubt", "--tenant", "T0NOBODY")
    assert (wrong.exit_code, "no tenant 'T0NOBODY'" in wrong.stderr) == (78, True)


async def test_the_newest_is_found_by_its_number_however_long_the_list_is(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("executor.engine.doubt.MOST_LISTED", 1)
    await operator.in_doubt("4102")
    newest = await operator.in_doubt("4101")
    shown = await operator.run("doubt", "show", "op_2")
    assert (shown.exit_code, "op_2 of run_2" in shown.stdout) == (0, True)
    by = ("--by", "Olga", "--note", "Asked the host.")
    result = await operator.run("doubt", "settle", "op_2", "--word", "sent", *by)
    assert result.exit_code == 0, result.output
    assert await operator.office.status(newest) == "succeeded"


async def test_a_name_or_note_of_any_octets_is_recorded_as_far_as_it_is_text(
    operator: Operator,
) -> None:
    operation = await operator.in_doubt()
    by = ("--by", "Ol\udcffga\u202e", "--note", "\udcff")
    result = await operator.run("doubt", "settle", "op_1", "--word", "sent", *by)
    assert result.exit_code == 0, result.output
    assert await operator.office.status(operation) == "succeeded"
    told = (await operator.run("explain", "op_1")).stdout
    assert "\u202e" not in told
