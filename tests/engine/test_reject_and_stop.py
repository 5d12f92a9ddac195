"""Reject and stop: the vote, the end of the operation and the end of its run are one commit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from executor.domain.approval import Vote
from executor.domain.ids import OperationId, PrincipalId
from executor.domain.transition import NoChange, Reason, Refused
from executor.engine.click import Click, ClickResult, Recorded, RunStopped
from executor.engine.failpoint import Commit, Side, point
from executor.engine.setup import activate_policy
from executor.engine.waking import wake
from tests.support.failpoints import Crashed, Trap
from tests.support.office import RENE, RIKO, SAM, Office, closing, policy
from tests.support.working import Working

LEGAL = [{"name": "legal", "approvers": ["role:legal"]}]


async def _stopping(
    office: Office, operation: OperationId, who: PrincipalId = RENE, note: str = "Wrong person"
) -> Click:
    click = await office.click_for(operation, who, Vote.REJECT, note)
    return replace(click, stops_run=True)


async def _stop(
    office: Office, operation: OperationId, who: PrincipalId = RENE, note: str = "Wrong person"
) -> ClickResult:
    [result] = await office.decide(await _stopping(office, operation, who, note))
    return result


async def _two_of_one_run(office: Office) -> tuple[Working, OperationId, OperationId]:
    working = await Working.propose(office, closing("4101"), closing("4102"))
    await office.show()
    first, second = await working.operations()
    return working, first, second


async def _notices(office: Office) -> list[dict[str, object]]:
    return [
        answer for (answer,) in await office.rows("SELECT answer FROM notices ORDER BY created_at")
    ]


async def test_a_rejection_that_stops_the_run_ends_all_of_it_in_one_commit(office: Office) -> None:
    working, first, second = await _two_of_one_run(office)
    number = await office.value("SELECT number FROM runs WHERE tenant_id = :t AND id = :id",
                                working.run_id)  # fmt: skip
    result = await _stop(office, first)
    stopped = RunStopped(int(number), ())
    assert result == Recorded(Vote.REJECT, 1, decided=True, stopped=stopped)
    assert await office.status(first) == "rejected"
    assert await office.status(second) == "withdrawn"
    assert await office.reason(second) == "rejected_and_stopped"
    assert await office.rows("SELECT status, reason FROM runs") == [
        ("cancelled", "rejected_and_stopped")
    ]
    approvals = await office.rows("SELECT status FROM approvals ORDER BY status")
    assert approvals == [("denied",), ("withdrawn",)]
    [told] = await _notices(office)
    assert (told["vote"], told["stopped"], told["sending"]) == ("reject", int(number), [])
    assert ("stopped", RENE, "cancelled") in await office.events(working.run_id)
    await wake(office.engine)
    assert not await working.due(), "nothing drives a run that was stopped"


async def test_what_is_being_sent_already_is_told_and_the_run_ends_when_it_is_known(
    office: Office,
) -> None:
    working, first, second = await _two_of_one_run(office)
    await office.click(second)
    claimed = await office.claim_operation(second)
    await office.open_one(claimed)
    result = await _stop(office, first)
    sent = await office.value("SELECT number FROM operations WHERE tenant_id = :t AND id = :id",
                              second)  # fmt: skip
    assert isinstance(result, Recorded)
    assert result.stopped is not None
    assert result.stopped.sending == (int(sent),)
    assert await office.run_status(working.run_id) == "cancelling"
    assert await office.status(second) == "executing"


async def test_one_that_was_approved_in_the_same_commit_is_withdrawn_after_it(
    office: Office,
) -> None:
    _, first, second = await _two_of_one_run(office)
    approves = await office.click_for(second, SAM)
    late = await office.click_for(second, RENE)
    results = await office.decide(approves, await _stopping(office, first), late)
    assert [type(result) for result in results] == [Recorded, Recorded, Refused]
    assert results[2] == Refused(Reason.WITHDRAWN, {"by": [SAM]})
    assert await office.status(second) == "withdrawn"
    assert await office.rows("SELECT status FROM approvals ORDER BY status") == [
        ("denied",), ("withdrawn",)
    ]  # fmt: skip


async def test_a_plain_rejection_lets_the_run_go_on_with_the_reason(office: Office) -> None:
    working, first, second = await _two_of_one_run(office)
    await office.click(first, RENE, Vote.REJECT, "Wrong person")
    assert await office.run_status(working.run_id) == "running"
    assert await office.status(second) == "awaiting"
    [detail] = await office.rows("SELECT detail FROM operations WHERE id = :id", id=first)
    assert detail[0]["note"] == "Wrong person"


async def test_a_stop_that_comes_too_late_stops_nothing_and_says_that_the_run_goes_on(
    office: Office,
) -> None:
    working, first, _ = await _two_of_one_run(office)
    await office.click(first, SAM)
    assert await _stop(office, first) == Refused(Reason.ALREADY_GRANTED, {"by": [SAM]})
    assert await office.run_status(working.run_id) == "running"
    told = (await _notices(office))[-1]
    assert told["goes_on"] is not None
    await _stop(office, (await working.operations())[1])
    assert await _stop(office, (await working.operations())[1]) == NoChange(Reason.ALREADY_DENIED)
    assert "goes_on" not in (await _notices(office))[-1]


async def test_the_same_request_twice_stops_once(office: Office) -> None:
    working, first, _ = await _two_of_one_run(office)
    click = await _stopping(office, first)
    [one] = await office.decide(click)
    assert isinstance(one, Recorded)
    assert await office.decide(click) == [NoChange(Reason.ALREADY_VOTED)]
    ended = [e for e in await office.events(working.run_id) if e[0] == "stopped"]
    assert len(ended) == 1


async def test_whoever_may_decide_but_not_cancel_stops_nothing(office: Office) -> None:
    otto = "U0OUTSIDER"
    await activate_policy(office.engine, policy(roles={"legal": {"members": [otto]}}, rules=LEGAL))
    await office.later_unseen(seconds=0)
    operation = await office.proposed()
    who = PrincipalId(RENE.replace("U0REVIEWER", otto))
    assert await _stop(office, operation, who) == Refused(
        Reason.NOT_PERMITTED, {"missing": "cancel", "by": []}
    )
    assert await office.status(operation) == "awaiting"
    assert await office.rows("SELECT count(*) FROM decisions") == [(0,)]
    # A rejection alone is theirs to give.
    assert isinstance(await office.click(operation, who, Vote.REJECT, "no"), Recorded)


async def test_the_requester_may_stop_what_they_may_decide(office: Office) -> None:
    operation = await office.proposed()
    assert isinstance(await _stop(office, operation, RIKO), Recorded)
    assert await office.run_status(await office.run_of(operation)) == "cancelled"


@pytest.mark.parametrize("side", list(Side))
async def test_a_crash_around_the_commit_leaves_all_or_nothing(office: Office, side: Side) -> None:
    working, first, second = await _two_of_one_run(office)
    dying = office.colleague(failpoints=Trap(point(Commit.DECIDE, side)))
    click = await _stopping(office, first)
    with pytest.raises(Crashed):
        await dying.decide(click)
    found = (
        await office.status(first),
        await office.status(second),
        await office.run_status(working.run_id),
    )
    if side is Side.BEFORE:
        assert found == ("awaiting", "awaiting", "running")
        assert isinstance((await office.decide(click))[0], Recorded)
    else:
        assert found == ("rejected", "withdrawn", "cancelled")
        assert await office.decide(click) == [NoChange(Reason.ALREADY_VOTED)]
