"""Words about what may have been sent, clicked in Slack: each gets the truth, and the card shows
it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from bot.sandbox.mailbox_faults import Close, Fault, Point
from bot.sandbox.model import Message
from executor.domain.operation import OperationStatus
from executor.domain.run import RunStatus
from tests.support.bot_harness import REQUESTER, REVIEWER, SECOND, Harness, make_policy
from tests.support.card_reading import action_ids

SETTLE = ["settle_sent", "settle_not_sent", "settle_send_again", "settle_leave"]


@pytest.fixture
async def h(database_url: str) -> AsyncIterator[Harness]:
    async with Harness(database_url) as harness:
        yield harness


async def in_doubt(h: Harness, *, accepted: bool, buttons: list[str] | None = None) -> Message:
    """Walk to a card that asks what became of an email whose answer was lost."""
    await h.start_run("close 4101")
    card = await h.settled_card()
    h.mailbox.fail(Fault(Point.FINAL, Close(after_accepting=accepted), conversation=1))
    await h.person(REVIEWER).click(card.channel, card.ts, "approve")
    await h.workspace.wait_for(lambda _: action_ids(card.blocks) == (buttons or SETTLE))
    await h.until_operation(OperationStatus.UNKNOWN)
    return card


async def test_it_was_sent_ends_the_run_that_waited(h: Harness) -> None:
    card = await in_doubt(h, accepted=True)
    await h.person(SECOND).click(card.channel, card.ts, "settle_sent")
    await h.whispered(SECOND, "Recorded: you said that the email of op_1 was sent.")
    await h.until_operation(OperationStatus.SUCCEEDED)
    await h.until_run(1, RunStatus.SUCCEEDED)
    await h.workspace.wait_for(lambda w: "that it was sent." in w.shown())
    assert action_ids(card.blocks) == []
    assert h.mailbox.accepted == 1


async def test_it_was_not_sent_ends_it_in_part_and_sends_nothing(h: Harness) -> None:
    card = await in_doubt(h, accepted=False)
    await h.person(SECOND).click(card.channel, card.ts, "settle_not_sent")
    await h.whispered(SECOND, "Nothing is sent.")
    await h.until_operation(OperationStatus.PARTIAL)
    await h.until_run(1, RunStatus.SUCCEEDED)
    await h.shown("Somebody found out that it was not sent.")
    assert h.mailbox.accepted == 0


async def test_send_again_sends_the_same_email_once_more(h: Harness) -> None:
    card = await in_doubt(h, accepted=False)
    await h.person(SECOND).click(card.channel, card.ts, "settle_send_again")
    await h.whispered(SECOND, "is sent once more")
    await h.until_operation(OperationStatus.SUCCEEDED)
    await h.until_run(1, RunStatus.SUCCEEDED)
    assert h.mailbox.accepted == 1
    approvals = await h.rows("SELECT status, digest FROM approvals ORDER BY opened_at")
    assert [status for status, _ in approvals] == ["consumed", "consumed"]
    assert approvals[0][1] == approvals[1][1]


async def test_leave_it_is_shown_with_the_name_and_can_still_be_settled(h: Harness) -> None:
    card = await in_doubt(h, accepted=True)
    await h.person(SECOND).click(card.channel, card.ts, "settle_leave")
    await h.whispered(SECOND, "op_1 stays unknown")
    await h.shown("to leave it as it is.")
    assert await h.operations() == [OperationStatus.UNKNOWN]
    assert action_ids(card.blocks) == SETTLE
    await h.person(REVIEWER).click(card.channel, card.ts, "settle_sent")
    await h.until_operation(OperationStatus.SUCCEEDED)


async def test_a_late_word_and_a_word_of_somebody_else_are_told_so(h: Harness) -> None:
    card = await in_doubt(h, accepted=True)
    stale = len(card.revisions) - 1
    await h.person(REQUESTER).click(card.channel, card.ts, "settle_sent")
    await h.whispered(REQUESTER, "You may not decide here")
    await h.person(SECOND).click(card.channel, card.ts, "settle_sent")
    await h.until_operation(OperationStatus.SUCCEEDED)
    await h.person(REVIEWER).click(card.channel, card.ts, "settle_send_again", revision=stale)
    await h.whispered(REVIEWER, "This has already ended.")
    assert h.mailbox.accepted == 1
    refused = await h.notes("word_refused")
    assert [(note["said"], note["reason"]) for note in refused] == [
        ("sent", "not_permitted"),
        ("send_again", "already_ended"),
    ]


async def test_with_a_quorum_nothing_is_sent_again_at_one_persons_word(database_url: str) -> None:
    async with Harness(database_url, policy=make_policy(approval={"quorum": 2})) as h:
        await h.start_run("close 4101")
        card = await h.settled_card()
        h.mailbox.fail(Fault(Point.FINAL, Close(after_accepting=True)))
        for who in (REVIEWER, SECOND):
            await h.person(who).click(card.channel, card.ts, "approve")
        wanted = [action for action in SETTLE if action != "settle_send_again"]
        await h.workspace.wait_for(lambda _: action_ids(card.blocks) == wanted)
