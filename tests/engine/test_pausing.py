"""A run at a limit of the budget waits as rows alone, and goes on when there is room for it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from executor.domain.approval import Vote
from executor.domain.ids import OperationId, PrincipalId, RunId
from executor.domain.transition import Reason, Refused
from executor.engine.leases import run_keeper
from executor.engine.opening import Opened
from executor.engine.pausing import Paused, look_at_paused, pause, resume
from executor.engine.setup import activate_policy
from executor.engine.sweeper import sweep
from executor.engine.waking import wake
from tests.support.fake_mail import applied
from tests.support.fake_model import FakeModel, calls, says
from tests.support.money import raises
from tests.support.office import RENE, RIKO, SAM, TENANT, Office, policy
from tests.support.working import Working

LAST = says("All is well.")
LOOK = says("I look first.", calls("read_ticket", {"ticket_id": "4101"}))


def _limited(**limits: object) -> dict[str, object]:
    return {"run_microusd": 1_000, "day_microusd": 100_000, **limits}


async def _at_the_runs_limit(office: Office, **limits: object) -> Working:
    """Drive a run whose second call of a model does not fit any more."""
    await activate_policy(office.engine, policy(budget=_limited(**limits)))
    working = await Working.start(office, FakeModel([LOOK, LAST]))
    await working.drive()
    return working


async def _at_the_days_limit(office: Office, **limits: object) -> Working:
    await activate_policy(
        office.engine, policy(budget={"run_microusd": 90_000, "day_microusd": 1_000, **limits})
    )
    working = await Working.start(office, FakeModel([LOOK, LAST]))
    await working.drive()
    return working


async def _intent(office: Office) -> str:
    [(intent,)] = await office.rows("SELECT intent FROM operations WHERE kind = 'raise_budget'")
    return str(intent)


async def _run(office: Office, run_id: RunId) -> tuple[str, str | None]:
    [found] = await office.rows("SELECT status, reason FROM runs WHERE id = :id", id=run_id)
    status, reason = found
    return status, reason


async def _decide(office: Office, id_: OperationId, who: PrincipalId, vote: Vote) -> object:
    await office.show()
    return await office.click(id_, who, vote, "" if vote is Vote.APPROVE else "enough")


async def _apply(office: Office, id_: OperationId) -> object:
    opened = await office.open_one(await office.claim_operation(id_))
    await wake(office.engine)
    return opened


async def test_a_run_at_its_limit_is_paused_and_costs_no_worker_anything(office: Office) -> None:
    working = await _at_the_runs_limit(office)
    assert await _run(office, working.run_id) == ("paused", "budget_limit")
    assert await office.rows("SELECT lease_owner, due_at FROM runs WHERE driven") == [(None, None)]
    assert await office.claim_run_if_any() == []
    assert working.model.called == 1  # type: ignore[attr-defined]


async def test_a_raise_that_is_approved_lets_the_run_go_on_to_its_end(office: Office) -> None:
    working = await _at_the_runs_limit(office)
    [raised] = await raises(office)
    assert await _decide(office, raised, RENE, Vote.APPROVE)
    await _apply(office, raised)
    assert await office.status(raised) == "succeeded"
    await working.drive()
    assert (await _run(office, working.run_id))[0] == "succeeded"
    assert await office.rows(
        "SELECT limit_microusd FROM run_budgets WHERE run_id = :id", id=working.run_id
    ) == [(2_000,)]


async def test_whoever_asked_for_the_run_may_not_raise_its_limit_alone(office: Office) -> None:
    await _at_the_runs_limit(office)
    [raised] = await raises(office)
    refused = await _decide(office, raised, RIKO, Vote.APPROVE)
    assert isinstance(refused, Refused)
    assert refused.reason is Reason.OWN_REQUEST
    assert await office.status(raised) == "awaiting"


async def test_only_whom_the_budget_names_may_raise_a_limit(office: Office) -> None:
    await _at_the_runs_limit(office, approvers=["U0SECOND"])
    [raised] = await raises(office)
    refused = await _decide(office, raised, RENE, Vote.APPROVE)
    assert isinstance(refused, Refused)
    assert refused.reason is Reason.NOT_PERMITTED
    assert not isinstance(await office.click(raised, SAM), Refused)


async def test_a_raise_that_is_rejected_ends_the_run_with_its_last_words(office: Office) -> None:
    working = await _at_the_runs_limit(office)
    [raised] = await raises(office)
    await _decide(office, raised, RENE, Vote.REJECT)
    await wake(office.engine)
    assert await _run(office, working.run_id) == ("failed", "budget_not_raised")
    assert await office.rows("SELECT summary FROM runs WHERE id = :id", id=working.run_id) == [
        ("I look first.",)
    ]


async def test_a_raise_that_nobody_decides_ends_the_run(office: Office) -> None:
    working = await _at_the_runs_limit(office)
    [raised] = await raises(office)
    await office.show()
    await office.later(hours=25)
    await sweep(office.engine)
    await wake(office.engine)
    assert await office.status(raised) == "expired"
    assert await _run(office, working.run_id) == ("failed", "budget_not_raised")


async def test_beyond_what_the_policy_caps_nobody_is_asked_and_the_run_ends(
    office: Office,
) -> None:
    working = await _at_the_runs_limit(office, most_run_microusd=1_000)
    assert await raises(office) == []
    assert await _run(office, working.run_id) == ("failed", "budget_limit")


async def test_a_raise_never_goes_beyond_the_cap(office: Office) -> None:
    await _at_the_runs_limit(office, most_run_microusd=1_700)
    assert '"new_microusd":1700' in await _intent(office)


async def test_two_runs_at_one_days_limit_ask_once_and_nobody_who_asked_may_decide(
    office: Office,
) -> None:
    first = await _at_the_days_limit(office)
    second = await Working.start(office, FakeModel([LAST]), requester=SAM)
    await second.drive()
    assert await _run(office, second.run_id) == ("paused", "budget_limit")
    [raised] = await raises(office)
    for who in (RIKO, SAM):
        refused = await _decide(office, raised, who, Vote.APPROVE)
        assert isinstance(refused, Refused)
        assert refused.reason is Reason.OWN_REQUEST
    await office.click(raised, RENE)
    await _apply(office, raised)
    await first.drive()
    await second.drive()
    assert (await _run(office, first.run_id))[0] == "succeeded"
    assert (await _run(office, second.run_id))[0] == "succeeded"


async def test_a_run_at_a_days_limit_goes_on_at_the_next_local_midnight(office: Office) -> None:
    working = await _at_the_days_limit(office)
    [(due_at,)] = await office.rows("SELECT due_at FROM runs WHERE id = :id", id=working.run_id)
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    assert due_at == midnight + timedelta(days=1)
    assert await office.claim_run_if_any() == []
    await office.later(hours=24)
    await working.drive()
    assert (await _run(office, working.run_id))[0] == "succeeded"


async def test_a_days_raise_that_is_rejected_leaves_the_run_waiting_for_midnight(
    office: Office,
) -> None:
    working = await _at_the_days_limit(office)
    [raised] = await raises(office)
    await _decide(office, raised, RENE, Vote.REJECT)
    await wake(office.engine)
    assert await _run(office, working.run_id) == ("paused", "budget_limit")
    other = await Working.start(office, FakeModel([LAST]))
    await other.drive()
    assert await _run(office, other.run_id) == ("paused", "budget_limit")
    assert await raises(office) == [raised]


async def test_a_limit_that_has_moved_makes_a_raise_of_it_out_of_date(office: Office) -> None:
    working = await _at_the_days_limit(office)
    [raised] = await raises(office)
    await _decide(office, raised, RENE, Vote.APPROVE)
    await activate_policy(
        office.engine, policy(budget={"run_microusd": 90_000, "day_microusd": 5_000})
    )
    await _apply(office, raised)
    assert (await office.status(raised), await office.reason(raised)) == ("stale", "limit_changed")
    assert await office.rows("SELECT raised_microusd FROM tenant_days") == [(0,)]
    await working.drive()
    assert (await _run(office, working.run_id))[0] == "succeeded"


async def test_another_policy_with_room_lets_paused_runs_go_on(office: Office) -> None:
    working = await _at_the_days_limit(office)
    await activate_policy(
        office.engine, policy(budget={"run_microusd": 90_000, "day_microusd": 5_000})
    )
    await working.drive()
    assert (await _run(office, working.run_id))[0] == "succeeded"


async def test_a_slow_look_finds_what_nobody_woke_and_withdraws_what_nobody_needs(
    office: Office,
) -> None:
    working = await _at_the_runs_limit(office)
    [raised] = await raises(office)
    await office.rows("UPDATE run_budgets SET limit_microusd = 9000 RETURNING 1")
    await look_at_paused(office.engine)
    assert await office.claim_run_if_any() == []
    await office.later(seconds=61)
    await look_at_paused(office.engine)
    await working.drive()
    assert (await _run(office, working.run_id))[0] == "succeeded"
    await look_at_paused(office.engine)
    assert (await office.status(raised), await office.reason(raised)) == (
        "withdrawn",
        "nobody_waits",
    )


async def test_without_room_nobody_is_woken(office: Office) -> None:
    await _at_the_runs_limit(office)
    assert await resume(office.engine, TENANT) == 0


async def test_a_paused_run_can_be_cancelled_and_takes_its_raise_with_it(office: Office) -> None:
    working = await _at_the_runs_limit(office)
    [raised] = await raises(office)
    await office.cancel(working.run_id)
    assert (await _run(office, working.run_id))[0] == "cancelled"
    await look_at_paused(office.engine)
    assert await office.status(raised) == "withdrawn"


async def test_a_paused_run_ends_at_its_deadline(office: Office) -> None:
    working = await _at_the_runs_limit(office)
    await office.later(days=8)
    await sweep(office.engine)
    assert (await _run(office, working.run_id))[1] in ("time_limit", "parked_too_long")


async def test_what_waits_for_approval_stays_valid_while_its_run_is_paused(
    office: Office,
) -> None:
    run_id = await office.start_run()
    claimed = await office.claim_run(run_id)
    proposed = await office.propose(run_id, claimed)
    await office.rows("UPDATE run_budgets SET limit_microusd = 0 RETURNING 1")
    refused = Refused(Reason.BUDGET_LIMIT, {"asked_microusd": 5})
    keeper = run_keeper(office.engine, (TENANT, run_id), claimed.lease)
    assert await pause(office.engine, (TENANT, run_id), keeper, refused) is Paused.PAUSED
    await office.show()
    await office.click(proposed)
    held = await office.claim_operation(proposed)
    opened = await office.open_one(held)
    assert isinstance(opened, Opened), opened
    await office.report(held, opened, applied())
    assert await office.status(proposed) == "succeeded"


@pytest.mark.parametrize("day", [False, True])
async def test_paused_runs_and_their_raise_say_what_is_spent_and_held(
    office: Office, day: bool
) -> None:
    await (_at_the_days_limit(office) if day else _at_the_runs_limit(office))
    intent = await _intent(office)
    for said in (
        '"current_microusd":1000',
        '"spent_microusd":500',
        '"held_microusd":0',
        '"needed_microusd":1000',
        '"new_microusd":2000',
    ):
        assert said in intent
