"""K2: every card equals its record in the end, whatever Slack loses, refuses or changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

import pytest

from bot import replies
from bot.cards import CardPainter, Drawing, card_environment
from bot.lost_posts import METADATA_EVENT
from bot.sandbox.faults import Fault
from bot.sandbox.model import Message
from bot.sandbox.record import Entry
from executor.domain.operation import OperationStatus
from executor.domain.run import RunStatus
from executor.engine.card_record import CardRecord
from tests.support.bot_harness import (
    APPROVALS,
    REQUESTER,
    REVIEWER,
    SUPPORT,
    Harness,
    about_an_operation,
    proposing,
)
from tests.support.card_reading import action_ids, literals
from tests.support.failpoints import Gate

LEASE = timedelta(seconds=31)


@pytest.fixture
async def h(database_url: str) -> AsyncIterator[Harness]:
    async with Harness(database_url) as harness:
        yield harness


@pytest.fixture
async def slow(database_url: str) -> AsyncIterator[Harness]:
    async with Harness(database_url, model=proposing(held=True)) as harness:
        yield harness


def live(h: Harness) -> list[Message]:
    """Every message on which somebody could approve."""
    return [m for m in h.cards() if {"approve", "review"} & set(action_ids(m.blocks))]


async def problem(h: Harness) -> str | None:
    found: str | None = await h.value("SELECT problem FROM cards WHERE subject_kind = 'operation'")
    return found


def posts(h: Harness) -> list[Entry]:
    """The calls that posted cards of operations."""
    calls = h.slack.record.calls("chat.postMessage")
    return [call for call in calls if about_an_operation(call.data["args"])]


async def approve(h: Harness, card: Message) -> None:
    delivery = await h.person(REVIEWER).click(card.channel, card.ts, "approve")
    assert delivery.status == 200


@pytest.mark.parametrize(
    "fault",
    [
        Fault.HANGS_AFTER_COMMIT,
        Fault.LOST_AFTER_COMMIT,
        Fault.TRUNCATED_BODY,
        Fault.ERROR_500_AFTER_COMMIT,
        Fault.FATAL_ERROR_AFTER_COMMIT,
    ],
)
async def test_b015_a_post_whose_answer_was_lost_is_found_and_adopted(
    h: Harness, fault: Fault
) -> None:
    lost = h.slack.faults.add("chat.postMessage", fault=fault, when=about_an_operation)
    await h.start_run("close 4101")
    card = await h.settled_card()
    assert lost.fired.is_set()
    assert len(posts(h)) + (fault is Fault.HANGS_AFTER_COMMIT) <= 2, "posted once"
    assert [m.ts for m in h.cards()] == [card.ts]
    assert await h.value("SELECT DISTINCT outcome FROM card_postings") == "posted"
    await approve(h, card)
    await h.until_operation(OperationStatus.SUCCEEDED)
    assert h.mailbox.accepted == 1


@pytest.mark.parametrize(
    "fault",
    [
        Fault.NOT_DELIVERED,
        Fault.HANGS_BEFORE_COMMIT,
        Fault.ERROR_500_BEFORE_COMMIT,
        Fault.INTERNAL_ERROR_BEFORE_COMMIT,
        Fault.RATE_LIMITED,
    ],
)
async def test_a_post_that_never_arrived_is_made_again(h: Harness, fault: Fault) -> None:
    lost = h.slack.faults.add("chat.postMessage", fault=fault, when=about_an_operation)
    await h.start_run("close 4101")
    card = await h.settled_card()
    assert lost.fired.is_set()
    assert [m.ts for m in live(h)] == [card.ts]
    await approve(h, card)
    await h.until_operation(OperationStatus.SUCCEEDED)


async def test_b015_a_proxy_that_repeats_the_post_leaves_one_card_that_decides(h: Harness) -> None:
    h.slack.faults.add("chat.postMessage", fault=Fault.DELIVERED_TWICE, when=about_an_operation)
    await h.start_run("close 4101")
    card = await h.settled_card()
    [twin] = [m for m in h.cards() if m.ts != card.ts]
    await approve(h, twin)
    await h.shown(replies.replaced_card())
    assert [m.ts for m in live(h)] in ([card.ts], [])
    assert len(await h.decisions()) <= 1
    if not await h.decisions():
        await approve(h, card)
    await h.until_operation(OperationStatus.SUCCEEDED)
    assert h.mailbox.accepted == 1


async def test_b016_a_card_posted_by_a_process_that_died_is_found_by_the_next(
    slow: Harness,
) -> None:
    h, gate = slow, Gate("present.before")
    dying = await h.start_told_run(partial(h.start_bot, failpoints=gate))
    await asyncio.wait_for(gate.reached.wait(), 10)
    await dying.stop()
    assert await h.value("SELECT ts FROM cards WHERE subject_kind = 'operation'") is None
    await h.start_bot()
    await h.move_time(LEASE)
    card = await h.settled_card()
    assert len(h.cards()) == 1
    await approve(h, card)
    await h.until_operation(OperationStatus.SUCCEEDED)


async def test_b016_a_click_on_the_orphan_decides_and_the_orphan_is_retired(h: Harness) -> None:
    h.slack.faults.add("chat.postMessage", fault=Fault.LOST_AFTER_COMMIT, when=about_an_operation)
    h.slack.faults.add("conversations.history", fault=Fault.HISTORY_LAGS, times=50, count=9)
    await h.start_run("close 4101")
    await h.until(lambda: _count(h), lambda n: n == 2)
    card = await h.settled_card()
    [orphan] = [m for m in h.cards() if m.ts != card.ts]
    await approve(h, orphan)
    assert len(await h.decisions()) == 1
    await h.workspace.wait_for(lambda _: replies.replaced_card() in str(orphan.blocks))
    await h.until_operation(OperationStatus.SUCCEEDED)
    await h.workspace.wait_for(lambda _: live(h) == [])
    assert h.mailbox.accepted == 1


async def _count(h: Harness) -> int:
    return len(h.cards())


async def test_b016_a_click_on_a_card_before_its_place_is_recorded_decides_it(h: Harness) -> None:
    await h.workers[0].stop()
    posting = h.slack.faults.add(
        "chat.postMessage", fault=Fault.HANGS_AFTER_COMMIT, when=about_an_operation
    )
    await h.start_run("close 4101")
    await h.start_worker()
    await asyncio.wait_for(posting.fired.wait(), 10)
    await h.workers[1].stop()
    [card] = live(h)
    await approve(h, card)
    assert len(await h.decisions()) == 1
    placed = await h.value("SELECT ts FROM cards WHERE subject_kind = 'operation'")
    assert placed == card.ts
    posting.release()
    await h.start_worker()
    await h.until_operation(OperationStatus.SUCCEEDED)
    await h.workspace.wait_for(lambda _: "Done." in str(card.blocks))
    assert (len(h.cards()), len(h.words())) == (1, 1)


async def test_b017_a_card_whose_poster_died_before_posting_is_posted_by_another(
    slow: Harness,
) -> None:
    h, gate = slow, Gate("begin_posting.before")
    dying = await h.start_told_run(partial(h.start_bot, failpoints=gate))
    await asyncio.wait_for(gate.reached.wait(), 10)
    await dying.stop()
    await h.move_time(timedelta(seconds=61))
    assert await h.value("SELECT count(*) FROM cards WHERE ts IS NULL") == 1
    await h.start_bot()
    await h.settled_card()


@pytest.mark.parametrize("fault", [Fault.MESSAGE_DELETED, Fault.EDIT_WINDOW_CLOSED])
async def test_a_card_that_cannot_be_updated_any_more_is_posted_anew(
    h: Harness, fault: Fault
) -> None:
    await h.start_run("close 4101")
    card = await h.settled_card()
    h.slack.faults.add("chat.update", fault=fault, when=about_an_operation)
    await approve(h, card)
    await h.until_operation(OperationStatus.SUCCEEDED)
    again = await h.card(lambda m: "Done." in str(m.blocks) and m.ts != card.ts)
    assert action_ids(again.blocks) == []


@pytest.mark.parametrize(
    "fault",
    [Fault.RATE_LIMITED, Fault.LOST_AFTER_COMMIT, Fault.ERROR_500_BEFORE_COMMIT],
)
async def test_an_update_that_failed_is_made_again(h: Harness, fault: Fault) -> None:
    await h.start_run("close 4101")
    card = await h.settled_card()
    h.slack.faults.add("chat.update", fault=fault, when=about_an_operation, times=2)
    await approve(h, card)
    await h.until_operation(OperationStatus.SUCCEEDED)
    await h.workspace.wait_for(lambda _: "Done." in str(card.blocks), 15)
    assert [m.ts for m in h.cards() if m.ts == card.ts] == [card.ts]


async def test_an_archived_channel_is_an_error_that_is_logged_and_ends(
    h: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    h.workspace.channels[APPROVALS].is_archived = True
    await h.start_run("close 4101", channel=SUPPORT)
    await h.until(lambda: _problem_or_none(h), lambda found: found == "is_archived")
    assert "is_archived" in caplog.text
    assert await h.operations() == [OperationStatus.AWAITING]
    h.workspace.channels[APPROVALS].is_archived = False
    card = await h.settled_card()
    await approve(h, card)
    await h.until_operation(OperationStatus.SUCCEEDED)


async def _problem_or_none(h: Harness) -> str | None:
    rows = await h.rows("SELECT problem FROM cards WHERE subject_kind = 'operation'")
    return rows[0].problem if rows else None


@pytest.mark.parametrize("flag", ["is_ext_shared", "is_pending_ext_shared"])
async def test_no_card_goes_where_another_organisation_reads_along(h: Harness, flag: str) -> None:
    setattr(h.workspace.channels[APPROVALS], flag, True)
    await h.start_run("close 4101", channel=SUPPORT)
    await h.until(lambda: _problem_or_none(h), lambda found: found == "channel_is_shared")
    assert h.cards() == []
    assert posts(h) == []


class Spoiling(CardPainter):
    """Draws blocks that Slack refuses."""

    def draw(
        self, record: CardRecord, *, render_no: int, nonce: UUID, plain: bool = False
    ) -> Drawing:
        drawing = super().draw(record, render_no=render_no, nonce=nonce, plain=plain)
        drawing.blocks[0] = {**drawing.blocks[0], "type": "no_such_block"}
        return drawing


async def test_b196_a_refused_card_is_logged_without_its_content(
    database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", logger="bot")
    async with Harness(database_url, painter=Spoiling(card_environment())) as h:
        await h.start_run("close 4101")
        await h.until(lambda: _problem_or_none(h), lambda found: found == "invalid_blocks")
        operation = str(await h.value("SELECT id FROM operations"))
    logged = "\n".join(r.getMessage() for r in caplog.records if r.name.startswith("bot"))
    assert "invalid_blocks" in logged
    assert APPROVALS in logged
    assert operation in logged
    for content in ("pat@cust.example", "Ticket 4101 closed", "Hello Pat", "xoxb-", "refund"):
        assert content not in logged


async def test_a_card_that_slack_shows_otherwise_cannot_be_approved(
    h: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    h.slack.faults.add("chat.postMessage", fault=Fault.TEXT_TRIMMED, times=99)
    h.slack.faults.add("chat.update", fault=Fault.TEXT_TRIMMED, times=99)
    await h.start_run("close 4101")
    card = await h.card(lambda m: replies.shown_otherwise() in str(m.blocks))
    assert "reject" in action_ids(card.blocks)
    assert live(h) == []
    assert "otherwise than it was sent" in caplog.text
    assert "pat@cust.example" not in caplog.text


async def test_b021_a_long_email_is_reviewed_in_full_before_it_can_be_approved(
    database_url: str,
) -> None:
    message = "\n".join(f"Line {number}: all is well with your order." for number in range(300))
    model = proposing(message=message)
    async with Harness(database_url, model=model) as h:
        await h.start_run("close 4101")
        card = await h.settled_card(predicate=lambda m: "review" in action_ids(m.blocks))
        assert "approve" not in action_ids(card.blocks)
        rene = h.person(REVIEWER)
        await rene.click(card.channel, card.ts, "review")
        view = rene.view()
        assert view is not None
        shown = "".join(literals(view.view["blocks"]))
        assert "Line 0: all is well" in shown
        assert "Line 299: all is well" in shown
        delivery = await rene.submit_view(view.id)
        assert delivery.status == 200
        assert rene.view() is None
        await h.until_operation(OperationStatus.SUCCEEDED)
        assert await h.decisions() == [("slack:TSIGNOFF:U0REVIEWER", "approve")]
        assert "Line 150: all is well" in text_of(h)


async def test_b030_and_b031_markup_stays_literal_on_the_card_and_in_the_mail(
    database_url: str,
) -> None:
    message = "<!channel> <@U0REVIEWER> &lt;b&gt; and &amp;amp; *bold*"
    async with Harness(database_url, model=proposing(subject="Q&A <draft>", message=message)) as h:
        await h.start_run("close 4101")
        card = await h.settled_card()
        assert any(message in text for text in literals(card.blocks))
        assert "<!channel>" not in card.text
        await approve(h, card)
        await h.until_operation(OperationStatus.SUCCEEDED)
        assert h.mailbox.mails[0].parsed["Subject"] == "Q&A <draft>"
        assert message in text_of(h)
        await h.workspace.wait_for(lambda _: "Done." in str(card.blocks))
        assert any("Q&A <draft>" in text for text in literals(card.blocks))
        for call in (
            *h.slack.record.calls("chat.postMessage"),
            *h.slack.record.calls("chat.update"),
            *h.slack.record.calls("chat.postEphemeral"),
        ):
            assert "<!channel>" not in str(call.data["args"]["text"])
            assert call.data["args"]["parse"] == "none"
            assert str(call.data["args"]["link_names"]) in ("False", "0", "false")


async def test_a_post_is_never_unfurled_and_carries_ids_alone(h: Harness) -> None:
    await h.start_run("close 4101")
    card = await h.settled_card()
    [call] = posts(h)
    args: dict[str, Any] = call.data["args"]
    for name in ("unfurl_links", "unfurl_media"):
        assert str(args[name]) in ("False", "0", "false")
    assert card.metadata is not None
    assert card.metadata["event_type"] == METADATA_EVENT
    assert set(card.metadata["event_payload"]) == {"subject", "nonce", "revision"}


async def test_the_runs_own_word_stands_where_it_was_asked_for(h: Harness) -> None:
    number = await h.start_run("close 4101", channel=SUPPORT)
    await approve(h, await h.settled_card())
    await h.until_run(number, RunStatus.SUCCEEDED)
    word = await h.word("agent's last words", channel=SUPPORT)
    assert (word.thread_ts, h.words(APPROVALS)) == (None, [])


async def test_a_runs_own_word_goes_where_the_bot_is_when_it_is_not_where_it_was_asked(
    h: Harness,
) -> None:
    h.workspace.channels[SUPPORT].members.discard(h.workspace.app.user_id)
    number = await h.start_run("close 9999", channel=SUPPORT)
    await h.until_run(number, RunStatus.SUCCEEDED)
    word = await h.word("agent's last words")
    assert word.channel == APPROVALS


async def test_a_run_that_was_mentioned_answers_in_that_thread(h: Harness) -> None:
    await h.person(REQUESTER).mention(SUPPORT, "close 9999")
    [asked] = [m for m in h.workspace.visible(SUPPORT) if m.user == REQUESTER]
    word = await h.word("agent's last words", channel=SUPPORT)
    assert word.thread_ts == asked.ts


def text_of(h: Harness) -> str:
    """The text part of the only mail that was accepted."""
    [mail] = h.mailbox.mails
    part = mail.parsed.get_body(("plain",))
    assert part is not None
    return str(part.get_content())
