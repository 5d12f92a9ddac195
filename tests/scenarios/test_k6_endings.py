"""K6: expiry, refusal and cancel, each told as what it was."""

from __future__ import annotations

import asyncio

import pytest

from executor.domain.approval import Vote
from executor.domain.errors import StaleEpoch
from executor.domain.transition import Reason, Refused
from executor.engine.setup import activate_policy
from executor.engine.status import database_time
from executor.engine.sweeper import sweep
from tests.support.fake_model import FakeModel, calls, says
from tests.support.office import RENE, Office, closing, policy
from tests.support.working import Working


@pytest.mark.parametrize("vote", list(Vote))
async def test_b070_b071_a_late_click_is_kept_as_such_and_decides_nothing(
    office: Office, vote: Vote
) -> None:
    operation = await office.proposed()
    await office.later(days=1, seconds=1)
    before = await database_time(office.engine)
    refused = await office.click(operation, vote=vote)
    assert isinstance(refused, Refused)
    assert refused.reason is Reason.EXPIRED
    assert await office.status(operation) == "expired"
    assert await office.rows("SELECT 1 FROM decisions") == []
    [(*late, at)] = await office.rows(
        "SELECT actor, detail ->> 'vote', detail ->> 'reason', recorded_at FROM journal "
        "WHERE event = 'decision_refused'"
    )
    assert late == [RENE, vote.value, "expired"]
    assert before < at < await database_time(office.engine)
    answers = await office.rows("SELECT answer ->> 'reason' FROM notices")
    assert answers == [("expired",)]


async def test_b072_b073_the_model_is_told_that_it_expired_and_that_nobody_refused(
    office: Office,
) -> None:
    # One rejection would end the run.
    await activate_policy(office.engine, policy(run={"max_rejections_in_a_row": 1}))
    working = await Working.propose(office, closing())
    await working.drive()
    assert await working.told() == [], "nothing is told before it is known"
    await office.show()
    await office.later(days=1)
    await sweep(office.engine)
    await working.drive()
    [told] = await working.told()
    assert (told["status"], told["reason"]) == ("expired", "expired")
    assert "not executed" in str(told["message"])
    assert await office.rows("SELECT status FROM approvals") == [("expired",)]
    assert await office.rows("SELECT 1 FROM decisions") == []
    assert await office.run_status(working.run_id) == "succeeded"


async def test_b075_an_answer_after_the_cancel_revives_nothing_and_is_charged(
    office: Office,
) -> None:
    proposal = {"ticket_id": "4101", "language": "en", "subject": "s", "message": "m"}
    model = FakeModel([says("", calls("propose_closing", proposal))], held=True)
    working = await Working.start(office, model)
    driving = asyncio.create_task(working.drive())
    await model.wait_called()
    await office.cancel(working.run_id)
    model.release()
    with pytest.raises(StaleEpoch):
        await driving
    assert await office.run_status(working.run_id) == "cancelled"
    assert await office.rows("SELECT 1 FROM operations") == []
    assert await office.rows("SELECT 1 FROM steps") == []
    assert await office.rows("SELECT status, actual_microusd FROM reservations") == [
        ("settled", 500)
    ]
