"""K4: who may decide is asked of the policy and of Slack, at every way in, by the same rule."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from bot.button_value import ButtonValue
from bot.cards import CardPainter, card_environment
from bot.sandbox.model import Message
from bot.view_origin import ViewOrigin
from executor.domain.operation import OperationStatus
from executor.engine.setup import activate_policy
from tests.support.bot_harness import (
    APPROVALS,
    GUEST,
    OUTSIDER,
    REQUESTER,
    REVIEWER,
    SECOND,
    Harness,
    make_policy,
)
from tests.support.card_reading import nodes


@pytest.fixture
async def h(database_url: str) -> AsyncIterator[Harness]:
    async with Harness(database_url) as harness:
        yield harness


async def waiting_card(h: Harness) -> Message:
    await h.start_run("close 4101")
    return await h.settled_card()


async def press(h: Harness, who: str, card: Message, action: str = "approve") -> None:
    delivery = await h.person(who).click(card.channel, card.ts, action)
    assert delivery.status == 200


async def refusals(h: Harness) -> list[tuple[str, str]]:
    return [(note["actor"], note["reason"]) for note in await h.notes("decision_refused")]


async def test_b038_a_requester_does_not_approve_their_own_request(database_url: str) -> None:
    policy = make_policy(people={"requesters": "everyone", "approvers": [REQUESTER, REVIEWER]})
    async with Harness(database_url, policy=policy) as h:
        card = await waiting_card(h)
        await press(h, REQUESTER, card)
        await h.whispered(REQUESTER, "somebody else has to approve it")
        assert await h.operations() == [OperationStatus.AWAITING]
        assert await refusals(h) == [("slack:TSIGNOFF:U0REQUESTER", "own_request")]
        await press(h, REVIEWER, card)
        await h.until_operation(OperationStatus.SUCCEEDED)


async def test_b040_every_way_in_is_barred_by_the_same_rule(database_url: str) -> None:
    policy = make_policy(people={"requesters": [REQUESTER], "approvers": [REVIEWER]})
    async with Harness(database_url, policy=policy) as h:
        card = await waiting_card(h)
        sam = h.person(SECOND)
        await press(h, SECOND, card, "approve")
        await press(h, SECOND, card, "reject")
        assert sam.view() is None, "no form is put before somebody who may not decide"
        await sam.submit_view(open_reason(h, card, SECOND), {"reason": {"text": "No!"}})
        said = (await sam.slash(APPROVALS, "/signoff", "run close 4102")).said
        assert "You may not start runs here" in (said or "")
        said = (await sam.slash(APPROVALS, "/signoff", "cancel run_1")).said
        assert "You may not cancel runs here" in (said or "")
        assert await refusals(h) == [("slack:TSIGNOFF:U0SECOND", "not_permitted")] * 4
        await h.workspace.wait_for(
            lambda _: len([e for e in sam.ephemerals() if "You may not decide" in e.text]) >= 3
        )
        assert await h.decisions() == []
        assert await h.numbers() == {1}
        assert await h.operations() == [OperationStatus.AWAITING]


def open_reason(h: Harness, card: Message, user: str) -> str:
    """Put the form for a reason on somebody's screen, as if it had been opened for them."""
    [button] = [n for n in nodes(card.blocks) if n.get("action_id") == "reject"]
    value = ButtonValue.decode(button["value"])
    assert value is not None
    view = dict(CardPainter(card_environment()).draw_reject_modal(value))
    view["private_metadata"] = ViewOrigin(value, card.channel, card.ts).encode()
    return h.workspace.open_view(user, view).id


async def test_b044_a_removed_approver_does_not_decide_an_older_card(h: Harness) -> None:
    card = await waiting_card(h)
    await activate_policy(h.engine, make_policy(people={"approvers": [SECOND]}))
    await press(h, REVIEWER, card)
    await h.whispered(REVIEWER, "You may not decide here")
    assert await h.operations() == [OperationStatus.AWAITING]
    await press(h, SECOND, card)
    assert await h.decisions() == [("slack:TSIGNOFF:U0SECOND", "approve")]


async def test_somebody_of_another_workspace_decides_nothing_even_if_the_policy_names_them(
    database_url: str,
) -> None:
    policy = make_policy(people={"approvers": [REVIEWER, OUTSIDER]})
    async with Harness(database_url, policy=policy) as h:
        card = await waiting_card(h)
        await press(h, OUTSIDER, card)
        await h.whispered(OUTSIDER, "You belong to another workspace")
        assert await refusals(h) == [("slack:TOUTSIDE:U0OUTSIDER", "other_workspace")]
        said = (await h.person(OUTSIDER).slash(APPROVALS, "/signoff", "run close 4102")).said
        assert "You belong to another workspace" in (said or "")
        assert await h.numbers() == {1}
        assert await h.operations() == [OperationStatus.AWAITING]


async def test_a_guest_decides_nothing_even_if_the_policy_names_them(database_url: str) -> None:
    async with Harness(
        database_url, policy=make_policy(people={"approvers": [REVIEWER, GUEST]})
    ) as h:
        card = await waiting_card(h)
        await press(h, GUEST, card)
        await h.whispered(GUEST, "guests may not act here")
        said = (await h.person(GUEST).slash(APPROVALS, "/signoff", "run close 4102")).said
        assert "guests may not act here" in (said or "")
        assert await h.operations() == [OperationStatus.AWAITING]


async def test_a_person_deactivated_since_decides_nothing(h: Harness) -> None:
    card = await waiting_card(h)
    await press(h, REVIEWER, card, "reject")
    view = h.person(REVIEWER).view()
    assert view is not None
    h.workspace.users[REVIEWER].deleted = True
    await h.move_time(timedelta(seconds=61))
    await h.person(REVIEWER).submit_view(view.id, {"reason": {"text": "No"}})
    await h.whispered(REVIEWER, "deactivated accounts may not act here")
    assert await h.decisions() == []


async def test_somebody_whom_slack_does_not_know_decides_nothing(h: Harness) -> None:
    card = await waiting_card(h)
    rene = h.person(REVIEWER)
    del h.workspace.users[REVIEWER]
    assert (await rene.click(card.channel, card.ts, "approve")).status == 200
    await h.until(lambda: refusals(h), bool)
    assert await h.decisions() == []


async def test_b048_the_card_and_the_record_say_who_approved(h: Harness) -> None:
    card = await waiting_card(h)
    await press(h, REVIEWER, card)
    await h.workspace.wait_for(lambda _: "Done." in str(card.blocks))
    people = [n["user_id"] for n in nodes(card.blocks) if n.get("type") == "user"]
    assert REVIEWER in people
    [vote] = await h.notes("voted")
    assert vote["actor"] == "slack:TSIGNOFF:U0REVIEWER"
    assert vote["digest"] == await h.value("SELECT encode(digest, 'hex') FROM operations")
    assert vote["ts"] == card.ts
    h.workspace.users[REVIEWER].name = "somebody-else"
    assert (await h.notes("voted")) == [vote]


async def test_two_people_are_needed_where_the_policy_says_so(database_url: str) -> None:
    async with Harness(database_url, policy=make_policy(approval={"quorum": 2})) as h:
        card = await waiting_card(h)
        await press(h, REVIEWER, card)
        await h.whispered(REVIEWER, "It needs 1 more approval")
        await h.card()
        await press(h, REVIEWER, card)
        await h.whispered(REVIEWER, "Your vote is already recorded")
        assert await h.operations() == [OperationStatus.AWAITING]
        await press(h, SECOND, card)
        await h.until_operation(OperationStatus.SUCCEEDED)
        assert h.mailbox.accepted == 1
