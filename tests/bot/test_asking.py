"""Asking the agent, through Slack: a form, an answer in the thread, and an approval that waits."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from bot.sandbox.blocks import validate_view
from bot.sandbox.delivery import Delivery
from bot.sandbox.model import Message
from executor.domain.operation import OperationStatus
from executor.domain.run import RunStatus
from tests.support.bot_harness import (
    APPROVALS,
    OUTSIDER,
    REQUESTER,
    REVIEWER,
    SECOND,
    Harness,
    make_policy,
)
from tests.support.card_reading import action_ids, literals, outside_literals
from tests.support.fake_model import FakeModel, calls, says

HOSTILE = "<!channel> *bold* `code`\u202e https://evil.example|x"
PROPOSAL: dict[str, Any] = {
    "ticket_id": "4101",
    "language": "en",
    "subject": "Ticket closed",
    "message": "All is well.",
}


@pytest.fixture
async def h(database_url: str) -> AsyncIterator[Harness]:
    async with Harness(database_url) as harness:
        yield harness


async def waiting_card(h: Harness) -> Message:
    await h.start_run("close 4101")
    return await h.settled_card()


async def open_form(h: Harness, who: str, card: Message) -> str:
    """Press Ask and return the form that opens."""
    await h.person(who).click(card.channel, card.ts, "ask")
    opened = h.person(who).view()
    assert opened is not None
    assert opened.view["callback_id"] == "ask"
    return opened.id


async def ask(h: Harness, who: str, card: Message, question: str) -> Delivery:
    form = await open_form(h, who, card)
    return await h.person(who).submit_view(form, {"question": {"text": question}})


def thread(h: Harness, card: Message) -> list[Message]:
    """The bot's messages under a card, oldest first."""
    return [m for m in h.cards() if m.thread_ts == card.ts]


async def test_the_answer_stands_in_the_thread_and_the_card_can_still_be_approved(
    h: Harness,
) -> None:
    card = await waiting_card(h)
    await ask(h, REVIEWER, card, "Why close it now?")
    await h.whispered(REVIEWER, "your question about op_1 goes to the agent")
    assert h.person(REVIEWER).view() is None
    await h.workspace.wait_for(lambda _: thread(h, card))
    [answer] = thread(h, card)
    question, said = literals(answer.blocks)
    assert question == "Why close it now?"
    assert "Ticket 4101" in said
    assert "which nobody has checked" in json.dumps(answer.blocks)
    await h.shown("Answered by the agent, in the thread.")
    assert await h.operations() == [OperationStatus.AWAITING]
    assert "approve" in action_ids(card.blocks)
    await h.person(SECOND).click(card.channel, card.ts, "approve")
    await h.until_operation(OperationStatus.SUCCEEDED)
    await h.until_run(1, RunStatus.SUCCEEDED)
    assert h.mailbox.accepted == 1


async def test_what_people_and_the_agent_write_stays_literal(database_url: str) -> None:
    model = FakeModel(
        [
            says("", calls("read_ticket", {"ticket_id": "4101"})),
            says("", calls("propose_closing", PROPOSAL)),
            says(HOSTILE),
        ]
    )
    async with Harness(database_url, model=model) as h:
        card = await waiting_card(h)
        await ask(h, REVIEWER, card, HOSTILE)
        await h.workspace.wait_for(lambda _: thread(h, card))
        await h.shown("Answered by the agent, in the thread.")
        for message in (card, *thread(h, card)):
            assert "evil.example" in " ".join(literals(message.blocks))
            assert "evil.example" not in outside_literals(message.blocks)
            assert "<!channel>" not in message.text
            assert "\u202e" not in json.dumps(message.blocks, ensure_ascii=False)


async def test_an_answer_that_proposes_anew_replaces_the_card(database_url: str) -> None:
    better = {**PROPOSAL, "message": "All is well now."}
    model = FakeModel(
        [
            says("", calls("read_ticket", {"ticket_id": "4101"})),
            says("", calls("propose_closing", PROPOSAL)),
            says("You are right, I wrote it anew.", calls("propose_closing", better)),
            says("It is closed."),
        ]
    )
    async with Harness(database_url, model=model) as h:
        old = await waiting_card(h)
        await ask(h, REVIEWER, old, "Is that all?")
        await h.until_operation(OperationStatus.SUPERSEDED, OperationStatus.AWAITING)
        new = await h.settled_card(predicate=lambda m: m.ts != old.ts and bool(
            "approve" in action_ids(m.blocks)
        ))  # fmt: skip
        assert "approve" not in action_ids(old.blocks)
        [answer] = thread(h, old)
        assert "You are right" in " ".join(literals(answer.blocks))
        await h.person(SECOND).click(new.channel, new.ts, "approve")
        await h.until_operation(OperationStatus.SUPERSEDED, OperationStatus.SUCCEEDED)
        await h.until_run(1, RunStatus.SUCCEEDED)


async def test_who_may_not_ask_gets_no_form_and_is_told_so(database_url: str) -> None:
    policy = make_policy(people={"requesters": "everyone", "approvers": [REVIEWER]})
    async with Harness(database_url, policy=policy) as h:
        card = await waiting_card(h)
        for who, words in ((SECOND, "You may not decide here"), (OUTSIDER, "another workspace")):
            await h.person(who).click(card.channel, card.ts, "ask")
            await h.whispered(who, words)
            assert h.person(who).view() is None
        # Whoever asked for the run may ask how it goes on, though not approve it.
        await open_form(h, REQUESTER, card)


async def test_a_form_that_comes_too_late_says_so_and_keeps_what_was_typed(h: Harness) -> None:
    card = await waiting_card(h)
    form = await open_form(h, REVIEWER, card)
    await h.person(SECOND).click(card.channel, card.ts, "approve")
    await h.until_operation(OperationStatus.SUCCEEDED)
    late = await h.person(REVIEWER).submit_view(form, {"question": {"text": "Why?"}})
    assert "already" in late.view_errors["question"]
    assert h.person(REVIEWER).view() is not None
    assert await h.rows("SELECT 1 FROM questions") == []
    blank = await h.person(REVIEWER).submit_view(form, {"question": {"text": "  "}})
    assert "write what you want to know" in blank.view_errors["question"]


async def test_a_form_that_is_sent_twice_asks_once(h: Harness) -> None:
    card = await waiting_card(h)
    form = await open_form(h, REVIEWER, card)
    sent = await h.person(REVIEWER).submit_view(form, {"question": {"text": "Why?"}})
    await h.person(REVIEWER).replay(sent)
    await h.workspace.wait_for(lambda _: thread(h, card))
    assert len(await h.rows("SELECT 1 FROM questions")) == 1


async def test_more_questions_than_the_policy_allows_are_refused(database_url: str) -> None:
    async with Harness(database_url, policy=make_policy(run={"max_questions": 1})) as h:
        card = await waiting_card(h)
        await ask(h, REVIEWER, card, "Why?")
        await h.workspace.wait_for(lambda _: thread(h, card))
        await h.person(SECOND).click(card.channel, card.ts, "ask")
        await h.whispered(SECOND, "As many questions as the policy allows")
        assert h.person(SECOND).view() is None


async def test_it_can_be_asked_from_the_full_view(h: Harness) -> None:
    await waiting_card(h)
    person = h.person(REVIEWER)
    await person.slash(APPROVALS, "/signoff", "pending op_1")
    full = person.view()
    assert full is not None
    assert validate_view(full.view) == []
    await person.click_in_view(full.id, "ask")
    form = person.view()
    assert form is not None
    assert form.previous_view_id == full.id
    await person.submit_view(form.id, {"question": {"text": "Why?"}})
    await h.whispered(REVIEWER, "goes to the agent")
    assert person.view() is full, "the full view is there again, to decide in"
