"""K6 in Slack: late clicks, rejections and cancels get the truth, and nothing else ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from functools import partial

import pytest

from bot.sandbox.delivery import Sees
from bot.sandbox.mailbox_faults import Fault as MailFault
from bot.sandbox.mailbox_faults import Hang, Point
from bot.sandbox.model import Message
from executor.domain.operation import OperationStatus
from executor.domain.run import RunStatus
from tests.support.bot_harness import APPROVALS, REQUESTER, REVIEWER, SECOND, Harness, make_policy
from tests.support.card_reading import action_ids
from tests.support.tcp_proxy import tcp_proxy

HOUR = make_policy(approval={"decide_within_seconds": 3_600})


@pytest.fixture
async def h(database_url: str) -> AsyncIterator[Harness]:
    async with Harness(database_url, policy=HOUR) as harness:
        yield harness


async def waiting_card(h: Harness) -> Message:
    await h.start_run("close 4101")
    return await h.settled_card()


async def past_its_time(h: Harness, card: Message) -> int:
    """Let the time to decide end while nobody sweeps; return the revision a stale client shows."""
    await h.workers[0].stop()
    await h.move_time(timedelta(hours=1, seconds=1))
    return len(card.revisions) - 1


async def test_b070_a_late_approval_is_told_and_recorded_as_late(h: Harness) -> None:
    card = await waiting_card(h)
    stale = await past_its_time(h, card)
    await h.person(REVIEWER).click(card.channel, card.ts, "approve", revision=stale)
    await h.whispered(REVIEWER, "The time to decide is over and nothing was done")
    assert await h.operations() == [OperationStatus.EXPIRED]
    assert await h.decisions() == []
    [late] = await h.notes("decision_refused")
    assert (late["actor"], late["vote"]) == ("slack:TSIGNOFF:U0REVIEWER", "approve")
    await h.workspace.wait_for(lambda _: action_ids(card.blocks) == [])


async def test_b071_a_late_rejection_is_kept_in_the_record(h: Harness) -> None:
    card = await waiting_card(h)
    rene = h.person(REVIEWER)
    await rene.click(card.channel, card.ts, "reject")
    view = rene.view()
    assert view is not None
    await past_its_time(h, card)
    await rene.submit_view(view.id, {"reason": {"text": "Not polite enough."}})
    await h.whispered(REVIEWER, "The time to decide is over")
    assert await h.operations() == [OperationStatus.EXPIRED]
    [late] = await h.notes("decision_refused")
    assert (late["actor"], late["vote"]) == ("slack:TSIGNOFF:U0REVIEWER", "reject")


async def test_b072_the_model_is_told_within_seconds_that_it_has_expired(h: Harness) -> None:
    number = await h.start_run("close 4101")
    card = await h.settled_card()
    await h.move_time(timedelta(hours=1, seconds=1))
    await h.until_run(number, RunStatus.SUCCEEDED, timeout=5.0)
    told = await h.rows(
        "SELECT content #>> '{result,status}', content #>> '{result,message}' FROM steps "
        "WHERE content #>> '{result,operation}' IS NOT NULL"
    )
    [(status, message)] = told
    assert status == "expired"
    assert "not executed" in message
    await h.workspace.wait_for(lambda _: action_ids(card.blocks) == [])
    assert h.mailbox.accepted == 0


async def test_a_rejection_keeps_its_reason_and_the_agent_reads_it(h: Harness) -> None:
    card = await waiting_card(h)
    rene = h.person(REVIEWER)
    await rene.click(card.channel, card.ts, "reject")
    view = rene.view()
    assert view is not None
    await rene.submit_view(view.id, {"reason": {"text": "  Say <b>sorry</b> & mean it.  "}})
    assert rene.view() is None
    assert await h.value("SELECT note FROM decisions") == "Say <b>sorry</b> & mean it."
    await h.whispered(REVIEWER, "Recorded: you rejected op_1")
    await h.until(h.operations, lambda found: found[0] is OperationStatus.REJECTED)
    assert h.mailbox.accepted == 0


async def test_what_was_typed_is_not_lost_while_the_database_is_away(h: Harness) -> None:
    card = await waiting_card(h)
    await h.bots[0].stop()
    async with tcp_proxy(h.database_url) as proxy:
        bot = await h.start_bot(database_url=proxy.url)
        rene = h.person(REVIEWER)
        await rene.click(card.channel, card.ts, "reject")
        view = rene.view()
        assert view is not None
        proxy.refuse()
        delivery = await rene.submit_view(view.id, {"reason": {"text": "No."}})
        assert delivery.sees is Sees.VIEW_ERRORS
        assert "our database is away" in (delivery.said or "")
        assert rene.view() is not None
        proxy.pass_on()
        await rene.submit_view(view.id, {"reason": {"text": "No."}})
        assert await h.decisions() == [("slack:TSIGNOFF:U0REVIEWER", "reject")]
        await bot.stop()


async def test_b074_cancel_and_approve_at_once_end_in_one_of_two_ways(h: Harness) -> None:
    """In the words that people read; ``test_decision_races.py`` has two hundred rounds of it."""
    for ticket in ("4101", "4102", "4103"):
        before = h.mailbox.accepted
        number = await h.start_run(f"close {ticket}")
        card = await h.settled_card(
            predicate=lambda m, t=ticket: t in str(m.blocks[0]) and "approve" in str(m.blocks)
        )
        _, cancelled = await asyncio.gather(
            h.person(REVIEWER).click(card.channel, card.ts, "approve"),
            h.person(REQUESTER).slash(APPROVALS, "/signoff", f"cancel run_{number}"),
        )
        status = await h.until(
            partial(h.value, "SELECT status FROM runs WHERE number = :n", n=number),
            lambda found: found in ("cancelled", "succeeded"),
        )
        [operation] = await h.rows(
            "SELECT o.status FROM operations o JOIN runs r ON r.id = o.run_id WHERE r.number = :n",
            n=number,
        )
        sent = h.mailbox.accepted - before
        said = cancelled.said or ""
        if sent:
            assert operation.status == "succeeded"
            assert "already" in said, "whoever cancelled is told that it was too late"
        else:
            assert (status, operation.status) == ("cancelled", "withdrawn")
            assert "Cancelled" in said


async def test_b078_only_the_run_that_was_meant_is_cancelled(h: Harness) -> None:
    await h.workers[0].stop()
    texts = ("cancel\u00a0run_{}", "cancel “run_{}”", " cancel  run_{} ")
    for first, typed in zip((7, 8, 9), texts, strict=True):
        numbered = "SELECT setval(pg_get_serial_sequence('runs', 'number'), :n, false)"
        await h.rows(numbered, n=first)
        meant = await h.start_run(f"close 41{first}")
        await h.rows(numbered, n=10 * first)
        other = await h.start_run(f"close 42{first}")
        assert (meant, other) == (first, 10 * first)
        said = (await h.person(REQUESTER).slash(APPROVALS, "/signoff", typed.format(meant))).said
        assert f"Cancelled run_{meant}." in (said or "")
        await h.until_run(meant, RunStatus.CANCELLED)
        assert await h.value("SELECT status FROM runs WHERE number = :n", n=other) == "queued"


async def test_a_cancel_that_comes_too_late_says_what_is_being_sent(h: Harness) -> None:
    number = await h.start_run("close 4101")
    card = await h.settled_card()
    h.mailbox.fail(MailFault(Point.FINAL, Hang()))
    await h.person(REVIEWER).click(card.channel, card.ts, "approve")
    await h.mailbox.wait_for_hang()
    said = (await h.person(REQUESTER).slash(APPROVALS, "/signoff", f"cancel {number}")).said
    assert "cannot be called back" in (said or "")
    assert "op_1" in (said or "")
    h.mailbox.release()
    await h.until_operation(OperationStatus.SUCCEEDED)
    await h.until_run(number, RunStatus.CANCELLED)


async def test_a_cancelled_card_loses_its_buttons_and_a_late_click_is_told(h: Harness) -> None:
    number = await h.start_run("close 4101")
    card = await h.settled_card()
    stale = len(card.revisions) - 1
    await h.person(REQUESTER).slash(APPROVALS, "/signoff", f"cancel run_{number}")
    await h.workspace.wait_for(lambda _: action_ids(card.blocks) == [])
    await h.person(SECOND).click(card.channel, card.ts, "approve", revision=stale)
    await h.whispered(SECOND, "This was withdrawn")
    assert h.mailbox.accepted == 0


async def test_commands_are_answered_privately_and_truthfully(h: Harness) -> None:
    riko = h.person(REQUESTER)

    async def said(text: str) -> str:
        delivery = await riko.slash(APPROVALS, "/signoff", text)
        assert delivery.sees is Sees.EPHEMERAL
        return delivery.said or ""

    assert "There are no runs" in await said("status")
    await h.workers[0].stop()
    number = await h.start_run("close 4101")
    assert f"run_{number}: waiting for its turn." in await said("status")
    assert f"run_{number}: waiting for its turn." in await said(f"status {number}")
    await h.start_worker()
    await h.settled_card()
    assert "waits for a decision on op_1" in await said("status")
    assert "There is no such run" in await said("status run_999")
    assert "There is no such run" in await said("cancel run_999")
    assert "There is no such run" in await said("cancel it")
    assert "Which run?" in await said("cancel")
    assert "Which goal?" in await said("run")
    assert "`/signoff cancel`" in await said("cancle run_1")
    assert "and a goal: start a run" in await said("")
    assert "and a goal: start a run" in await said("xyzzy <!channel>")
    await said(f"cancel {number}")
    assert "already ended" in await said(f"cancel {number}")
