"""What an effect costs, where the policy says so, is held with its attempt and charged by proof."""

from __future__ import annotations

from typing import Any

import pytest

from executor.domain.effect import Outcome
from executor.domain.ids import RunId, operator_principal
from executor.domain.transition import Reason
from executor.engine.opening import NotOpened, Opened
from executor.engine.settling import settle
from executor.engine.setup import activate_policy
from executor.engine.sweeper import sweep
from executor.engine.word import Given, Said, Word
from tests.support.failpoints import Crashed, Trap
from tests.support.fake_mail import applied, not_applied, unknown
from tests.support.office import TENANT, Office, policy

CENT = 10_000


async def _priced(office: Office, *, email: int = 2 * CENT, day: int = 10 * CENT) -> None:
    await activate_policy(
        office.engine, policy(costs={"email.send": email}, budget={"day_microusd": day})
    )


async def _reservations(office: Office) -> list[tuple[Any, ...]]:
    return await office.rows(
        "SELECT purpose, amount_microusd, status, actual_microusd FROM reservations "
        "ORDER BY reserved_at"
    )


@pytest.mark.parametrize(
    ("outcome", "status", "actual"),
    [
        (applied(), "settled", 2 * CENT),
        (not_applied(retryable=False), "voided", None),
        (unknown(), "unknown", None),
    ],
    ids=["applied", "not applied", "unknown"],
)
async def test_an_email_is_paid_for_as_far_as_it_is_known_to_have_left(
    office: Office, outcome: Outcome, status: str, actual: int | None
) -> None:
    await _priced(office)
    claimed, opened = await office.opened()
    assert await _reservations(office) == [("effect:email.send", 2 * CENT, "held", None)]
    await office.report(claimed, opened, outcome)
    await office.later(minutes=5)
    await sweep(office.engine)
    await sweep(office.engine)
    assert await _reservations(office) == [("effect:email.send", 2 * CENT, status, actual)]


async def test_a_persons_word_voids_nothing_and_a_late_proof_settles_it(office: Office) -> None:
    await _priced(office)
    claimed, opened = await office.opened()
    await office.report(claimed, opened, unknown())
    word = Word(
        TENANT,
        claimed.claim.key[1],
        opened.attempt.id,
        Said.NOT_SENT,
        operator_principal("ada"),
        "",
        "",
        "",
        None,
        "",
    )
    [given] = await settle(office.engine, [word])
    assert isinstance(given, Given), given
    await office.later(minutes=5)
    await sweep(office.engine)
    [(_, _, status, _)] = await _reservations(office)
    assert status == "unknown"
    await office.report(claimed, opened, applied())
    await sweep(office.engine)
    [(_, _, status, _)] = await _reservations(office)
    assert status == "settled"


async def test_each_attempt_is_paid_for_by_itself(office: Office) -> None:
    await _priced(office)
    claimed, opened = await office.opened()
    await office.report(claimed, opened, not_applied(retryable=True))
    await office.later(seconds=5)
    again = await office.open_one(await office.claim_operation(claimed.claim.key[1], "w2"))
    assert isinstance(again, Opened)
    await sweep(office.engine)
    assert [status for _, _, status, _ in await _reservations(office)] == ["voided", "held"]


async def test_what_the_day_cannot_pay_for_is_not_opened_and_says_why(office: Office) -> None:
    await _priced(office, day=3 * CENT)
    first = await office.claimed("4101")
    second = await office.claimed("4102")
    one, two = await office.open_all(first, second)
    assert isinstance(one, Opened)
    assert isinstance(two, NotOpened)
    assert two.reason is not None
    assert two.reason.reason is Reason.BUDGET_LIMIT
    assert two.reason.detail["limit"] == "day"
    operation = second.claim.key[1]
    assert (await office.status(operation), await office.reason(operation)) == (
        "stale",
        "budget_limit",
    )
    # The ticket is as it was: nothing was done by halves.
    assert await office.rows("SELECT status FROM desk_tickets WHERE id = '4102'") == [("open",)]
    checks = await office.rows(
        "SELECT detail -> 'checks' ->> 'budget' FROM journal "
        "WHERE entity_id = :id AND target = 'stale'",
        id=operation,
    )
    assert checks == [("budget_limit",)]


async def test_what_costs_nothing_holds_nothing(office: Office) -> None:
    await activate_policy(office.engine, policy(budget={"day_microusd": 0, "run_microusd": 0}))
    _, opened = await office.opened()
    assert isinstance(opened, Opened)
    assert await _reservations(office) == []


@pytest.mark.parametrize("side", ["before", "after"])
async def test_money_and_attempt_are_stored_together_or_not_at_all(
    office: Office, side: str
) -> None:
    await _priced(office)
    claimed = await office.claimed()
    with pytest.raises(Crashed):
        await office.colleague(failpoints=Trap(f"open.{side}")).open_one(claimed)
    attempts = len(await office.rows("SELECT 1 FROM attempts"))
    assert attempts == len(await _reservations(office)) == int(side == "after")


async def test_the_run_pays_as_well(office: Office) -> None:
    await _priced(office)
    claimed = await office.claimed()
    run_id: RunId = await office.run_of(claimed.claim.key[1])
    await office.rows("UPDATE run_budgets SET limit_microusd = 1 RETURNING 1")
    opened = await office.open_one(claimed)
    assert isinstance(opened, NotOpened)
    assert opened.reason is not None
    assert opened.reason.detail["limit"] == "run"
    assert await office.rows(
        "SELECT held_microusd FROM run_budgets WHERE run_id = :id", id=run_id
    ) == [(0,)]
