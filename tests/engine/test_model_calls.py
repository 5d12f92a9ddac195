"""TM: each call of a model is on record with its money, and is given up when nobody wants it."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from executor.domain.errors import DatabaseUnavailable, StaleEpoch
from executor.domain.transition import Reason
from executor.engine import model_call
from executor.engine.card_record import RunRecord
from executor.engine.model_call import MOST_FAILED_IN_A_ROW
from executor.engine.ports import ModelFailed, ModelReply
from executor.engine.records import read_run
from executor.engine.request_digest import request_digests
from executor.engine.setup import activate_policy
from executor.engine.sweeper import sweep
from executor.store import model_calls
from tests.support.failpoints import Crashed, Trap
from tests.support.fake_model import FakeModel, calls, says
from tests.support.office import TENANT, Office, policy
from tests.support.working import Working

READ = says("", calls("read_ticket", {"ticket_id": "4101"}))
DONE = says("All done.")
WORST = 1_000


@pytest.fixture(autouse=True)
def _looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_call, "LOOK_SECONDS", 0.02)


async def _calls(office: Office) -> list[tuple[Any, ...]]:
    return await office.rows(
        "SELECT c.number, c.status, v.status, v.actual_microusd FROM model_calls c "
        "JOIN reservations v ON v.id = c.reservation_id ORDER BY c.number"
    )


async def _told(office: Office, working: Working) -> RunRecord:
    async with office.database.transaction() as conn:
        return await read_run(conn, TENANT, working.run_id)


async def _held(office: Office) -> list[tuple[Any, ...]]:
    return await office.rows(
        "SELECT spent_microusd, held_microusd, unknown_microusd FROM run_budgets"
    )


def _busy(seconds: float | None = None) -> ModelFailed:
    pause = None if seconds is None else timedelta(seconds=seconds)
    return ModelFailed("429", not_sent=True, retryable=True, retry_after=pause)


async def test_a_call_is_on_record_before_it_is_made_and_ends_with_its_charge(
    office: Office,
) -> None:
    model = FakeModel([READ, DONE], held=True)
    working = await Working.start(office, model)
    driving = asyncio.create_task(working.drive())
    request = await model.wait_called(1)
    assert await _calls(office) == [(1, "asked", "held", None)]
    model.release(2)
    await driving
    assert await _calls(office) == [(1, "replied", "settled", 500), (2, "replied", "settled", 500)]
    rows = await office.rows(
        "SELECT model, request_digest, max_output_tokens, input_tokens, output_tokens, "
        "cache_read_tokens, cache_write_tokens, problem FROM model_calls WHERE number = 1"
    )
    digest = request_digests(request)(request.max_output_tokens)
    assert rows == [("fake-model", digest, request.max_output_tokens, 100, 20, 0, 0, None)]
    assert digest != request_digests(model.requests[1])(request.max_output_tokens)
    assert digest != request_digests(request)(request.max_output_tokens - 1)


async def test_a_cancelled_run_waits_for_no_answer_and_keeps_its_cost_counted(
    office: Office,
) -> None:
    model = FakeModel([DONE], held=True)
    working = await Working.start(office, model)
    driving = asyncio.create_task(working.drive())
    await model.wait_called(1)
    await office.cancel(working.run_id)
    async with asyncio.timeout(5):
        with pytest.raises(StaleEpoch):
            await driving
    assert model.cancelled == 1
    assert await office.run_status(working.run_id) == "cancelled"
    assert await _calls(office) == [(1, "abandoned", "unknown", None)]
    assert await _held(office) == [(0, WORST, WORST)]


async def test_a_call_ends_with_the_time_of_its_run(office: Office) -> None:
    await activate_policy(office.engine, policy(run={"max_seconds": 600}))
    model = FakeModel([DONE], held=True)
    working = await Working.start(office, model)
    driving = asyncio.create_task(working.drive())
    await model.wait_called(1)
    await office.later(seconds=601)
    async with asyncio.timeout(5):
        await driving
    assert model.cancelled == 1
    rows = await office.rows("SELECT status, reason FROM runs")
    assert rows == [("failed", "time_limit")]
    assert await _calls(office) == [(1, "abandoned", "unknown", None)]


async def test_a_call_of_a_run_that_somebody_else_took_is_given_up(office: Office) -> None:
    model = FakeModel([DONE], held=True)
    working = await Working.start(office, model)
    driving = asyncio.create_task(working.drive())
    await model.wait_called(1)
    await office.later(seconds=31)
    await office.claim_run(working.run_id, "w2")
    async with asyncio.timeout(5):
        with pytest.raises(StaleEpoch):
            await driving
    assert await _calls(office) == [(1, "abandoned", "unknown", None)]


async def test_a_database_that_is_away_for_a_moment_abandons_no_call(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = asyncio.Event()

    async def away(*_: object) -> None:
        looked.set()
        raise DatabaseUnavailable("gone")

    monkeypatch.setattr(model_calls, "wanted", away)
    model = FakeModel([DONE], held=True)
    working = await Working.start(office, model)
    driving = asyncio.create_task(working.drive())
    async with asyncio.timeout(5):
        await looked.wait()
    model.release()
    await driving
    assert await _calls(office) == [(1, "replied", "settled", 500)]


async def test_a_call_whose_worker_died_is_lost_and_its_late_reply_is_charged_once(
    office: Office,
) -> None:
    model = FakeModel([DONE], held=True)
    working = await Working.start(office, model)
    driving = asyncio.create_task(working.drive())
    await model.wait_called(1)
    # The worker sleeps past the deadline of its money, and comes back with an answer after all.
    await office.rows("UPDATE reservations SET deadline_at = reserved_at RETURNING 1")
    await sweep(office.engine)
    assert await _calls(office) == [(1, "lost", "unknown", None)]
    model.release()
    await driving
    assert await _calls(office) == [(1, "replied", "settled", 500)]
    assert await _held(office) == [(500, 0, 0)]


async def test_a_recorded_reply_is_never_asked_for_again(office: Office) -> None:
    model = FakeModel([DONE])
    working = await Working.start(office, model)
    with pytest.raises(Crashed):
        await working.drive(office.colleague(failpoints=Trap("record_reply.after")))
    await office.later(seconds=31)
    await working.drive(owner="w2")
    assert (model.called, await office.run_status(working.run_id)) == (1, "succeeded")
    assert await _calls(office) == [(1, "replied", "settled", 500)]


async def test_a_reply_that_does_not_tell_what_it_took_stays_counted(office: Office) -> None:
    working = await Working.start(office, FakeModel([ModelReply("Done.", (), None, None, "r_1")]))
    await working.drive()
    assert await office.run_status(working.run_id) == "succeeded"
    assert await _calls(office) == [(1, "replied", "unknown", None)]
    assert await office.rows("SELECT response_id, input_tokens FROM model_calls") == [("r_1", None)]


async def test_a_short_pause_is_waited_for_under_the_lease(office: Office) -> None:
    model = FakeModel([_busy(0.1), DONE])
    working = await Working.start(office, model)
    await working.drive()
    assert await office.run_status(working.run_id) == "succeeded"
    assert await _calls(office) == [(1, "failed", "voided", None), (2, "replied", "settled", 500)]


@pytest.mark.parametrize("pause", [120.0, 5.0])
async def test_a_long_pause_or_a_stop_leaves_the_run_to_wait_without_a_worker(
    office: Office, pause: float
) -> None:
    model = FakeModel([_busy(pause), DONE], held=True)
    working = await Working.start(office, model)
    stop = asyncio.Event()
    driving = asyncio.create_task(working.drive(stop=stop))
    await model.wait_called(1)
    stop.set()
    model.release(2)
    await driving
    assert await office.rows("SELECT status, lease_owner FROM runs") == [("waiting", None)]
    assert not await working.due()
    [(due_at,)] = await office.rows("SELECT due_at FROM runs")
    assert (await _told(office, working)).model_asked_again_at == due_at
    await office.later(seconds=pause + 1)
    assert (await _told(office, working)).model_asked_again_at is None
    await working.drive()
    assert await office.run_status(working.run_id) == "succeeded"
    assert model.called == 2


async def test_a_provider_that_is_never_ready_is_not_waited_for_without_end(
    office: Office,
) -> None:
    model = FakeModel([_busy(60.0)] * (MOST_FAILED_IN_A_ROW + 1))
    working = await Working.start(office, model)
    for _ in range(MOST_FAILED_IN_A_ROW):
        assert await working.due()
        await working.drive()
        await office.later(seconds=61)
    rows = await office.rows("SELECT status, reason FROM runs")
    assert rows == [("failed", Reason.MODEL_FAILED.value)]
    assert model.called == MOST_FAILED_IN_A_ROW


async def test_a_run_that_is_cancelled_in_a_pause_is_left_at_once(office: Office) -> None:
    model = FakeModel([_busy(19.0), DONE], held=True)
    working = await Working.start(office, model)
    driving = asyncio.create_task(working.drive())
    await model.wait_called(1)
    model.release()
    await office.cancel(working.run_id)
    async with asyncio.timeout(5):
        with pytest.raises(StaleEpoch):
            await driving
    assert model.called == 1
