"""K4, where the right to decide comes from a grant: given, passed on, limited, and taken back."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from bot.sandbox.model import Message
from executor.domain.ids import operator_principal, slack_principal
from executor.domain.operation import OperationStatus
from executor.engine.grant_reading import local_time
from executor.engine.granting import Given, TakenBack, Wish, give, take_back
from tests.support.bot_harness import (
    APPROVALS,
    REQUESTER,
    REVIEWER,
    SECOND,
    Harness,
    make_policy,
)
from tests.support.card_reading import nodes

TEAM = "TSIGNOFF"
ADA = operator_principal("ada")
PEOPLE = {"requesters": "everyone", "approvers": [REVIEWER]}
POLICY = make_policy(people=PEOPLE)


async def now(h: Harness) -> datetime:
    return (await local_time(h.engine, POLICY.tenant_id)).now


async def given(
    h: Harness, user: str, role: str = "approver", *, behalf: str | None = None, on: str = "*"
) -> int:
    """Give a role as an operator; what is passed on ends in an hour."""
    wish = Wish(
        slack_principal(TEAM, user),
        role,
        on,
        ends_at=None if behalf is None else await now(h) + timedelta(hours=1),
        on_behalf_of=None if behalf is None else slack_principal(TEAM, behalf),
    )
    result = await give(h.engine, POLICY.tenant_id, ADA, wish)
    assert isinstance(result, Given), result
    return result.number


async def revoked(h: Harness, number: int) -> None:
    assert isinstance(await take_back(h.engine, POLICY.tenant_id, ADA, number), TakenBack)


async def press(h: Harness, who: str, card: Message) -> None:
    assert (await h.person(who).click(card.channel, card.ts, "approve")).status == 200


async def waiting_card(h: Harness, goal: str = "close 4101", by: str = REQUESTER) -> Message:
    await h.start_run(goal, by=by)
    return await h.settled_card()


async def test_b038_a_role_by_grant_lets_nobody_approve_their_own_request(
    database_url: str,
) -> None:
    async with Harness(database_url, policy=POLICY) as h:
        await given(h, REQUESTER)
        card = await waiting_card(h)
        await press(h, REQUESTER, card)
        await h.whispered(REQUESTER, "somebody else has to approve it")
        assert await h.operations() == [OperationStatus.AWAITING]
        await press(h, REVIEWER, card)
        await h.until_operation(OperationStatus.SUCCEEDED)


async def test_b038_nobody_approves_on_behalf_of_whoever_asked(database_url: str) -> None:
    async with Harness(database_url, policy=POLICY) as h:
        await given(h, SECOND, behalf=REVIEWER)
        card = await waiting_card(h, by=REVIEWER)
        await press(h, SECOND, card)
        await h.whispered(SECOND, "somebody else has to approve it")
        assert await h.operations() == [OperationStatus.AWAITING]
        assert await h.decisions() == []


async def test_b044_a_revoked_grant_does_not_decide_an_older_card(database_url: str) -> None:
    async with Harness(database_url, policy=POLICY) as h:
        number = await given(h, SECOND)
        card = await waiting_card(h)
        await revoked(h, number)
        await press(h, SECOND, card)
        await h.whispered(SECOND, "You may not decide here")
        assert await h.operations() == [OperationStatus.AWAITING]
        await press(h, REVIEWER, card)
        await h.until_operation(OperationStatus.SUCCEEDED)


@pytest.mark.parametrize("passed_on", [False, True])
async def test_b045_a_grant_revoked_between_approval_and_start_stops_it(
    database_url: str, passed_on: bool
) -> None:
    async with Harness(database_url, policy=POLICY) as h:
        number = await given(h, SECOND, behalf=REVIEWER if passed_on else None)
        card = await waiting_card(h)
        await h.workers[0].stop()
        await press(h, SECOND, card)
        await h.until_operation(OperationStatus.APPROVED)
        await revoked(h, number)
        await h.start_worker()
        await h.until_operation(OperationStatus.STALE)
        assert h.mailbox.accepted == 0
        await h.shown("You may not decide here")
        [moved] = await h.notes("revoked")
        assert moved["actor"] == ADA


async def test_b046_a_role_for_one_ticket_is_not_stretched_to_another(database_url: str) -> None:
    async with Harness(database_url, policy=POLICY) as h:
        await given(h, SECOND, on="ticket:builtin:4101")
        card = await waiting_card(h)
        await press(h, SECOND, card)
        await h.until_operation(OperationStatus.SUCCEEDED)
        other = await waiting_card(h, "close 4102")
        assert other.ts != card.ts
        await press(h, SECOND, other)
        await h.whispered(SECOND, "You may not decide here")
        assert await h.operations() == [OperationStatus.SUCCEEDED, OperationStatus.AWAITING]
        assert h.mailbox.accepted == 1


async def test_b046_a_role_that_ended_decides_nothing_more(database_url: str) -> None:
    async with Harness(database_url, policy=POLICY) as h:
        await given(h, SECOND, behalf=REVIEWER)
        await press(h, SECOND, await waiting_card(h))
        await h.until_operation(OperationStatus.SUCCEEDED)
        await h.move_time(timedelta(hours=1))
        await press(h, SECOND, await waiting_card(h, "close 4102"))
        await h.whispered(SECOND, "You may not decide here")
        assert await h.operations() == [OperationStatus.SUCCEEDED, OperationStatus.AWAITING]


async def test_b047_the_right_that_is_asked_for_is_the_one_that_is_looked_at(
    database_url: str,
) -> None:
    policy = make_policy(people={"requesters": [REQUESTER], "approvers": [REVIEWER]})
    async with Harness(database_url, policy=policy) as h:
        await given(h, SECOND, "operator")
        await given(h, SECOND, "requester")
        card = await waiting_card(h)
        await press(h, SECOND, card)
        await h.whispered(SECOND, "You may not decide here")
        said = (await h.person(SECOND).slash(APPROVALS, "/signoff", "grants")).said
        assert "grant 1:" in (said or "")
        number = await given(h, SECOND)
        await press(h, SECOND, card)
        await h.until_operation(OperationStatus.SUCCEEDED)
        assert await h.decisions() == [(f"slack:{TEAM}:{SECOND}", "approve")]
        refused = await h.notes("decision_refused")
        assert [note["reason"] for note in refused] == ["not_permitted"]
        await revoked(h, number)


async def test_b048_the_record_says_on_whose_behalf_somebody_approved(database_url: str) -> None:
    async with Harness(database_url, policy=POLICY) as h:
        await given(h, SECOND, behalf=REVIEWER)
        card = await waiting_card(h)
        await press(h, SECOND, card)
        await h.until_operation(OperationStatus.SUCCEEDED)
        rows = await h.rows("SELECT principal, on_behalf_of FROM decisions")
        assert [tuple(row) for row in rows] == [
            (f"slack:{TEAM}:{SECOND}", f"slack:{TEAM}:{REVIEWER}")
        ]
        await h.workspace.wait_for(lambda _: "Done." in str(card.blocks))
        people = [n["user_id"] for n in nodes(card.blocks) if n.get("type") == "user"]
        assert SECOND in people
