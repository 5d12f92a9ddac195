"""Whoever asked for something can take it back, as long as nothing of it was done."""

from __future__ import annotations

import uuid

import pytest

from executor.domain.approval import Vote
from executor.domain.ids import OperationId, PrincipalId
from executor.domain.transition import NoChange, Reason, Refused
from executor.engine.failpoint import Commit, Side, point
from executor.engine.setup import activate_policy
from executor.engine.waking import wake
from executor.engine.withdrawing import (
    Withdrawal,
    Withdrawn,
    WithdrawResult,
    read_back,
    withdraw,
)
from tests.support.failpoints import Crashed, Trap
from tests.support.office import CHANNEL, RENE, RIKO, SAM, TENANT, Office, policy
from tests.support.working import Working


def _wish(operation: OperationId, who: PrincipalId = RIKO) -> Withdrawal:
    return Withdrawal(
        TENANT, operation, who, CHANNEL, who.rsplit(":", 1)[-1], uuid.uuid4().bytes * 2
    )


async def _withdraw(
    office: Office, operation: OperationId, who: PrincipalId = RIKO
) -> WithdrawResult:
    return await withdraw(office.engine, _wish(operation, who))


async def _number(office: Office, operation: OperationId) -> int:
    return int(
        await office.value(
            "SELECT number FROM operations WHERE tenant_id = :t AND id = :id", operation
        )
    )


async def test_the_requester_withdraws_what_waits_and_the_run_is_told(office: Office) -> None:
    operation = await office.proposed()
    run_id = await office.run_of(operation)
    assert await _withdraw(office, operation) == Withdrawn(await _number(office, operation))
    assert await office.status(operation) == "withdrawn"
    assert await office.reason(operation) == "withdrawn_by_requester"
    assert await office.rows("SELECT status FROM approvals") == [("withdrawn",)]
    assert ("taken_back", RIKO, "withdrawn") in await office.events(run_id)
    assert await office.rows("SELECT answer ->> 'kind' FROM notices") == [("withdrawn",)]
    await wake(office.engine)
    working = Working(office, run_id)
    await office.later(seconds=31)
    await working.drive(owner="w2")
    [told] = await working.told()
    assert (told["status"], told["reason"]) == ("withdrawn", "withdrawn_by_requester")
    assert "withdrawn by the requester" in str(told["message"])


async def test_what_was_approved_and_not_opened_can_still_be_withdrawn(office: Office) -> None:
    operation = await office.approved()
    assert isinstance(await _withdraw(office, operation), Withdrawn)
    assert await office.claim_operations() == []
    assert await office.rows("SELECT status FROM approvals") == [("withdrawn",)]


async def test_what_is_being_sent_cannot_be_withdrawn(office: Office) -> None:
    claimed, _ = await office.opened()
    operation = claimed.claim.key[1]
    assert await _withdraw(office, operation) == Refused(Reason.ALREADY_SENDING)
    assert await office.status(operation) == "executing"
    assert await office.rows("SELECT answer ->> 'reason' FROM notices ORDER BY created_at DESC "
                             "LIMIT 1") == [("already_sending",)]  # fmt: skip


@pytest.mark.parametrize(
    ("vote", "reason"), [(Vote.REJECT, Reason.ALREADY_DENIED), (None, Reason.WITHDRAWN)]
)
async def test_what_has_ended_is_told_so(office: Office, vote: Vote | None, reason: Reason) -> None:
    operation = await office.proposed()
    if vote is None:
        await _withdraw(office, operation)
    else:
        await office.click(operation, RENE, vote)
    assert await _withdraw(office, operation) == Refused(reason)


async def test_nobody_else_withdraws_it_but_an_operator_does(office: Office) -> None:
    operation = await office.proposed()
    assert await _withdraw(office, operation, SAM) == Refused(Reason.NOT_YOURS_TO_WITHDRAW)
    assert await office.status(operation) == "awaiting"
    refused = await office.events(await office.run_of(operation))
    assert ("decision_refused", SAM, None) in refused
    people = {
        "requesters": ["U0REQUESTER"], "approvers": ["U0REVIEWER"], "operators": ["U0SECOND"],
    }  # fmt: skip
    await activate_policy(office.engine, policy(people=people))
    assert isinstance(await _withdraw(office, operation, SAM), Withdrawn)
    assert await office.reason(operation) == "withdrawn_by_operator"


async def test_a_requester_of_whom_slack_says_nothing_fresh_is_refused(office: Office) -> None:
    operation = await office.proposed()
    await office.later_unseen(minutes=10)
    refused = await _withdraw(office, operation)
    assert isinstance(refused, Refused)
    assert refused.reason is Reason.IDENTITY_UNKNOWN
    assert await office.status(operation) == "awaiting"


async def test_the_same_request_twice_withdraws_once(office: Office) -> None:
    operation = await office.proposed()
    wish = _wish(operation)
    assert isinstance(await withdraw(office.engine, wish), Withdrawn)
    assert await withdraw(office.engine, wish) == NoChange()
    assert await office.rows("SELECT count(*) FROM notices") == [(1,)]


async def test_a_vote_that_was_on_its_way_is_refused_afterwards(office: Office) -> None:
    operation = await office.proposed()
    click = await office.click_for(operation)
    await _withdraw(office, operation)
    [late] = await office.decide(click)
    assert isinstance(late, Refused)
    assert late.reason is Reason.WITHDRAWN


@pytest.mark.parametrize("side", list(Side))
async def test_a_crash_around_the_commit_leaves_all_or_nothing(office: Office, side: Side) -> None:
    operation, wish = await office.proposed(), None
    wish = _wish(operation)
    dying = office.colleague(failpoints=Trap(point(Commit.WITHDRAW, side)))
    with pytest.raises(Crashed):
        await withdraw(dying.engine, wish)
    if side is Side.BEFORE:
        assert await office.status(operation) == "awaiting"
        assert isinstance(await withdraw(office.engine, wish), Withdrawn)
    else:
        assert await office.status(operation) == "withdrawn"
        assert await read_back(office.engine, wish) == Withdrawn(await _number(office, operation))
        assert await withdraw(office.engine, wish) == NoChange()
