"""Cancel works at once wherever a run stands, once, and never hides what was already sent."""

from __future__ import annotations

import asyncio

import pytest

from executor.domain.errors import StaleEpoch
from executor.domain.ids import RunId
from executor.domain.transition import Reason, Refused
from executor.engine.endings import Stopped
from executor.engine.failpoint import Commit, Side, point
from executor.engine.last_account import Standing
from executor.engine.setup import activate_policy
from executor.engine.sweeper import sweep
from executor.engine.waking import wake
from tests.support.failpoints import Crashed, Trap
from tests.support.fake_mail import applied, not_applied
from tests.support.fake_model import FakeModel, says
from tests.support.office import OTTO, RIKO, Office, policy
from tests.support.run_ends import PROPOSE, READ, account_of, ended, paused, raises, waiting
from tests.support.working import Working


async def _stops(office: Office, run_id: RunId) -> int:
    """How often the journal says that the run was stopped."""
    stops = "SELECT 1 FROM journal WHERE entity_id = :r AND event = 'stopped'"
    return len(await office.rows(stops, r=run_id))


async def _claimable(office: Office) -> int:
    return len(await office.claim_run_if_any("w9"))


async def test_a_queued_run_is_never_begun(office: Office) -> None:
    model = FakeModel([])
    working = await Working.start(office, model)
    await office.cancel(working.run_id)
    assert await ended(office, working.run_id) == ("cancelled", "cancelled")
    assert await _claimable(office) == 0
    assert await office.rows("SELECT 1 FROM reservations") == []


async def test_a_driver_between_two_steps_goes_no_further(office: Office) -> None:
    class Cancels:
        """Cancels the run in the moment after its first reply was recorded."""

        cancelled = False

        async def reach(self, name: str) -> None:
            if name == point(Commit.RECORD_REPLY, Side.AFTER) and not self.cancelled:
                self.cancelled = True
                await office.cancel(working.run_id)

    model = FakeModel([READ, PROPOSE])
    working = await Working.start(office, model)
    with pytest.raises(StaleEpoch):
        await working.drive(office.colleague(failpoints=Cancels()))
    assert model.called == 1
    assert await office.rows("SELECT kind FROM steps") == [("model",)]
    assert await ended(office, working.run_id) == ("cancelled", "cancelled")


async def test_a_waiting_run_ends_with_what_it_waits_for(office: Office) -> None:
    working = await waiting(office)
    result = await office.cancel(working.run_id)
    assert isinstance(result, Stopped)
    [operation] = await working.operations()
    assert await office.status(operation) == "withdrawn"
    assert await ended(office, working.run_id) == ("cancelled", "cancelled")
    await wake(office.engine)
    assert await _claimable(office) == 0


async def test_a_paused_run_ends_and_money_that_comes_later_revives_it_not(office: Office) -> None:
    working = await paused(office)
    await office.cancel(working.run_id)
    assert await ended(office, working.run_id) == ("cancelled", "cancelled")
    await activate_policy(office.engine, policy(budget={"run_microusd": 90_000}))
    await sweep(office.engine)
    assert await raises(office) == [("withdrawn", "nobody_waits")], "nobody is asked in vain"
    assert await _claimable(office) == 0


@pytest.mark.parametrize(
    ("outcome", "standing"),
    [(applied(), Standing.DONE), (not_applied(retryable=False), Standing.IN_PART)],
)
async def test_during_an_effect_it_may_have_been_sent_and_then_the_truth_is_told(
    office: Office, outcome: object, standing: Standing
) -> None:
    claimed, opened = await office.opened()
    run_id = await office.run_of(claimed.claim.key[1])
    result = await office.cancel(run_id)
    assert isinstance(result, Stopped)
    assert result.sending != ()
    assert await ended(office, run_id) == ("cancelling", "cancelled")
    assert list(await account_of(office, run_id)) == [Standing.NOT_KNOWN]
    await office.report(claimed, opened, outcome)  # type: ignore[arg-type]
    await wake(office.engine)
    assert await ended(office, run_id) == ("cancelled", "cancelled")
    assert list(await account_of(office, run_id)) == [standing]


async def test_during_a_model_call_it_ends_at_once_and_the_call_stays_counted(
    office: Office,
) -> None:
    model = FakeModel([PROPOSE], held=True)
    working = await Working.start(office, model)
    driving = asyncio.create_task(working.drive())
    await model.wait_called()
    await office.cancel(working.run_id)
    assert await ended(office, working.run_id) == ("cancelled", "cancelled")
    # Its model would never answer: the call is given up, and nobody knows what it has cost.
    async with asyncio.timeout(20):
        with pytest.raises(StaleEpoch):
            await driving
    assert model.cancelled == 1
    assert await office.rows("SELECT status, amount_microusd FROM reservations") == [
        ("unknown", 1_000)
    ]
    money = await office.rows("SELECT spent_microusd, held_microusd FROM run_budgets")
    assert money == [(0, 1_000)]
    await sweep(office.engine)
    assert await office.rows("SELECT 1 FROM operations") == []
    assert await office.rows("SELECT spent_microusd, held_microusd FROM run_budgets") == money
    assert await ended(office, working.run_id) == ("cancelled", "cancelled")


async def test_two_cancels_are_one(office: Office) -> None:
    working = await waiting(office)
    both = await asyncio.gather(office.cancel(working.run_id), office.cancel(working.run_id, RIKO))
    assert sorted(type(result).__name__ for result in both) == ["Refused", "Stopped"]
    assert await _stops(office, working.run_id) == 1


async def test_a_second_cancel_meanwhile_tells_the_same_and_changes_nothing(
    office: Office,
) -> None:
    claimed, _ = await office.opened()
    run_id = await office.run_of(claimed.claim.key[1])
    first, second = await office.cancel(run_id), await office.cancel(run_id)
    assert isinstance(first, Stopped)
    assert isinstance(second, Stopped)
    assert (first.status, first.sending) == (second.status, second.sending)
    assert await _stops(office, run_id) == 1


async def test_a_cancel_after_the_end_is_told_so(office: Office) -> None:
    working = await Working.start(office, FakeModel([says("Nothing to do.")]))
    await working.drive()
    refused = await office.cancel(working.run_id)
    assert isinstance(refused, Refused)
    assert refused.reason is Reason.ALREADY_ENDED
    assert await ended(office, working.run_id) == ("succeeded", "completed")


async def test_a_cancel_that_races_the_end_gives_one_end(office: Office) -> None:
    """Whichever takes the run's lock first wins, and the other one is told."""
    endings = set()
    for _ in range(10):
        working = await Working.start(office, FakeModel([says("Nothing to do.")], held=True))
        model = working.model
        assert isinstance(model, FakeModel)
        driving = asyncio.create_task(working.drive())
        await model.wait_called()
        model.release()
        cancelled = await office.cancel(working.run_id)
        await asyncio.wait({driving})
        status, _ = await ended(office, working.run_id)
        assert status == ("succeeded" if isinstance(cancelled, Refused) else "cancelled")
        endings.add(status)
        moves = "SELECT 1 FROM journal WHERE entity_id = :r AND target = ANY(:ends)"
        ends = ["succeeded", "cancelled", "failed"]
        assert len(await office.rows(moves, r=working.run_id, ends=ends)) == 1
    assert endings <= {"succeeded", "cancelled"}


@pytest.mark.parametrize("side", list(Side))
async def test_a_cancel_whose_process_dies_is_done_or_can_be_done_again(
    office: Office, side: Side
) -> None:
    working = await waiting(office)
    with pytest.raises(Crashed):
        await office.colleague(failpoints=Trap(point(Commit.CANCEL, side))).cancel(working.run_id)
    if side is Side.BEFORE:
        assert await ended(office, working.run_id) == ("waiting", None)
        assert isinstance(await office.cancel(working.run_id), Stopped)
    assert await ended(office, working.run_id) == ("cancelled", "cancelled")
    assert await _stops(office, working.run_id) == 1


async def test_who_may_not_cancel_changes_nothing(office: Office) -> None:
    working = await waiting(office)
    refused = await office.cancel(working.run_id, OTTO)
    assert isinstance(refused, Refused)
    assert await ended(office, working.run_id) == ("waiting", None)
