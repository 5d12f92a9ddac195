"""``/signoff pending``: what waits for whoever asks, and the full view that it is decided in."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from uuid import UUID

import pytest

from bot.cards import view_digest
from bot.sandbox.model import Ephemeral, Message, OpenView
from bot.view_origin import ViewOrigin
from executor.domain.operation import OperationStatus
from executor.domain.policy import Policy
from executor.engine.setup import activate_policy
from tests.support.bot_harness import (
    APPROVALS,
    OUTSIDER,
    REQUESTER,
    REVIEWER,
    SECOND,
    SUPPORT,
    Harness,
    make_policy,
    policy_document,
)
from tests.support.card_reading import action_ids


@pytest.fixture
async def h(database_url: str) -> AsyncIterator[Harness]:
    async with Harness(database_url) as harness:
        yield harness


async def pending(h: Harness, who: str, text: str = "", *, channel: str = SUPPORT) -> str:
    delivery = await h.person(who).slash(channel, "/signoff", f"pending {text}")
    assert delivery.status == 200
    return delivery.said or ""


def listed(h: Harness, who: str) -> Ephemeral:
    """The newest private list of somebody."""
    return [e for e in h.person(who).ephemerals() if e.blocks][-1]


def view(h: Harness, who: str) -> OpenView:
    opened = h.person(who).view()
    assert opened is not None
    return opened


def _asks_about(message: Message, ticket: str) -> bool:
    return "approve" in action_ids(message.blocks) and ticket in json.dumps(message.blocks)


async def two_waiting(h: Harness) -> None:
    for ticket in ("4101", "4102"):
        await h.start_run(f"close {ticket}")
        await h.settled_card(predicate=lambda m, t=ticket: _asks_about(m, t))
    await h.until_operation(OperationStatus.AWAITING, OperationStatus.AWAITING)


async def test_it_lists_what_one_can_still_decide_with_the_first_deadline_first(
    h: Harness,
) -> None:
    await two_waiting(h)
    await h.rows(
        "UPDATE approvals a SET decide_by = decide_by - interval '1 hour' FROM operations o "
        "WHERE o.id = a.operation_id AND o.ticket_id = '4102' RETURNING 1"
    )
    said = await pending(h, REVIEWER)
    assert "2 decisions wait for you" in said
    assert said.index("close ticket 4102") < said.index("close ticket 4101")
    assert action_ids(listed(h, REVIEWER).blocks) == ["review", "review"]
    assert "Nothing waits" in await pending(h, REQUESTER)
    # Whoever has voted, and whose vote cannot count, is not asked again.
    card = await h.card(lambda m: _asks_about(m, "4101"))
    await h.person(REVIEWER).click(APPROVALS, card.ts, "approve")
    await h.until(h.operations, lambda found: OperationStatus.AWAITING in found
                  and len(set(found)) == 2)  # fmt: skip
    assert "1 decision waits for you" in await pending(h, REVIEWER)


async def test_what_one_has_asked_for_oneself_waits_for_others(database_url: str) -> None:
    policy = make_policy(people={"requesters": "everyone", "approvers": [REQUESTER, REVIEWER]})
    async with Harness(database_url, policy=policy) as h:
        await h.start_run("close 4101")
        await h.settled_card()
        assert "Nothing waits" in await pending(h, REQUESTER)
        assert "1 decision waits for you" in await pending(h, REVIEWER)


async def test_one_who_voted_below_the_quorum_is_not_asked_again(database_url: str) -> None:
    policy = make_policy(approval={"quorum": 2})
    async with Harness(database_url, policy=policy) as h:
        await h.start_run("close 4101")
        card = await h.settled_card()
        await h.person(REVIEWER).click(card.channel, card.ts, "approve")
        await h.shown("1 more approval needed: one of the approvers.")
        assert "Nothing waits" in await pending(h, REVIEWER)
        assert "1 decision waits" in await pending(h, SECOND)


def _legal(member: str) -> Policy:
    """A policy that asks one approver, and beside that somebody of a role of its own."""
    document = policy_document(roles={"legal": {"members": [member]}})
    rule = {"name": "legal", "approvers": ["role:legal"]}
    return Policy.model_validate({**document, "rules": [rule]})


async def test_one_is_asked_only_for_a_requirement_that_is_not_met_yet(database_url: str) -> None:
    async with Harness(database_url, policy=_legal(SECOND)) as h:
        await h.start_run("close 4101")
        card = await h.settled_card()
        await h.shown("2 approvals needed: one of the approvers, one of role legal.")
        assert "1 decision waits" in await pending(h, REVIEWER)
        await h.person(SECOND).click(card.channel, card.ts, "approve")
        await h.until_operation(OperationStatus.SUCCEEDED)
        await h.start_run("close 4102")
        other = await h.settled_card(predicate=lambda m: "4102" in json.dumps(m.blocks)
                                     and "approve" in action_ids(m.blocks))  # fmt: skip
        await h.person(REVIEWER).click(other.channel, other.ts, "approve")
        await h.shown("Approved so far by @U0REVIEWER. 1 more approval needed: one of role legal.")
        assert "1 decision waits" in await pending(h, SECOND)
        await activate_policy(h.engine, _legal(REQUESTER))
        assert "Nothing waits" in await pending(h, SECOND)


async def test_review_opens_all_of_it_and_the_vote_is_on_exactly_that(h: Harness) -> None:
    await h.start_run("close 4101")
    card = await h.settled_card()
    await pending(h, REVIEWER)
    person, private = h.person(REVIEWER), listed(h, REVIEWER)
    await person.click(SUPPORT, private.ts, "review")
    opened = view(h, REVIEWER)
    assert opened.view["submit"]["text"] == "Approve"
    assert action_ids(opened.view["blocks"]) == ["reject", "ask"]
    origin = ViewOrigin.decode(opened.view["private_metadata"])
    assert origin is not None
    assert (origin.channel, origin.message_ts) == (card.channel, card.ts)
    await person.submit_view(opened.id)
    await h.until_operation(OperationStatus.SUCCEEDED)
    [(digest, shown_at)] = await h.rows("SELECT view_digest, shown_at FROM decisions")
    assert shown_at == {"channel": card.channel, "ts": card.ts, "modal": origin.modal.hex}  # type: ignore[union-attr]
    [(blocks, stored)] = await h.rows(
        "SELECT v.blocks, v.view_digest FROM card_views v JOIN modal_views m USING (view_digest)"
    )
    assert bytes(digest) == bytes(stored) == view_digest(blocks)
    assert "Close ticket 4101" in json.dumps(blocks)


async def test_a_rejection_in_the_full_view_closes_all_of_it(h: Harness) -> None:
    await h.start_run("close 4101")
    await h.settled_card()
    person = h.person(REVIEWER)
    await pending(h, REVIEWER, "op_1")
    full = view(h, REVIEWER)
    await person.click_in_view(full.id, "reject")
    reason = view(h, REVIEWER)
    assert reason.previous_view_id == full.id
    await person.submit_view(reason.id, {"reason": {"text": "Too short."}})
    await h.until(h.decisions, bool)
    assert person.view() is None
    assert await h.decisions() == [("slack:TSIGNOFF:U0REVIEWER", "reject")]


async def test_a_modal_that_was_not_shown_to_this_person_counts_for_nothing(h: Harness) -> None:
    await h.start_run("close 4101")
    await h.settled_card()
    await pending(h, REVIEWER, "op_1")
    theirs = view(h, REVIEWER)
    forged = h.workspace.open_view(SECOND, theirs.view)
    await h.person(SECOND).submit_view(forged.id)
    await h.whispered(SECOND, "This has not been shown in Slack yet.")
    origin = ViewOrigin.decode(theirs.view["private_metadata"])
    assert origin is not None
    invented = ViewOrigin(origin.value, origin.channel, origin.message_ts, UUID(int=7))
    unknown = {**theirs.view, "private_metadata": invented.encode()}
    await h.person(REVIEWER).submit_view(h.workspace.open_view(REVIEWER, unknown).id)
    await h.whispered(REVIEWER, "This has not been shown in Slack yet.")
    assert await h.decisions() == []
    assert await h.operations() == [OperationStatus.AWAITING]


async def test_a_modal_over_a_replaced_content_decides_nothing(h: Harness) -> None:
    await h.start_run("close 4101")
    await h.settled_card()
    await pending(h, REVIEWER, "op_1")
    await h.rows("UPDATE approvals SET content_revision = 2 RETURNING 1")
    await h.person(REVIEWER).submit_view(view(h, REVIEWER).id)
    await h.whispered(REVIEWER, "The content has changed since you looked.")
    assert await h.decisions() == []


async def test_what_does_not_exist_and_who_does_not_belong_here_are_told_so(h: Harness) -> None:
    assert "There is no such operation" in await pending(h, REVIEWER, "op_9")
    assert "There is no such operation" in await pending(h, REVIEWER, "what")
    assert "another workspace" in await pending(h, OUTSIDER)
    assert h.person(REVIEWER).view() is None
