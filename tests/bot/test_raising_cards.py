"""A run hits a limit of the budget: people are asked in Slack, and a click lets it go on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from bot.sandbox.model import Message
from executor.domain.operation import OperationStatus
from executor.domain.run import RunStatus
from tests.support.bot_harness import REQUESTER, REVIEWER, SECOND, Harness, make_policy
from tests.support.card_reading import action_ids
from tests.support.fake_model import FakeModel, calls, says
from tests.support.words import press

READ = says("I look first.", calls("read_ticket", {"ticket_id": "4101"}), cost_microusd=600)
LAST = says("That is all.", cost_microusd=600)


def _asks(limit: str) -> Any:
    return lambda m: f"Raise the limit of {limit}" in str(m.blocks)


@pytest.fixture
async def h(database_url: str) -> AsyncIterator[Harness]:
    policy = make_policy(budget={"run_microusd": 1_500})
    model = FakeModel([READ, LAST])
    async with Harness(database_url, policy=policy, model=model) as harness:
        yield harness


async def _asked(h: Harness, limit: str) -> Message:
    card = await h.settled_card(predicate=_asks(limit))
    assert action_ids(card.blocks) == ["approve", "reject"]
    return card


async def test_a_click_raises_the_limit_and_the_run_goes_on_to_its_end(h: Harness) -> None:
    await h.start_run("close 4101")
    card = await _asked(h, "run_1")
    await h.shown("Paused at this run's own limit.", "op_1 asks for a higher limit.")
    await press(h, REVIEWER, card, "approve")
    await h.whispered(REVIEWER, "Recorded: you said to raise the limit (op_1).")
    await h.until_operation(OperationStatus.SUCCEEDED)
    await h.until_run(1, RunStatus.SUCCEEDED)
    await h.shown("The limit was raised.")
    assert action_ids(card.blocks) == []


async def test_whoever_asked_for_the_run_is_told_that_somebody_else_has_to_decide(
    h: Harness,
) -> None:
    await h.start_run("close 4101", by=SECOND)
    card = await _asked(h, "run_1")
    await press(h, SECOND, card, "approve")
    await h.whispered(SECOND, "You asked for this, so somebody else has to approve it.")
    assert await h.operations() == [OperationStatus.AWAITING]
    await press(h, REQUESTER, card, "approve")
    await h.whispered(REQUESTER, "You may not decide here.")
    assert await h.operations() == [OperationStatus.AWAITING]


async def test_a_no_ends_the_run_and_its_message_says_why(h: Harness) -> None:
    await h.start_run("close 4101")
    card = await _asked(h, "run_1")
    await press(h, REVIEWER, card, "reject")
    form = h.person(REVIEWER).view()
    assert form is not None
    assert form.view["title"]["text"] == "Do not raise it"
    await h.person(REVIEWER).submit_view(form.id, {"reason": {"text": "Too much."}})
    await h.whispered(REVIEWER, "Recorded: you said not to raise the limit (op_1).")
    await h.until_run(1, RunStatus.FAILED)
    await h.shown("It may not cost more: nobody has approved a higher limit.", "I look first.")


async def test_two_runs_at_a_days_limit_ask_on_one_card(database_url: str) -> None:
    policy = make_policy(budget={"run_microusd": 90_000, "day_microusd": 1_500})
    model = FakeModel([READ, LAST, LAST])
    async with Harness(database_url, policy=policy, model=model) as h:
        await h.start_run("close 4101")
        await h.until_run(1, RunStatus.PAUSED)
        other = await h.start_run("look at 4102")
        await h.until_run(other, RunStatus.PAUSED)
        waiting = f"run_1, run_{other} wait for it"
        card = await h.settled_card(predicate=lambda m: waiting in str(m.blocks))
        assert len([m for m in h.cards() if _asks("20")(m)]) == 1
        await h.shown("Paused at today's limit for all runs.", "(Europe/Amsterdam)")
        await press(h, REVIEWER, card, "approve")
        await h.until_operation(OperationStatus.SUCCEEDED)
        await h.until_run(1, RunStatus.SUCCEEDED)
        await h.until_run(other, RunStatus.SUCCEEDED)


async def test_a_raise_is_among_what_waits_for_a_person(h: Harness) -> None:
    await h.start_run("close 4101")
    await _asked(h, "run_1")
    delivery = await h.person(REVIEWER).slash("C0APPROVALS", "/signoff", "pending")
    assert "op_1: raise the limit of run_1." in str(delivery.said)


async def test_a_run_that_is_near_its_limit_says_so_once_in_its_own_thread(
    database_url: str,
) -> None:
    policy = make_policy(budget={"run_microusd": 10_000, "warn_at_percent": 5})
    async with Harness(database_url, policy=policy, model=FakeModel([READ, LAST])) as h:
        await h.start_run("close 4101")
        await h.until_run(1, RunStatus.SUCCEEDED)
        warning = await h.card(lambda m: "run_1 has used 6 % of its limit." in str(m.blocks))
        word = await h.word("run_1")
        assert warning.thread_ts == word.ts
        assert len([m for m in h.cards() if "of its limit" in str(m.blocks)]) == 1
