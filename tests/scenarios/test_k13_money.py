"""K13: what calls of models cost is held before, charged once, and bounded everywhere.

Those about many who ask at once (B162, B163, B169, B170, B171, B183) are in
``tests/engine/test_budget.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from pydantic import ValidationError

from executor.domain.budget import Settle
from executor.domain.ids import operator_principal
from executor.domain.price import CostBound
from executor.domain.transition import Refused
from executor.engine.budget import reserve
from executor.engine.charging import charge_alone
from executor.engine.claims import ClaimedRun
from executor.engine.invoice import Invoiced, KnownBefore, SettledNow, settle_invoiced
from executor.engine.ports import ModelFailed, ModelRequest, Usage
from executor.engine.purse import Ask, Held
from executor.engine.setup import activate_policy
from executor.store import clock
from tests.support.clock import move_clock
from tests.support.failpoints import Crashed, Trap
from tests.support.fake_model import FakeModel, calls, says
from tests.support.office import SHORT, TENANT, Office, policy
from tests.support.waiting import another_pool
from tests.support.working import Working

CENT = 10_000
DOLLAR = 100 * CENT
READ = calls("read_ticket", {"ticket_id": "4101"})


class PricedModel(FakeModel):
    """Costs a fixed sum for what it reads, and so much for each token that it may write."""

    def __init__(self, script: Sequence[Any], *, reads: int, writes: int) -> None:
        super().__init__(script)
        self._bound = CostBound(Decimal(reads), Decimal(writes))

    def cost_bound(self, request: ModelRequest) -> CostBound:
        return self._bound


async def _claimed(office: Office, **budget: int) -> ClaimedRun:
    await activate_policy(office.engine, policy(budget=budget))
    return await office.claim_run(await office.start_run())


async def _hold(office: Office, claimed: ClaimedRun, amount: int) -> Held | Refused:
    [result] = await reserve(
        office.engine, [Ask(claimed.key, claimed.lease.epoch, "model:test", amount, 60.0)]
    )
    return result


async def _move_to(office: Office, moment: datetime) -> None:
    async with office.database.transaction() as conn:
        await move_clock(conn, moment - await clock.now(conn))


async def _statuses(office: Office) -> list[tuple[str, str]]:
    return await office.rows(
        "SELECT c.status, v.status FROM model_calls c "
        "JOIN reservations v ON v.id = c.reservation_id ORDER BY c.number"
    )


async def test_b165_a_day_begins_at_midnight_and_not_when_something_was_first_spent(
    office: Office,
) -> None:
    claimed = await _claimed(office, day_microusd=10 * CENT, run_microusd=10 * DOLLAR)
    await _move_to(office, datetime(2027, 5, 3, 15, 43, tzinfo=UTC))
    assert isinstance(await _hold(office, claimed, 10 * CENT), Held)
    await _move_to(office, datetime(2027, 5, 3, 23, 59, tzinfo=UTC))
    assert isinstance(await _hold(office, claimed, 1), Refused)
    await _move_to(office, datetime(2027, 5, 4, 0, 1, tzinfo=UTC))
    assert isinstance(await _hold(office, claimed, 10 * CENT), Held)


@pytest.mark.parametrize("spelling", ["daily", "1d", "24h"])
def test_b166_a_budget_has_no_period_to_spell_differently(spelling: str) -> None:
    for field in ("period", "window", "duration", "reset"):
        with pytest.raises(ValidationError):
            policy(budget={"day_microusd": 1, field: spelling})


async def test_b168_whoever_notices_the_new_day_late_wipes_nothing(
    office: Office, database_url: str
) -> None:
    claimed = await _claimed(office, day_microusd=10 * DOLLAR, run_microusd=10 * DOLLAR)
    await _hold(office, claimed, CENT)
    await _move_to(office, datetime(2027, 5, 3, 23, 59, 59, tzinfo=UTC))
    await office.later_unseen(seconds=2)
    async with another_pool(database_url) as pool:
        held = await _hold(office, claimed, 40 * CENT)
        assert isinstance(held, Held)
        await charge_alone(office.engine, {(TENANT, held.reservation_id): Settle(40 * CENT)})
        await _hold(office.colleague(pool), claimed, CENT)
    rows = await office.rows(
        "SELECT spent_microusd, held_microusd FROM tenant_days WHERE day = '2027-05-04'"
    )
    assert rows == [(40 * CENT, CENT)]


async def test_b174_a_call_that_timed_out_is_charged_once_when_its_real_cost_is_known(
    database_url: str, office: Office
) -> None:
    engine = replace(office.engine, durations=replace(SHORT, model_call_seconds=0.05))
    hasty = replace(office, engine=engine)
    # The first call is not answered before its time, and nor is the second.
    model = FakeModel([says("Too late."), says("Too late.")], held=True)
    working = await Working.start(hasty, model)
    await working.drive()
    assert await _statuses(office) == [("failed", "unknown")] * 2
    ids = [id_ for (id_,) in await office.rows("SELECT id FROM reservations ORDER BY reserved_at")]
    told = [
        await settle_invoiced(
            office.engine,
            TENANT,
            operator_principal("books"),
            Invoiced(ids[0].hex, 500, "500 tokens: invoice"),
        )
        for _ in range(2)
    ]
    assert [type(one) for one in told] == [SettledNow, KnownBefore]
    accounts = await office.rows("SELECT spent_microusd, held_microusd FROM run_budgets")
    assert accounts == [(500, 1_000)]


async def test_b176_what_failed_attempts_took_is_charged_as_well(office: Office) -> None:
    def failed() -> ModelFailed:
        usage = Usage(100, 20)
        return ModelFailed(
            "the stream broke",
            not_sent=False,
            retryable=True,
            usage=usage,
            cost_microusd=120,
            retry_after=timedelta(minutes=1),
        )

    model = FakeModel([failed(), failed(), says("Done.", cost_microusd=200)])
    working = await Working.start(office, model)
    for _ in range(3):
        await working.drive()
        await office.later(seconds=61)
    assert await office.run_status(working.run_id) == "succeeded"
    rows = await office.rows("SELECT spent_microusd, held_microusd FROM run_budgets")
    assert rows == [(440, 0)]
    rows = await office.rows("SELECT input_tokens + output_tokens FROM model_calls")
    assert rows == [(120,)] * 3


async def test_b177_a_model_that_is_always_busy_gets_two_requests_and_both_are_on_record(
    office: Office,
) -> None:
    busy = ModelFailed("429", not_sent=True, retryable=True)
    model = FakeModel([busy] * 20)
    working = await Working.start(office, model)
    await working.drive()
    assert await office.run_status(working.run_id) == "failed"
    assert model.called == 2
    assert await _statuses(office) == [("failed", "voided")] * 2


async def test_b179_the_cap_of_a_run_is_a_limit_and_b180_nothing_is_asked_after_it(
    office: Office,
) -> None:
    await activate_policy(office.engine, policy(budget={"run_microusd": 50 * CENT}))
    rounds = [says("", READ, cost_microusd=5 * CENT)] * 30
    model = FakeModel(rounds, worst_case_microusd=5 * CENT)
    working = await Working.start(office, model)
    await working.drive()
    rows = await office.rows(
        "SELECT spent_microusd, held_microusd, limit_microusd FROM run_budgets WHERE run_id = :id",
        id=working.run_id,
    )
    assert rows == [(50 * CENT, 0, 50 * CENT)]
    assert model.called == 10
    assert not await working.due()
    # No summary, no title, no repair: every request there was had money of its own.
    assert await _statuses(office) == [("replied", "settled")] * 10
    assert await office.run_status(working.run_id) in ("paused", "failed")


async def test_b182_a_call_may_write_less_where_less_is_left(office: Office) -> None:
    await activate_policy(office.engine, policy(budget={"run_microusd": 5 * CENT}))
    # Its 4,096 tokens would cost 0.82 dollars; what is left pays for 200 times less.
    model = PricedModel(
        [says("", READ, cost_microusd=CENT), says("Done.", cost_microusd=CENT)],
        reads=CENT,
        writes=50,
    )
    working = await Working.start(office, model)
    await working.drive()
    assert await office.run_status(working.run_id) == "succeeded"
    assert [request.max_output_tokens for request in model.requests] == [800, 600]
    rows = await office.rows("SELECT max_output_tokens FROM model_calls ORDER BY number")
    assert rows == [(800,), (600,)]


async def test_b182_a_call_that_could_say_next_to_nothing_is_refused_with_what_it_needs(
    office: Office,
) -> None:
    await activate_policy(office.engine, policy(budget={"run_microusd": 2 * CENT}))
    model = PricedModel([], reads=CENT, writes=50)
    working = await Working.start(office, model)
    await working.drive()
    assert (model.called, await office.rows("SELECT 1 FROM reservations")) == (0, [])


async def _new(office: Office, model: FakeModel) -> Working:
    return await Working.start(office, model)


async def _resumed(office: Office, model: FakeModel) -> Working:
    working = await Working.start(office, model)
    await office.claim_run(working.run_id)
    await office.rows(
        "UPDATE runs SET lease_owner = NULL, lease_until = NULL, due_at = signoff_clock() "
        "RETURNING 1"
    )
    return working


async def _recovered(office: Office, model: FakeModel) -> Working:
    working = await Working.start(office, model)
    with pytest.raises(Crashed):
        await working.drive(office.colleague(failpoints=Trap("reserve.before")))
    await office.later(seconds=31)
    return working


@pytest.mark.parametrize("way", [_new, _resumed, _recovered])
async def test_b185_every_way_to_a_call_meets_the_days_cap(office: Office, way: Any) -> None:
    first = await _claimed(office, day_microusd=10 * CENT)
    held = await _hold(office, first, 10 * CENT)
    assert isinstance(held, Held)
    await charge_alone(office.engine, {(TENANT, held.reservation_id): Settle(10 * CENT)})
    model = FakeModel([says("Free!")])
    working = await way(office, model)
    await working.drive(owner="w2")
    assert model.called == 0
    assert await office.run_status(working.run_id) in ("paused", "failed")


async def test_b185_a_retry_meets_the_days_cap(office: Office) -> None:
    await activate_policy(office.engine, policy(budget={"day_microusd": 10 * CENT}))
    lost = ModelFailed("reset", not_sent=False, retryable=True)
    model = FakeModel([lost, says("Free!")], worst_case_microusd=10 * CENT)
    working = await Working.start(office, model)
    await working.drive()
    assert model.called == 1
    assert await _statuses(office) == [("failed", "unknown")]


async def test_b186_a_refusal_says_which_limit_what_was_asked_what_is_left_and_until_when(
    office: Office,
) -> None:
    await activate_policy(
        office.engine,
        policy(
            tenant={"name": "Acme", "timezone": "Europe/Amsterdam"},
            budget={"run_microusd": 50 * CENT, "day_microusd": 80 * CENT},
        ),
    )
    await _move_to(office, datetime(2027, 5, 3, 12, 0, tzinfo=UTC))
    await office.later(seconds=0)
    first = await office.claim_run(await office.start_run())
    second = await office.claim_run(await office.start_run())
    await _hold(office, first, 45 * CENT)
    await _hold(office, second, 30 * CENT)
    by_run, by_day = await _hold(office, first, 6 * CENT), await _hold(office, second, 6 * CENT)
    assert isinstance(by_run, Refused)
    assert isinstance(by_day, Refused)
    told = ("limit", "asked_microusd", "left_microusd", "limit_microusd", "day", "renews_at")
    assert [by_run.detail.get(key) for key in told] == ["run", 60_000, 50_000, 500_000, None, None]
    assert [by_day.detail.get(key) for key in told] == [
        "day",
        60_000,
        50_000,
        800_000,
        "2027-05-03",
        "2027-05-03T22:00:00+00:00",
    ]
