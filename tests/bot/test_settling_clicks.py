"""Words about what may have been sent, said in Slack: each gets the truth; the card shows it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from bot.sandbox.faults import Fault as SlackFault
from bot.sandbox.mailbox_faults import Close, Fault, Point
from bot.sandbox.model import Message
from executor.domain.operation import OperationStatus
from executor.domain.run import RunStatus
from tests.support.bot_harness import REQUESTER, REVIEWER, SECOND, Harness, make_policy
from tests.support.card_reading import action_ids, literals
from tests.support.words import open_form, press, say, submit_form

SETTLE = ["settle_sent", "settle_not_sent", "settle_send_again", "settle_leave"]
HOSTILE = "<!channel> <@U0REQUESTER> *bold* `code`\u202e\nhttps://evil.example|x"


@pytest.fixture
async def h(database_url: str) -> AsyncIterator[Harness]:
    async with Harness(database_url) as harness:
        yield harness


async def in_doubt(h: Harness, *approvers: str, accepted: bool) -> Message:
    """Walk to a card that asks what became of an email whose answer was lost."""
    await h.start_run("close 4101")
    card = await h.settled_card()
    h.mailbox.fail(Fault(Point.FINAL, Close(after_accepting=accepted), conversation=1))
    for who in approvers or (REVIEWER,):
        await press(h, who, card, "approve")
    await h.workspace.wait_for(lambda _: action_ids(card.blocks) == SETTLE)
    await h.until_operation(OperationStatus.UNKNOWN)
    return card


async def test_it_was_sent_ends_the_run_that_waited(h: Harness) -> None:
    card = await in_doubt(h, accepted=True)
    form = await open_form(h, SECOND, card, "settle_sent")
    assert await h.operations() == [OperationStatus.UNKNOWN]
    assert await h.notes("word_given") == []
    await submit_form(h, SECOND, form, HOSTILE)
    await h.whispered(SECOND, "Recorded: you said that the email of op_1 was sent.")
    await h.until_operation(OperationStatus.SUCCEEDED)
    await h.until_run(1, RunStatus.SUCCEEDED)
    await h.workspace.wait_for(lambda w: "that it was sent:" in w.shown())
    assert action_ids(card.blocks) == []
    assert h.mailbox.accepted == 1
    [told] = await h.notes("word_given")
    assert (told["actor"], told["note"]) == ("slack:TSIGNOFF:U0SECOND", HOSTILE)
    noted = [text for text in literals(card.blocks) if "evil.example" in text]
    assert noted == [HOSTILE.replace("\u202e", "⟦U+202E⟧")]
    assert h.person(SECOND).view() is None


async def test_it_was_not_sent_ends_it_in_part_and_sends_nothing(h: Harness) -> None:
    card = await in_doubt(h, accepted=False)
    await say(h, SECOND, card, "settle_not_sent")
    await h.whispered(SECOND, "Nothing more is done.")
    # It is asked whether the ticket is opened again.
    await h.until_operation(OperationStatus.PARTIAL, OperationStatus.AWAITING)
    await h.until_run(1, RunStatus.SUCCEEDED)
    await h.shown("Somebody found out that it was not sent.")
    assert h.mailbox.accepted == 0


async def test_send_again_sends_the_same_email_once_more(h: Harness) -> None:
    card = await in_doubt(h, accepted=False)
    await say(h, SECOND, card, "settle_send_again", "The log has nothing.")
    await h.whispered(SECOND, "was not sent, and to send again. The card will show it.")
    await h.until_operation(OperationStatus.SUCCEEDED)
    await h.until_run(1, RunStatus.SUCCEEDED)
    assert h.mailbox.accepted == 1
    approvals = await h.rows("SELECT status, digest FROM approvals ORDER BY opened_at")
    assert [status for status, _ in approvals] == ["consumed", "consumed"]
    assert approvals[0][1] == approvals[1][1]


async def test_leave_it_is_shown_with_the_name_and_can_still_be_settled(h: Harness) -> None:
    card = await in_doubt(h, accepted=True)
    await say(h, SECOND, card, "settle_leave")
    await h.whispered(SECOND, "op_1 stays unknown")
    await h.shown("to leave it as it is.")
    assert await h.operations() == [OperationStatus.UNKNOWN]
    assert action_ids(card.blocks) == SETTLE
    await say(h, REVIEWER, card, "settle_sent")
    await h.until_operation(OperationStatus.SUCCEEDED)


async def test_a_late_word_and_a_word_of_somebody_else_are_told_so_and_get_no_form(
    h: Harness,
) -> None:
    card = await in_doubt(h, accepted=True)
    stale = len(card.revisions) - 1
    await press(h, REQUESTER, card, "settle_sent")
    await h.whispered(REQUESTER, "You may not decide here")
    await say(h, SECOND, card, "settle_sent")
    await h.until_operation(OperationStatus.SUCCEEDED)
    await press(h, REVIEWER, card, "settle_send_again", revision=stale)
    await h.whispered(REVIEWER, "This has already ended.")
    assert h.mailbox.accepted == 1
    assert [h.person(who).view() for who in (REQUESTER, REVIEWER)] == [None, None]
    refused = await h.notes("word_refused")
    assert [(note["said"], note["reason"]) for note in refused] == [
        ("sent", "not_permitted"),
        ("send_again", "already_ended"),
    ]


async def test_a_form_that_is_replayed_or_comes_too_late_changes_nothing_and_says_so(
    h: Harness,
) -> None:
    card = await in_doubt(h, accepted=True)
    late = await open_form(h, REVIEWER, card, "settle_not_sent")
    form = await open_form(h, SECOND, card, "settle_sent")
    first = await submit_form(h, SECOND, form, "Seen in the log.")
    await h.until_operation(OperationStatus.SUCCEEDED)
    again = await h.person(SECOND).replay(first)
    assert again.status == 200
    assert len(await h.notes("word_given")) == 1
    told = await submit_form(h, REVIEWER, late, "I did not see it.")
    assert told.view_errors == {"note": "This has already ended. The card shows how."}
    # What was typed is still there.
    assert h.person(REVIEWER).view() is not None
    assert await h.operations() == [OperationStatus.SUCCEEDED]


async def test_a_form_says_nothing_about_an_attempt_that_it_has_not_shown(h: Harness) -> None:
    card = await in_doubt(h, accepted=False)
    stale = await open_form(h, REVIEWER, card, "settle_not_sent")
    h.mailbox.fail(Fault(Point.FINAL, Close(after_accepting=True), conversation=2))
    await say(h, SECOND, card, "settle_send_again")
    await h.until(
        lambda: h.value("SELECT count(*) FROM attempts WHERE status = 'unknown' AND number = 2"),
        bool,
    )
    told = await submit_form(h, REVIEWER, stale)
    assert "Something was tried since you looked." in told.view_errors["note"]
    assert await h.operations() == [OperationStatus.UNKNOWN]
    assert h.mailbox.accepted == 1


@pytest.mark.parametrize("fault", [SlackFault.ERROR_500_BEFORE_COMMIT, SlackFault.NOT_DELIVERED])
async def test_a_form_that_slack_does_not_open_is_told_and_nothing_is_recorded(
    h: Harness, fault: SlackFault
) -> None:
    card = await in_doubt(h, accepted=True)
    planned = h.slack.faults.add("views.open", fault=fault)
    while not planned.fired.is_set():
        await press(h, SECOND, card, "settle_sent")
    await h.whispered(SECOND, "Nothing was recorded: Slack did not open the window.")
    assert await h.notes("word_given") == []
    await say(h, SECOND, card, "settle_sent")
    await h.until_operation(OperationStatus.SUCCEEDED)


async def test_where_two_people_are_asked_sending_again_needs_both(database_url: str) -> None:
    async with Harness(database_url, policy=make_policy(approval={"quorum": 2})) as h:
        card = await in_doubt(h, REVIEWER, SECOND, accepted=False)
        await h.shown("2 people have to say so.")
        await say(h, SECOND, card, "settle_send_again", "Not in the log.")
        await h.whispered(SECOND, "1 more person has to say so before anything is done.")
        await h.shown("1 of 2 people said to send again so far:")
        assert await h.operations() == [OperationStatus.UNKNOWN]
        assert h.mailbox.accepted == 0
        form = await open_form(h, SECOND, card, "settle_leave")
        assert "Not in the log." in literals(form.view["blocks"])
        await press(h, SECOND, card, "settle_send_again")
        await h.whispered(SECOND, "Your vote is already recorded.")
        await say(h, REVIEWER, card, "settle_send_again")
        await h.until_operation(OperationStatus.SUCCEEDED)
        assert h.mailbox.accepted == 1
