"""``signoff budget``: how money stands, and an operator's settlement of what nobody knew."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from executor.domain.budget import Settle
from executor.engine.claims import ClaimedRun
from executor.engine.setup import activate_policy
from executor.store.database import Database
from tests.support import invariants
from tests.support.money import CENT, account_of, end_call, hold, lose
from tests.support.office import Office, policy
from tests.support.operator import Operator

AMSTERDAM = {"timezone": "Europe/Amsterdam"}
NOTE = ("--note", "invoice 4711", "--by", "Olga")


@pytest.fixture
async def operator(
    database: Database, database_url: str, tmp_path: Path
) -> AsyncIterator[Operator]:
    """An operator of a tenant in Amsterdam, where a run may cost a dime and a day a dollar."""
    limits = {"run_microusd": 10 * CENT, "day_microusd": 100 * CENT}
    active = policy(tenant=AMSTERDAM, budget=limits)
    office = await Office.open(database, active=active)
    yield Operator(office, database_url, tmp_path / "policy.toml")
    await invariants.check(database)


async def run_of(operator: Operator) -> ClaimedRun:
    return await operator.office.claim_run(await operator.office.start_run())


async def test_where_all_is_known_the_day_is_told_and_it_is_a_success(operator: Operator) -> None:
    result = await operator.run("budget")
    assert result.exit_code == 0, result.output
    today, rest = result.stdout.splitlines()
    assert today.startswith("Today (20")
    assert "): $0.00 of $1.00 spent, $1.00 left. It renews 20" in today
    assert today.endswith(" 00:00 (Europe/Amsterdam).")
    assert rest == "No run waits for money, and all that calls have cost is known."


async def test_what_nobody_knows_is_listed_with_what_frees_it(operator: Operator) -> None:
    claimed = await run_of(operator)
    charge = await lose(operator.office.engine, claimed, 4 * CENT)
    await hold(operator.office.engine, claimed, CENT)
    result = await operator.run("budget")
    assert result.exit_code == 1
    today, run, line, way = result.stdout.splitlines()
    assert "$0.00 of $1.00 spent, $0.05 held ($0.04 of it for calls of unknown cost)" in today
    assert run == (
        "run_1 (working): $0.00 of $0.10 spent, $0.05 held ($0.04 of it for calls of unknown "
        "cost), $0.05 left."
    )
    assert line.startswith(f"{charge} of run_1, for `model:test`, holds $0.04 since 20")
    assert f"`signoff budget settle {charge} --cost 0.0123 --note" in way


async def test_a_program_reads_what_people_read(operator: Operator) -> None:
    claimed = await run_of(operator)
    charge = await lose(operator.office.engine, claimed, 4 * CENT)
    result = await operator.run("budget", "--json")
    found = json.loads(result.stdout)
    assert result.exit_code == 1
    assert (found["limit_microusd"], found["unknown_microusd"]) == (100 * CENT, 4 * CENT)
    assert found["renews_at"].endswith(("T00:00:00+01:00", "T00:00:00+02:00"))
    [run], [one] = found["runs"], found["unknown"]
    assert (run["run"], run["left_microusd"]) == ("run_1", 6 * CENT)
    assert (one["charge"], one["run"], one["held_microusd"]) == (charge, "run_1", 4 * CENT)
    assert one["id"].endswith(charge.removeprefix("ch_"))
    settled = await operator.run("budget", "settle", charge, "--cost", "0.01", *NOTE, "--json")
    assert json.loads(settled.stdout) == {
        "charge": charge,
        "run": "run_1",
        "day": found["day"],
        "had_held_microusd": 4 * CENT,
        "settled_now": True,
        "cost_microusd": CENT,
    }
    again = await operator.run("budget", "settle", charge, "--cost", "0.02", *NOTE, "--json")
    told = json.loads(again.stdout)
    assert (told["settled_now"], told["cost_microusd"], told["by"], told["note"]) == (
        False,
        CENT,
        "operator:Olga",
        "invoice 4711",
    )


async def test_one_run_is_told_with_its_limit_and_its_charges(operator: Operator) -> None:
    claimed = await run_of(operator)
    engine = operator.office.engine
    await end_call(engine, claimed, await hold(engine, claimed, 4 * CENT), Settle(CENT))
    charge = await lose(engine, claimed, 2 * CENT)
    told = (await operator.run("budget", "run", "run_1")).stdout
    assert told.startswith("run_1 (working): $0.01 of $0.10 spent, $0.02 held ($0.02 of it for")
    assert f"{charge} of run_1" in told
    found = json.loads((await operator.run("budget", "run", "1", "--json")).stdout)
    assert (found["spent_microusd"], found["left_microusd"]) == (CENT, 7 * CENT)
    missing = await operator.run("budget", "run", "9")
    assert (missing.exit_code, "There is no such run" in missing.stderr) == (1, True)


async def test_an_invoice_settles_a_charge_and_its_run_has_room_again(operator: Operator) -> None:
    claimed = await run_of(operator)
    charge = await lose(operator.office.engine, claimed, 4 * CENT)
    result = await operator.run("budget", "settle", charge, "--cost", "$0.0123", *NOTE)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(f"Settled: {charge} of run_1 has cost $0.0123, charged to 20")
    assert result.stdout.endswith("$0.04 had been held for it.\n")
    assert await account_of(operator.office, claimed.key[1]) == (12_300, 0, 0)
    again = await operator.run("budget", "settle", charge, "--cost", "0", *NOTE)
    assert again.exit_code == 0
    first, note = again.stdout.splitlines()
    assert first.startswith(f"{charge} was already settled to $0.0123 by operator:Olga 20")
    assert first.endswith("Nothing has changed.")
    assert note == "    Note: invoice 4711"
    assert (await operator.run("budget")).exit_code == 0


async def test_more_than_was_held_is_charged_and_said_so(operator: Operator) -> None:
    claimed = await run_of(operator)
    charge = await lose(operator.office.engine, claimed, 4 * CENT)
    result = await operator.run("budget", "settle", charge, "--cost", "0.15", *NOTE)
    assert result.exit_code == 0
    assert "Mind that this is $0.11 more than was held, and all of it is charged" in result.stdout
    told = (await operator.run("budget", "run", "1")).stdout
    assert told == "run_1 (working): $0.15 of $0.10 spent, $0.00 left.\n"


@pytest.mark.parametrize(
    ("arguments", "exit_code", "told"),
    [
        (["settle", "CHARGE", "--cost", "-1", *NOTE], 2, "is no amount"),
        (["settle", "CHARGE", "--cost", "1e-2", *NOTE], 2, "is no amount"),
        (["settle", "CHARGE", "--cost", "0,01", *NOTE], 2, "is no amount"),
        (["settle", "CHARGE", "--cost", "99999", *NOTE], 2, "10000 at most"),
        (["settle", "CHARGE", "--cost", "0.01", "--note", " "], 2, "where the amount stands"),
        (["settle", "CHARGE", "--cost", "0.01", "--note", "x" * 501], 2, "at most 500"),
        (["settle", "CHARGE", "--cost", "0.01", "--note", "x", "--by", " "], 2, "who you are"),
        (["settle", "CHARGE", "--cost", "0.01"], 2, "Missing option '--note'"),
        (["settle", "run_1", "--cost", "0.01", *NOTE], 2, "is no charge"),
        (["settle", "ch_00000000", "--cost", "0.01", *NOTE], 1, "There is no such charge."),
        (["void", "CHARGE", "--note", "free"], 2, "No such command 'void'"),
        (["run", "seven"], 2, "is no run"),
    ],
)
async def test_what_cannot_be_done_is_refused_and_nothing_is_charged(
    operator: Operator, arguments: list[str], exit_code: int, told: str
) -> None:
    claimed = await run_of(operator)
    charge = await lose(operator.office.engine, claimed, 4 * CENT)
    result = await operator.run("budget", *[charge if a == "CHARGE" else a for a in arguments])
    assert (result.exit_code, told in result.stderr) == (exit_code, True), result.output
    assert await account_of(operator.office, claimed.key[1]) == (0, 4 * CENT, 4 * CENT)


async def test_g17_nothing_of_another_tenant_is_told_or_touched(operator: Operator) -> None:
    claimed = await run_of(operator)
    charge = await lose(operator.office.engine, claimed, 4 * CENT)
    await activate_policy(
        operator.office.engine, policy(slack={"team": "T0OTHER", "channel": "C0APPROVALS"})
    )
    told = await operator.run("budget", "--tenant", "T0OTHER", "--json")
    assert told.exit_code == 0
    found = json.loads(told.stdout)
    assert (found["runs"], found["unknown"], found["held_microusd"]) == ([], [], 0)
    assert charge not in told.output
    settle = ("budget", "settle", charge, "--cost", "0.01", *NOTE, "--tenant", "T0OTHER")
    assert (await operator.run(*settle)).exit_code == 1
    assert (await operator.run("budget", "run", "1", "--tenant", "T0OTHER")).exit_code == 1
    assert await account_of(operator.office, claimed.key[1]) == (0, 4 * CENT, 4 * CENT)
