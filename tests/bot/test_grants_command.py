"""``signoff grants``: an operator lists, gives and revokes roles from the command line."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from executor.domain.transition import Reason, Refused
from executor.engine.click import Recorded
from executor.engine.setup import activate_policy
from executor.store.database import Database
from tests.support import invariants
from tests.support.office import OTTO, RENE, Office, policy
from tests.support.operator import Operator

GIVE = ("grants", "give", "U0OUTSIDER", "approver")


@pytest.fixture
async def operator(
    database: Database, database_url: str, tmp_path: Path
) -> AsyncIterator[Operator]:
    """An operator of a tenant in Amsterdam."""
    amsterdam = policy(tenant={"timezone": "Europe/Amsterdam"})
    office = await Office.open(database, active=amsterdam)
    yield Operator(office, database_url, tmp_path / "policy.toml")
    await invariants.check(database)


async def test_a_role_is_given_listed_and_revoked(operator: Operator) -> None:
    given = await operator.run(*GIVE, "--by", "Ada", "--note", "Rene is ill")
    assert given.exit_code == 0, given.output
    assert given.stdout == (
        "Given (grant 1): U0OUTSIDER has the role approver on everything until it is revoked "
        "(Europe/Amsterdam). `signoff grants revoke 1` takes it back.\n"
    )
    operation = await operator.office.proposed()
    assert isinstance(await operator.office.click(operation, OTTO), Recorded)
    listed = (await operator.run("grants", "list")).stdout
    assert "grant 1: U0OUTSIDER has the role approver on everything until it is" in listed
    assert "given by operator:Ada 20" in listed
    assert "    Note: Rene is ill\n" in listed
    assert "signoff policy explain" in listed
    revoked = await operator.run("grants", "revoke", "1", "--by", "Ada")
    assert revoked.exit_code == 0
    assert revoked.stdout.startswith("Revoked (grant 1): U0OUTSIDER does not have")
    assert (await operator.run("grants", "list")).stdout.startswith("There are no grants now.")
    past = (await operator.run("grants", "list", "--past")).stdout
    assert "no more (revoked by operator:Ada 20" in past
    again = await operator.run("grants", "revoke", "1")
    assert (again.exit_code, again.stdout) == (0, "It was revoked before. Nothing has changed.\n")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--until", "2126-12-24"], "until the end of 2126-12-24 (Europe/Amsterdam)"),
        (["--until", "2126-12-24T17:00"], "until 2126-12-24 17:00 (Europe/Amsterdam)"),
        (["--until", "2126-12-24 17:00Z"], "until 2126-12-24 18:00 (Europe/Amsterdam)"),
        (
            ["--from", "2126-12-24", "--for", "8h"],
            "from 2126-12-24 00:00 until 2126-12-24 08:00 (Europe/Amsterdam)",
        ),
        (["--on", "ticket:builtin:4101"], "on `ticket:builtin:4101` until it is revoked"),
        (["--on", "ticket:zendesk:acme:35436"], "on `ticket:zendesk:acme:35436` until"),
    ],
)
async def test_times_are_those_of_the_tenant_and_things_are_named(
    operator: Operator, options: list[str], told: str
) -> None:
    given = await operator.run(*GIVE, *options)
    assert given.exit_code == 0, given.output
    assert told in given.stdout


async def test_a_role_passed_on_tells_whose_it_is_and_whether_it_still_counts(
    operator: Operator,
) -> None:
    passed_on = await operator.run(*GIVE, "--on-behalf-of", "U0REVIEWER", "--for", "8h")
    assert passed_on.exit_code == 0, passed_on.output
    listed = (await operator.run("grants", "list")).stdout
    assert "on behalf of U0REVIEWER, who has it by the policy or a grant; given by" in listed
    people = {"requesters": ["U0REQUESTER"], "approvers": ["U0SECOND"]}
    await activate_policy(operator.office.engine, policy(people=people))
    listed = (await operator.run("grants", "list")).stdout
    assert "who does not have it any more, so that it does not count" in listed


@pytest.mark.parametrize(
    ("arguments", "exit_code", "told"),
    [
        (["give", "rene", "approver"], 2, "is no Slack user id"),
        ([*GIVE[1:], "--until", "soon"], 2, "cannot be read as a time: 2026-12-24"),
        ([*GIVE[1:], "--until", "1h", "--for", "1h"], 2, "say --until or --for, not both"),
        ([*GIVE[1:], "--by", " "], 2, "say who you are with --by"),
        (["revoke", "seven"], 2, "is no grant"),
        (["give", "U0OUTSIDER", "boss"], 1, "There are: approver, editor, operator, requester."),
        ([*GIVE[1:], "--on", "everything"], 1, "A grant is about everything (*), or"),
        ([*GIVE[1:], "--until", "2020-01-01"], 1, "later than now"),
        ([*GIVE[1:], "--on-behalf-of", "U0REVIEWER"], 1, "until a date"),
        (
            [*GIVE[1:], "--on-behalf-of", "U0NOBODY", "--for", "1h"],
            1,
            "the role approver is not theirs",
        ),
        (["revoke", "4711"], 1, "There is no such grant."),
    ],
)
async def test_what_cannot_be_given_is_refused_with_the_reason(
    operator: Operator, arguments: list[str], exit_code: int, told: str
) -> None:
    result = await operator.run("grants", *arguments)
    assert (result.exit_code, told in result.stderr) == (exit_code, True), result.output
    assert (await operator.run("grants", "list", "--past")).stdout.startswith("There are no grants")


async def test_a_program_reads_what_people_read(operator: Operator) -> None:
    given = json.loads((await operator.run(*GIVE, "--for", "8h", "--json")).stdout)
    [listed] = json.loads((await operator.run("grants", "list", "--json")).stdout)
    assert given["grant"] == listed["grant"] == 1
    assert (listed["user"], listed["role"], listed["on"]) == (OTTO, "approver", "*")
    assert (listed["rests_on"], listed["status"]) == ("nothing_else", "active")
    assert listed["until"] > listed["from"]


async def test_a_role_that_the_policy_no_longer_names_says_that_it_does_not_count(
    operator: Operator,
) -> None:
    engine = operator.office.engine
    await activate_policy(engine, policy(roles={"leads": {"members": ["U0SECOND"]}}))
    assert (await operator.run("grants", "give", "U0OUTSIDER", "Leads")).exit_code == 0
    await activate_policy(engine, policy())
    listed = (await operator.run("grants", "list")).stdout
    assert "which does not count: the policy names no such role" in listed


async def test_who_may_decide_is_asked_of_grants_at_once(operator: Operator) -> None:
    await operator.run(*GIVE)
    operation = await operator.office.proposed()
    await operator.run("grants", "revoke", "1")
    refused = await operator.office.click(operation, OTTO)
    assert isinstance(refused, Refused)
    assert refused.reason is Reason.NOT_PERMITTED
    assert isinstance(await operator.office.click(operation, RENE), Recorded)
