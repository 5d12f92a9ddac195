"""Reject and stop, through Slack: one form, one commit, and the truth about what goes on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from bot.sandbox.delivery import Delivery
from bot.sandbox.model import Message
from executor.domain.operation import OperationStatus
from executor.domain.policy import Policy
from executor.domain.run import RunStatus
from tests.support.bot_harness import REVIEWER, SECOND, Harness, policy_document
from tests.support.card_reading import nodes

_TICKED = {"selected_options": [{"value": "stop_run"}]}


@pytest.fixture
async def h(database_url: str) -> AsyncIterator[Harness]:
    async with Harness(database_url) as harness:
        yield harness


async def waiting_card(h: Harness) -> Message:
    await h.start_run("close 4101")
    return await h.settled_card()


async def form_of(h: Harness, who: str, card: Message) -> Any:
    await h.person(who).click(card.channel, card.ts, "reject")
    opened = h.person(who).view()
    assert opened is not None
    return opened


async def reject(h: Harness, who: str, card: Message, *, stops: bool) -> Delivery:
    form = await form_of(h, who, card)
    values: dict[str, Any] = {"reason": {"text": "Not like this."}}
    if stops:
        values["stop"] = {"choice": _TICKED}
    return await h.person(who).submit_view(form.id, values)


async def test_a_rejection_may_stop_the_run_as_well(h: Harness) -> None:
    card = await waiting_card(h)
    await reject(h, REVIEWER, card, stops=True)
    await h.until_run(1, RunStatus.CANCELLED)
    await h.until_operation(OperationStatus.REJECTED)
    told = await h.whispered(REVIEWER, "you rejected op_1")
    assert "run_1 was stopped with it" in told
    assert "the agent is told why" not in told
    await h.shown("Rejected: nothing was done.", "A proposal was rejected and the run stopped")
    assert h.person(REVIEWER).view() is None


async def test_without_the_tick_the_agent_reads_why_and_goes_on(h: Harness) -> None:
    card = await waiting_card(h)
    await reject(h, REVIEWER, card, stops=False)
    await h.whispered(REVIEWER, "the agent is told why")
    await h.until_operation(OperationStatus.REJECTED, OperationStatus.AWAITING)
    await h.until_run(1, RunStatus.WAITING)


async def test_a_stop_that_comes_too_late_says_that_the_run_goes_on(h: Harness) -> None:
    card = await waiting_card(h)
    form = await form_of(h, REVIEWER, card)
    await reject(h, SECOND, card, stops=False)
    await h.until_operation(OperationStatus.REJECTED, OperationStatus.AWAITING)
    await h.person(REVIEWER).submit_view(
        form.id, {"reason": {"text": "No."}, "stop": {"choice": _TICKED}}
    )
    told = await h.whispered(REVIEWER, "was already rejected by")
    assert "run_1 was not stopped; `/signoff cancel run_1` stops it." in told
    assert await h.value("SELECT status FROM runs") != "cancelled"


async def test_who_may_reject_but_not_stop_is_told_under_the_choice(database_url: str) -> None:
    document = policy_document(
        roles={"legal": {"members": [SECOND]}}, people={"approvers": [REVIEWER]}
    )
    rule = {"name": "legal", "approvers": ["role:legal"]}
    policy = Policy.model_validate({**document, "rules": [rule]})
    async with Harness(database_url, policy=policy) as h:
        card = await waiting_card(h)
        answer = await reject(h, SECOND, card, stops=True)
        assert "You may not cancel runs here" in answer.view_errors["stop"]
        assert await h.decisions() == []
        form = h.person(SECOND).view()
        assert form is not None, "what was typed is still there"
        await h.person(SECOND).submit_view(form.id, {"reason": {"text": "Not like this."}})
        await h.whispered(SECOND, "you rejected op_1")
        assert await h.value("SELECT status FROM runs") != "cancelled"


async def test_the_form_offers_it_where_somebody_drives_the_run(h: Harness) -> None:
    form = await form_of(h, REVIEWER, await waiting_card(h))
    [choice] = [n for n in nodes(form.view["blocks"]) if n.get("type") == "checkboxes"]
    assert [option["value"] for option in choice["options"]] == ["stop_run"]
