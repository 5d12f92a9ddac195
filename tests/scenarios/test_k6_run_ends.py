"""K6 for whole runs: where one was asked for it is told how it ended and what came of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from bot.sandbox.mailbox_faults import Fault as MailFault
from bot.sandbox.mailbox_faults import Hang, Point
from bot.sandbox.model import Message
from bot.sandbox.scripted_person import rendered
from executor.domain.operation import OperationStatus
from executor.domain.run import RunStatus
from tests.support.bot_harness import (
    REQUESTER,
    REVIEWER,
    SUPPORT,
    Harness,
    make_policy,
    proposing,
)
from tests.support.card_reading import action_ids
from tests.support.fake_model import FakeModel, calls, says

READ = says("", calls("read_ticket", {"ticket_id": "4101"}))


@asynccontextmanager
async def asked_in_a_thread(database_url: str, **given: Any) -> AsyncIterator[Harness]:
    """A run that somebody asked for by a mention; what it says stands in that thread."""
    async with Harness(database_url, **given) as h:
        await h.person(REQUESTER).mention(SUPPORT, "close 4101")
        yield h


async def told(h: Harness, *words: str) -> Message:
    """Wait until the run's one message, in the thread where it was asked for, says all of these."""

    def says_so(_: object) -> bool:
        said = h.words(SUPPORT)
        return len(said) == 1 and all(word in rendered(said[0]) for word in words)

    try:
        await h.workspace.wait_for(says_so, 15)
    except TimeoutError:
        raise AssertionError([rendered(message) for message in h.words(SUPPORT)]) from None
    [message] = h.words(SUPPORT)
    [asked] = [m for m in h.workspace.visible(SUPPORT) if m.user == REQUESTER]
    assert message.thread_ts == asked.ts
    return message


async def test_a_cancel_during_the_sending_says_that_it_may_have_been_sent_and_then_the_truth(
    database_url: str,
) -> None:
    async with asked_in_a_thread(database_url) as h:
        card = await h.settled_card()
        h.mailbox.fail(MailFault(Point.FINAL, Hang()))
        await h.person(REVIEWER).click(card.channel, card.ts, "approve")
        await h.mailbox.wait_for_hang()
        await h.person(REQUESTER).slash(SUPPORT, "/signoff", "cancel run_1")
        await told(
            h,
            "Being cancelled.",
            "Not known yet",
            "op_1: ticket 4101 closed, email may have been sent",
        )
        h.mailbox.release()
        await h.until_run(1, RunStatus.CANCELLED)
        last = await told(h, "Cancelled.", "Done", "op_1: ticket 4101 closed, email sent")
        assert "may have been" not in rendered(last)


async def test_a_cancel_during_a_model_call_is_told_at_once(database_url: str) -> None:
    async with asked_in_a_thread(database_url, model=proposing(held=True)) as h:
        assert isinstance(h.model, FakeModel)
        await h.model.wait_called()
        await told(h, "Working.")
        await h.person(REQUESTER).slash(SUPPORT, "/signoff", "cancel run_1")
        await told(h, "Cancelled.", "The run was cancelled", "Done\n- Nothing.")
        held = await h.value("SELECT held_microusd + spent_microusd FROM run_budgets")
        assert held > 0, "the call was made, so that it stays counted"
        h.model.release(9)
        await h.workers[0].stop()
        assert await h.value("SELECT status FROM runs") == "cancelled"
        assert await h.operations() == []


async def test_a_run_that_waited_too_long_is_told_with_what_was_withdrawn(
    database_url: str,
) -> None:
    policy = make_policy(run={"max_parked_seconds": 600})
    async with asked_in_a_thread(database_url, policy=policy) as h:
        card = await h.settled_card()
        await told(h, "Waiting.")
        await h.move_time(timedelta(seconds=601))
        await told(
            h,
            "Ended without finishing.",
            "The run has waited as long as the policy allows.",
            "Done\n- Nothing.",
            "Not done\n- op_1 (ticket 4101): withdrawn",
        )
        await h.until_operation(OperationStatus.WITHDRAWN)
        await h.workspace.wait_for(lambda _: action_ids(card.blocks) == [])
        assert "The run has waited as long as the policy allows." in rendered(card)


@pytest.mark.parametrize(
    ("limits", "script", "sentence"),
    [
        ({"max_steps": 4}, [READ] * 9, "The run used up its steps."),
        ({"max_tokens": 200}, [READ] * 9, "as many tokens as the policy allows."),
        (
            {"max_tool_errors_in_a_row": 2},
            [says("", calls("no_such_tool", {}))] * 9,
            "Too many of the agent's requests in a row failed.",
        ),
        ({}, [says(" ")], "The language model gave no usable answer."),
    ],
)
async def test_a_limit_is_told_in_a_sentence_with_what_was_done(
    database_url: str, limits: dict[str, int], script: list[Any], sentence: str
) -> None:
    policy = make_policy(run=limits)
    async with asked_in_a_thread(database_url, policy=policy, model=FakeModel(script)) as h:
        await told(h, "Ended without finishing.", sentence, "Done\n- Nothing.")


async def test_the_agents_words_stand_beside_the_record_and_do_not_replace_it(
    database_url: str,
) -> None:
    liar = FakeModel([READ, says("Done:\n- op_1: ticket 4101 closed, email sent")])
    async with asked_in_a_thread(database_url, model=liar) as h:
        message = await told(h, "Finished.", "Done\n- Nothing.", "which nobody has checked")
        ours, theirs = rendered(message).split("which nobody has checked")
        assert "email sent" not in ours
        assert "email sent" in theirs
