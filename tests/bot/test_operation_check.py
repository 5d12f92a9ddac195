"""``signoff policy check --operation``: what a policy would ask for, before anybody asks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from bot.cli import main
from executor.store.database import Database
from tests.bot.test_policy_command import run
from tests.support.fake_mail import applied
from tests.support.office import TEAM, Office
from tests.support.operator import Operator

POLICY = f"""
[slack]
team = "{TEAM}"
channel = "C0APPROVALS"
[people]
requesters = ["U0REQUESTER"]
approvers = ["U0REVIEWER", "group:S0LEADS"]
[roles.leads]
members = ["U0SECOND"]
[roles.nobody]
[approval]
remind_after_seconds = [3600]
[[rules]]
name = "to strangers"
when = ["outside_recipient", "external_link"]
approvers = ["role:leads"]
channel = "C0RISKY"
[[rules]]
name = "large sums"
amount_above = 500
quorum = 2
step_up = true
decide_within_seconds = 600
[[rules]]
name = "unheard of"
when = ["first_contact"]
language_not_in = ["en"]
approvers = ["U0SECOND"]
[email]
from = "support@acme.example"
"""
OPERATION = {
    "ticket": {"id": 4101, "customer_email": "pat@cust.example"},
    "subject": "Refund",
    "message": "All is well.",
}


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "policy.toml"
    path.write_text(POLICY)
    return str(path)


def supposed(tmp_path: Path, **changes: object) -> str:
    path = tmp_path / "operation.json"
    path.write_text(json.dumps(OPERATION | changes))
    return str(path)


def test_it_says_which_rules_match_and_why_and_whose_approvals_are_needed(
    file: str, tmp_path: Path
) -> None:
    risky = supposed(
        tmp_path, to=["eve@elsewhere.example"], message="We refund 900 EUR: https://evil.test/x"
    )
    said = run("check", file, "--operation", risky, "--requested-by", "U0REQUESTER")
    assert said.exit_code == 0, said.output
    told = said.stdout
    assert "It would close ticket 4101 of desk builtin and send an email to eve@else" in told
    assert (
        "Rule 'to strangers' matches because it goes to eve@elsewhere.example and it links to "
        "evil.test."
    ) in told
    assert "Rule 'large sums' matches because it names 900." in told
    assert (
        "2 of the approvers because it names 900, one of role leads because it goes to "
        "eve@elsewhere.example and it links to evil.test"
    ) in told
    assert "Each with a second factor." in told
    assert "There is 10 min to decide" in told
    assert "Its card goes to channel C0RISKY." in told
    assert "U0REQUESTER may ask for it, and then does not approve it." in told
    assert "  the approvers: U0REVIEWER, user group S0LEADS\n" in told
    assert "  role leads, for rule 'to strangers': U0SECOND\n" in told
    assert "everybody is a first contact, and no grants are known" in told
    assert "Rule 'unheard of' matches because nothing was sent before to eve@elsewh" in told


def test_a_rule_that_does_not_match_says_so(file: str, tmp_path: Path) -> None:
    told = run("check", file, "--operation", supposed(tmp_path)).stdout
    assert "Rule 'to strangers' does not match.\nRule 'large sums' does not match.\n" in told
    assert "reminders after 1 h" in told


def test_what_could_never_be_approved_or_asked_for_is_a_failure(tmp_path: Path, file: str) -> None:
    stranger = run("check", file, "--operation", supposed(tmp_path), "--requested-by", "U0SECOND")
    assert stranger.exit_code == 1
    assert "U0SECOND may not ask for it: You may not start runs here." in stranger.stdout
    lonely = tmp_path / "lonely.toml"
    lonely.write_text(POLICY.replace('"role:leads"', '"role:nobody"'))
    out = run("check", str(lonely), "--operation", supposed(tmp_path, cc=["eve@else.example"]))
    assert out.exit_code == 1
    assert "As it stands it can never be approved: role nobody, for rule 'to str" in out.stdout


def test_who_asked_is_none_of_those_who_could_approve(file: str, tmp_path: Path) -> None:
    Path(file).write_text(POLICY.replace('["U0REQUESTER"]', '["U0REVIEWER"]'))
    told = run(
        "check", file, "--operation", supposed(tmp_path), "--requested-by", "U0REVIEWER"
    ).stdout
    assert "  the approvers: user group S0LEADS\n" in told


def test_a_reopening_and_toml_and_standard_input_are_understood(file: str) -> None:
    toml = 'kind = "reopen_ticket"\n[ticket]\nid = "4101"\ncustomer_email = "pat@cust.example"\n'
    result = CliRunner().invoke(main, ["policy", "check", file, "--operation", "-"], input=toml)
    assert result.exit_code == 0, result.output
    assert "It would open ticket 4101 of desk builtin again." in result.stdout
    assert "people are asked whether it is opened again" in result.stdout


@pytest.mark.parametrize(
    ("changes", "exit_code", "told"),
    [
        ({"ticket": {"id": "4101"}}, 2, "ticket.customer_email is missing"),
        ({"attachments": []}, 2, "attachments is none that an operation has"),
        ({"kind": "delete_ticket"}, 2, "kind cannot be used"),
        ({"language": "English"}, 2, "language cannot be used"),
        ({"subject": ""}, 1, "subject: it is empty."),
        ({"to": ["eve"]}, 1, "is not exactly one address"),
    ],
)
def test_what_is_no_operation_is_refused_with_an_example_or_the_remedy(
    file: str, tmp_path: Path, changes: dict[str, object], exit_code: int, told: str
) -> None:
    said = run("check", file, "--operation", supposed(tmp_path, **changes))
    assert (said.exit_code, told in said.stderr) == (exit_code, True), said.output
    assert ("customer_email" in said.stderr) is (exit_code == 2)


def test_options_of_an_operation_need_one(file: str) -> None:
    assert run("check", file, "--with-database").exit_code == 2
    assert run("check", file, "--requested-by", "U0SECOND").exit_code == 2


async def test_the_database_knows_who_was_written_to_and_who_has_a_role_by_a_grant(
    database: Database, database_url: str, tmp_path: Path, file: str
) -> None:
    office = await Office.open(database)
    operator = Operator(office, database_url, tmp_path / "active.toml")
    claimed, opened = await office.opened("4102")
    await office.report(claimed, opened, applied())
    [(to,)] = await office.rows(
        "SELECT envelope -> 'to' ->> 0 FROM effects WHERE kind = 'email.send'"
    )
    for arguments in (
        ("U0OUTSIDER", "approver", "--on", "ticket:builtin:4101"),
        ("U0OTHER", "approver", "--on", "ticket:builtin:9999"),
        ("U0DEPUTY", "approver", "--on-behalf-of", "U0REVIEWER", "--for", "8h"),
    ):
        given = await operator.run("grants", "give", *arguments)
        assert given.exit_code == 0, given.output
    same = supposed(tmp_path, ticket={"id": "4101", "customer_email": to})
    told = (
        await operator.run("policy", "check", file, "--operation", same, "--with-database")
    ).stdout
    assert "Rule 'unheard of' does not match." in told
    assert "U0OUTSIDER" in told
    assert "U0OTHER" not in told
    assert "U0DEPUTY on behalf of U0REVIEWER" in told
    assert "Without the database" not in told
