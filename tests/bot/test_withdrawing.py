"""Taking back what one has asked for, through Slack."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest

from bot.operation_value import choice_of, choice_value, operation_of
from bot.sandbox.model import Message
from executor.domain.ids import OperationId
from executor.domain.operation import OperationStatus
from executor.domain.run import RunStatus
from tests.support.bot_harness import REQUESTER, REVIEWER, SECOND, Harness, make_policy
from tests.support.card_reading import action_ids, nodes


@pytest.fixture
async def h(database_url: str) -> AsyncIterator[Harness]:
    async with Harness(database_url) as harness:
        yield harness


async def waiting_card(h: Harness) -> Message:
    await h.start_run("close 4101")
    return await h.settled_card()


async def press(h: Harness, who: str, card: Message, **how: Any) -> None:
    delivery = await h.person(who).click(card.channel, card.ts, "withdraw", **how)
    assert delivery.status == 200


async def test_the_requester_withdraws_it_and_the_agent_is_told(h: Harness) -> None:
    card = await waiting_card(h)
    await press(h, REQUESTER, card)
    await h.whispered(REQUESTER, "op_1 is withdrawn. Nothing of it was done.")
    await h.until_operation(OperationStatus.WITHDRAWN)
    await h.shown("Withdrawn: nothing was done.", "Whoever asked for it has withdrawn it.")
    assert action_ids(card.blocks) == []
    await h.until_run(1, RunStatus.SUCCEEDED)
    [result] = await h.rows(
        "SELECT content -> 'result' ->> 'reason' FROM steps WHERE answers_ordinal IS NOT NULL "
        "ORDER BY number DESC LIMIT 1"
    )
    assert result == ("withdrawn_by_requester",)
    assert h.mailbox.accepted == 0


async def test_nobody_else_withdraws_it_but_an_operator(database_url: str) -> None:
    policy = make_policy(people={"requesters": "everyone", "approvers": [REVIEWER],
                                 "operators": [SECOND]})  # fmt: skip
    async with Harness(database_url, policy=policy) as h:
        card = await waiting_card(h)
        await press(h, REVIEWER, card)
        await h.whispered(REVIEWER, "Only whoever asked for it or an operator can withdraw it.")
        assert await h.operations() == [OperationStatus.AWAITING]
        await press(h, SECOND, card)
        await h.until_operation(OperationStatus.WITHDRAWN)
        await h.shown("An operator has withdrawn it.")


async def test_twice_and_too_late_are_told_so(h: Harness) -> None:
    card = await waiting_card(h)
    stale = len(card.revisions) - 1
    await press(h, REQUESTER, card)
    await h.until_operation(OperationStatus.WITHDRAWN)
    await press(h, REQUESTER, card, revision=stale)
    await h.whispered(REQUESTER, "This was withdrawn and nothing was done.")
    await h.person(REVIEWER).click(card.channel, card.ts, "approve", revision=stale)
    await h.whispered(REVIEWER, "This was withdrawn and nothing was done.")
    assert h.mailbox.accepted == 0


async def test_what_was_sent_cannot_be_withdrawn(h: Harness) -> None:
    card = await waiting_card(h)
    stale = len(card.revisions) - 1
    await h.person(REVIEWER).click(card.channel, card.ts, "approve")
    await h.until_operation(OperationStatus.SUCCEEDED)
    await press(h, REQUESTER, card, revision=stale)
    await h.whispered(REQUESTER, "This has already ended.")
    assert await h.operations() == [OperationStatus.SUCCEEDED]


def test_a_choice_of_a_menu_names_the_action_and_the_operation() -> None:
    operation = OperationId(UUID(int=7))
    assert len(choice_value("withdraw", operation)) <= 75
    assert choice_of(choice_value("withdraw", operation)) == ("withdraw", operation.hex)
    assert operation_of(operation.hex) == operation
    for other in ("", "more", f"withdraw:{operation}", f"with draw:{operation.hex}"):
        assert choice_of(other) is None
        assert operation_of(other) is None


async def test_a_full_row_puts_the_rest_into_a_menu_that_works_the_same(database_url: str) -> None:
    goal = "close 4101 " + "and remember what was agreed " * 40
    async with Harness(database_url) as h:
        await h.start_run(goal)
        card = await h.settled_card()
        found = {n["action_id"]: n for n in nodes(card.blocks) if "action_id" in n}
        assert [a for a in found if a != "more"] == ["approve", "review", "edit", "reject"]
        options = [option["value"] for option in found["more"]["options"]]
        assert [value.partition(":")[0] for value in options] == ["ask", "withdraw"]
        person = h.person(REQUESTER)
        await person.click(card.channel, card.ts, "more", option=options[0])
        opened = person.view()
        assert opened is not None
        assert opened.view["callback_id"] == "ask"
        await person.click(card.channel, card.ts, "more", option=options[1])
        await h.until_operation(OperationStatus.WITHDRAWN)
