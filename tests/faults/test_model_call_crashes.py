"""An executor is killed in each phase of a model call: the job ends, and the money is right.

What the model's server told of its charge is spent, what it did not is held until somebody knows,
and both together are never less than what it charged. A reply on record is asked for no more.
"""

from __future__ import annotations

import signal
from enum import StrEnum
from pathlib import Path

import pytest
from sqlalchemy import text

from bot.sandbox.model_faults import ModelFault, PlannedFault
from executor.engine.failpoint import Commit, Side, point
from executor.store.database import Database
from tests.support.nursery import Nursery
from tests.support.paid_job import PaidJob, Way, cost, paid_job

CALL_AND_LEASE_SECONDS = 200
"""Longer than a lease, and than the longest that a call may take."""

READ, PROPOSE, TELL = 1, 2, 3
"""The calls of the reference job; the mail is sent before the last one."""

DONE = ("replied", "settled")
LOST = ("lost", "unknown")


class Phase(StrEnum):
    """When the executor is killed."""

    BEFORE_RESERVE = point(Commit.RESERVE, Side.BEFORE)
    AFTER_RESERVE = point(Commit.RESERVE, Side.AFTER)
    ASKED = "asked"
    HEADERS = "headers"
    MIDDLE = "middle"
    ANSWERED = "answered"
    BEFORE_RECORD = point(Commit.RECORD_REPLY, Side.BEFORE)
    AFTER_RECORD = point(Commit.RECORD_REPLY, Side.AFTER)


_HANGS = {
    Phase.ASKED: PlannedFault(ModelFault.HANG),
    Phase.HEADERS: PlannedFault(ModelFault.HANG_AFTER_HEADERS),
    Phase.MIDDLE: PlannedFault(ModelFault.HANG_IN_BODY),
    Phase.ANSWERED: PlannedFault(ModelFault.HANG),
}
_WAITS_TO_RECORD = """
SELECT count(*) > 0 FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%FOR UPDATE OF r%'
"""
_NOTHING_IS_HELD = {Phase.BEFORE_RESERVE, Phase.AFTER_RECORD}
_NOTHING_IS_ASKED = {Phase.BEFORE_RESERVE, Phase.AFTER_RESERVE}

ANTHROPIC, OPENAI = "anthropic", "openai"
DEATHS = [
    (Phase.BEFORE_RESERVE, READ, Way(ANTHROPIC, True)),
    (Phase.BEFORE_RESERVE, TELL, Way(OPENAI, False)),
    (Phase.AFTER_RESERVE, READ, Way(OPENAI, True)),
    (Phase.AFTER_RESERVE, TELL, Way(ANTHROPIC, False)),
    (Phase.ASKED, READ, Way(ANTHROPIC, False)),
    (Phase.ASKED, PROPOSE, Way(OPENAI, True)),
    (Phase.HEADERS, TELL, Way(ANTHROPIC, True)),
    (Phase.HEADERS, PROPOSE, Way(OPENAI, False)),
    (Phase.MIDDLE, PROPOSE, Way(ANTHROPIC, True)),
    (Phase.MIDDLE, TELL, Way(OPENAI, True)),
    (Phase.MIDDLE, READ, Way(OPENAI, False)),
    (Phase.ANSWERED, PROPOSE, Way(ANTHROPIC, False)),
    (Phase.ANSWERED, TELL, Way(OPENAI, False)),
    (Phase.BEFORE_RECORD, READ, Way(OPENAI, False)),
    (Phase.BEFORE_RECORD, TELL, Way(ANTHROPIC, True)),
    (Phase.AFTER_RECORD, READ, Way(ANTHROPIC, False)),
    (Phase.AFTER_RECORD, TELL, Way(OPENAI, True)),
]


@pytest.mark.parametrize(("phase", "call", "way"), DEATHS, ids=str)
async def test_who_is_killed_in_a_model_call_leaves_the_money_right(
    database: Database,
    database_url: str,
    nursery: Nursery,
    tmp_path: Path,
    phase: Phase,
    call: int,
    way: Way,
) -> None:
    async with paid_job(database, database_url, nursery, tmp_path, way) as job:
        await _die(job, phase, call)
        lost = await job.office.rows("SELECT status FROM reservations WHERE status = 'held'")
        assert len(lost) == (phase not in _NOTHING_IS_HELD)
        await job.office.later(seconds=CALL_AND_LEASE_SECONDS)
        await job.start()
        if call != TELL:
            await job.approve()
        assert await job.until_over() == "succeeded"

        expected, asked = [DONE] * 3, {0: 1, 1: 1, 2: 1}
        if phase not in _NOTHING_IS_HELD:
            expected.insert(call - 1, LOST)
        if phase not in _NOTHING_IS_HELD | _NOTHING_IS_ASKED:
            asked[call - 1] = 2
        assert await job.came_to() == expected
        assert dict(job.asked_after()) == asked, "no reply on record was asked for once more"
        await job.check_the_money()
        await _read_the_invoice(job, phase, call)
        await job.check_the_rest()


async def _die(job: PaidJob, phase: Phase, call: int) -> None:
    """Kill an executor in that phase of that call."""
    hang = _HANGS.get(phase)
    if hang is None:
        if call == TELL:
            first = await job.start()
            await job.approve_when_waiting(first)
        dying = await job.start(SIGNOFF_FAILPOINT=phase)
        assert dying.process is not None
        assert await dying.process.wait() == -signal.SIGKILL
        return
    job.double.fail(hang, call=call)
    dying = await job.start()
    if call == TELL:
        await job.approve()
    await job.double.faults.wait_for_hang()
    if phase is Phase.ANSWERED:
        async with job.office.database.transaction() as conn:
            await conn.execute(text("SELECT FROM runs FOR UPDATE"))
            job.double.faults.release()
            # Whoever keeps a lease updates its row, and locks it by nothing else.
            await job.until(_WAITS_TO_RECORD)
            await dying.kill()
    await dying.kill()
    job.double.faults.release()


async def _read_the_invoice(job: PaidJob, phase: Phase, call: int) -> None:
    """Settle what is unknown to what was charged: then all is spent, and nothing held."""
    billed = [cost(b) for b in job.double.billed]
    if phase not in _NOTHING_IS_HELD:
        amount = 0 if phase in _NOTHING_IS_ASKED else billed[call - 1]
        await job.settle_by_invoice([amount])
    await job.check_accounts(sum(billed), 0)


async def test_a_run_whose_money_is_held_for_a_lost_call_pauses_until_somebody_knows_its_cost(
    database: Database, database_url: str, nursery: Nursery, tmp_path: Path
) -> None:
    way, enough_for_one = Way(ANTHROPIC, True), {"run_microusd": 36_000}
    async with paid_job(
        database, database_url, nursery, tmp_path, way, budget=enough_for_one
    ) as job:
        await _die(job, Phase.MIDDLE, READ)
        await job.office.later(seconds=CALL_AND_LEASE_SECONDS)
        await job.start()
        # What asks for more money is a run of its own.
        await job.until("SELECT count(*) = 1 FROM runs WHERE status = 'paused'")
        assert await job.came_to() == [LOST]
        await job.check_the_money()
        await job.settle_by_invoice([cost(b) for b in job.double.billed])
        await job.approve()
        assert await job.until_over() == "succeeded"
        assert [call.charge for call in await job.calls()] == ["settled"] * 4
        await job.check_accounts(sum(cost(b) for b in job.double.billed), 0)
        await job.check_the_rest()
