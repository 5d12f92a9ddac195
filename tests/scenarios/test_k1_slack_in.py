"""K1: acknowledged means recorded, once, by whichever process is there; nobody gets silence."""

from __future__ import annotations

import asyncio
import copy
import time
from collections.abc import AsyncIterator
from datetime import timedelta

import aiohttp
import pytest
from sqlalchemy import text

from bot.sandbox.delivery import Delivery, Sees
from bot.sandbox.faults import Fault
from bot.sandbox.interaction import Sending
from bot.sandbox.mailbox_faults import Fault as MailFault
from bot.sandbox.mailbox_faults import Hang, Point
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
    ShiftedClock,
)
from tests.support.card_reading import action_ids
from tests.support.failpoints import Gate
from tests.support.tcp_proxy import tcp_proxy

APPROVED_BY_REVIEWER = [("slack:TSIGNOFF:U0REVIEWER", "approve")]


@pytest.fixture
async def h(database_url: str) -> AsyncIterator[Harness]:
    async with Harness(database_url) as harness:
        yield harness


async def waiting_card(h: Harness) -> Message:
    """Let a run come to its card, which then stands still."""
    await h.start_run("close 4101")
    return await h.settled_card()


async def approve(h: Harness, card: Message, who: str = REVIEWER, **how: object) -> Delivery:
    return await h.person(who).click(card.channel, card.ts, "approve", **how)  # type: ignore[arg-type]


async def test_b004_an_acknowledged_click_survives_the_process_and_is_acknowledged_in_time(
    h: Harness,
) -> None:
    card = await waiting_card(h)
    await h.workers[0].stop()
    clicking = asyncio.create_task(approve(h, card))
    # Something else in the process takes the loop while the click is on its way.
    asyncio.get_running_loop().call_later(0.01, time.sleep, 1.5)
    delivery = await clicking
    assert (delivery.status, delivery.sees) == (200, Sees.NOTHING)
    assert delivery.seconds < 3
    # Whatever the process would still have done after the acknowledgement is not needed.
    await h.bots[0].stop_loops()
    assert await h.decisions() == APPROVED_BY_REVIEWER
    await h.bots[0].stop()
    await h.start_bot()
    await h.start_worker()
    await h.until_operation(OperationStatus.SUCCEEDED)
    await h.shown("Done.")


async def test_b005_a_command_repeated_after_a_timeout_points_to_the_same_run(h: Harness) -> None:
    await h.workers[0].stop()
    riko = h.person(REQUESTER)
    h.workspace.answer_seconds = 2.0
    async with h.engine.database.transaction() as conn:
        # The bot has the command and waits, so that its answer comes too late for Slack.
        await conn.execute(text("LOCK TABLE runs IN EXCLUSIVE MODE"))
        lost = await riko.slash(APPROVALS, "/signoff", "run close 4101")
        assert lost.sees is Sees.OPERATION_TIMEOUT
    h.workspace.answer_seconds = 3.0
    await h.until(h.numbers, lambda numbers: len(numbers) == 1)
    again = await riko.slash(APPROVALS, "/signoff", "run\u00a0 close 4101 ")
    [number] = await h.numbers()
    assert again.said is not None
    assert f"run_{number}" in again.said
    assert "nothing was started twice" in again.said


async def test_b005_the_same_command_twice_at_once_starts_one_run(h: Harness) -> None:
    await h.workers[0].stop()
    riko = h.person(REQUESTER)
    answers = await asyncio.gather(
        *(riko.slash(APPROVALS, "/signoff", "run close 4101") for _ in range(4))
    )
    assert len(await h.numbers()) == 1
    assert sum("Started run_" in (a.said or "") for a in answers) == 1


async def test_b005_the_same_words_are_a_new_wish_when_the_run_ended_or_a_minute_passed(
    h: Harness,
) -> None:
    await h.workers[0].stop()
    first = await h.start_run("close 4101")
    await h.move_time(timedelta(seconds=61))
    second = await h.start_run("close 4101")
    await h.person(REQUESTER).slash(APPROVALS, "/signoff", f"cancel run_{second}")
    third = await h.start_run("close 4101")
    assert len({first, second, third}) == 3
    other = await h.person(SECOND).slash(APPROVALS, "/signoff", "run close 4101")
    assert "Started" in (other.said or ""), "the same words of somebody else are another wish"


async def test_a_replayed_command_starts_nothing(h: Harness) -> None:
    await h.workers[0].stop()
    riko = h.person(REQUESTER)
    delivery = await riko.slash(APPROVALS, "/signoff", "run close 4101", sending=Sending(copies=3))
    await h.move_time(timedelta(seconds=120))
    again = await riko.replay(delivery)
    assert len(await h.numbers()) == 1
    assert "nothing was started twice" in (again.said or "")


async def test_b007_a_card_of_one_replica_is_decided_by_another(h: Harness) -> None:
    card = await waiting_card(h)
    await h.bots[0].stop()
    await h.start_bot()
    assert (await approve(h, card)).status == 200
    await h.until_operation(OperationStatus.SUCCEEDED)
    assert h.mailbox.accepted == 1


async def test_b008_the_first_click_after_a_restart_counts_and_nobody_gets_silence(
    h: Harness,
) -> None:
    card = await waiting_card(h)
    await h.bots[0].stop()
    await h.start_bot()
    stale = len(card.revisions) - 1
    assert (await approve(h, card)).status == 200
    await h.whispered(REVIEWER, "Recorded: you approved op_1")
    assert (await approve(h, card, SECOND, revision=stale)).status == 200
    await h.whispered(SECOND, "op_1 was already approved by <@U0REVIEWER>")
    assert (await approve(h, card, OUTSIDER, revision=stale)).status == 200
    await h.whispered(OUTSIDER, "op_1 was already approved by <@U0REVIEWER>")
    assert await h.decisions() == APPROVED_BY_REVIEWER


async def test_b009_an_unknown_button_is_answered_with_a_fresh_card(
    h: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    card = await waiting_card(h)
    old = copy.deepcopy(card.blocks)
    for block in old:
        for element in block.get("elements", []):
            if element.get("action_id") == "approve":
                element["action_id"] = "approve_v1"
    h.workspace.revise(card, card.text, old, card.metadata)
    assert "approve" not in action_ids(card.blocks)
    delivery = await h.person(REVIEWER).click(card.channel, card.ts, "approve_v1")
    assert delivery.status == 200
    await h.whispered(REVIEWER, "this card is out of date")
    assert "unknown action" in caplog.text
    assert await h.operations() == [OperationStatus.AWAITING]
    fresh = await h.card()
    assert fresh.ts == card.ts
    await approve(h, fresh)
    await h.until_operation(OperationStatus.SUCCEEDED)


async def test_b012_a_captured_click_has_no_further_effect(h: Harness) -> None:
    card = await waiting_card(h)
    rene = h.person(REVIEWER)
    delivery = await approve(h, card)
    told = await h.whispered(REVIEWER, "Recorded")
    assert (await rene.replay(delivery)).status == 200
    await h.until_operation(OperationStatus.SUCCEEDED)
    later = await h.start_bot(clock=ShiftedClock(timedelta(seconds=30)))
    assert (await rene.replay(delivery, to=later.url)).status == 200
    late = await h.start_bot(clock=ShiftedClock(timedelta(minutes=6)))
    assert (await rene.replay(delivery, to=late.url)).status == 401
    headers = {**delivery.request.headers, "X-Slack-Signature": ""}
    async with (
        aiohttp.ClientSession() as session,
        session.post(
            f"{h.bots[0].url}/slack/events", data=delivery.request.body, headers=headers
        ) as response,
    ):
        assert response.status == 401
    assert await h.decisions() == APPROVED_BY_REVIEWER
    assert [e.text for e in rene.ephemerals()] == [told]
    assert (len(await h.notes("voted")), await h.notes("decision_refused")) == (1, [])
    assert h.mailbox.accepted == 1


async def test_b012_the_same_click_at_two_processes_at_once_is_one_click(h: Harness) -> None:
    card = await waiting_card(h)
    away, other = await h.start_bot(clock=ShiftedClock(timedelta(hours=1))), await h.start_bot()
    # Nobody takes it on at first, so that it can be delivered to two who have not heard of it.
    captured = await approve(h, card, sending=Sending(to=away.url))
    assert captured.status == 401
    rene = h.person(REVIEWER)
    deliveries = await asyncio.gather(
        *(rene.replay(captured, to=bot.url) for bot in (h.bots[0], other) for _ in range(4))
    )
    assert {delivery.status for delivery in deliveries} == {200}
    await h.until_operation(OperationStatus.SUCCEEDED)
    assert await h.decisions() == APPROVED_BY_REVIEWER
    assert await h.notes("decision_refused") == []
    assert h.mailbox.accepted == 1


async def test_b013_many_clicks_are_one_decision_and_everybody_is_told(h: Harness) -> None:
    card = await waiting_card(h)
    other = await h.start_bot()
    shown = len(card.revisions) - 1
    await asyncio.gather(
        *(
            approve(h, card, who, revision=shown, sending=Sending(to=bot.url))
            for who, bot in (
                (REVIEWER, h.bots[0]),
                (SECOND, other),
                (REVIEWER, other),
                (SECOND, h.bots[0]),
                (REVIEWER, h.bots[0]),
            )
        )
    )
    await h.until_operation(OperationStatus.SUCCEEDED)
    assert len(await h.decisions()) == 1
    assert h.mailbox.accepted == 1
    people = h.person(REVIEWER), h.person(SECOND)

    def told_so_far() -> list[str]:
        # A click that the busy machine could not confirm in time is told so first, then the truth.
        texts = [e.text for person in people for e in person.ephemerals()]
        return [text for text in texts if not text.startswith("Not confirmed")]

    await h.workspace.wait_for(lambda _: len(told_so_far()) == 5)
    told = told_so_far()
    assert sum("Recorded" in text for text in told) == 1
    # A busy machine may send, or have sent, before the last of the clicks is looked at.
    late = "already approved", "already being sent", "already ended"
    assert sum(any(truth in text for truth in late) for text in told) == 4


async def test_a_click_while_the_database_is_away_is_a_failure_that_is_seen(h: Harness) -> None:
    card = await waiting_card(h)
    await h.bots[0].stop()
    async with tcp_proxy(h.database_url) as proxy:
        bot = await h.start_bot(database_url=proxy.url)
        proxy.refuse()
        delivery = await approve(h, card)
        assert (delivery.status, delivery.sees) == (503, Sees.WARNING_SIGN)
        assert delivery.seconds < 3
        await h.whispered(REVIEWER, "Nothing was recorded: our database is away")
        assert await h.decisions() == []
        said = (await h.person(REQUESTER).slash(APPROVALS, "/signoff", "run close 4102")).said
        assert "Nothing was recorded" in (said or "")
        proxy.pass_on()
        await approve(h, card)
        await h.until_operation(OperationStatus.SUCCEEDED)
        await bot.stop()


async def test_a_silent_database_does_not_hold_a_click_beyond_three_seconds(h: Harness) -> None:
    card = await waiting_card(h)
    await h.bots[0].stop()
    async with tcp_proxy(h.database_url) as proxy:
        bot = await h.start_bot(database_url=proxy.url)
        await approve(h, card, OUTSIDER)
        proxy.swallow()
        delivery = await approve(h, card)
        assert not delivery.timed_out
        assert await h.decisions() == []
        proxy.pass_on()
        proxy.cut()
        await bot.stop()


async def test_a_click_whose_commit_answer_was_lost_is_read_back(h: Harness) -> None:
    card = await waiting_card(h)
    await h.bots[0].stop()
    gate = Gate("decide.before")
    async with tcp_proxy(h.database_url) as proxy:
        bot = await h.start_bot(database_url=proxy.url, failpoints=gate)
        await bot.stop_loops()
        clicking = asyncio.create_task(approve(h, card))
        await asyncio.wait_for(gate.reached.wait(), 10)
        proxy.lose_commit_answers(1)
        gate.open()
        delivery = await clicking
        assert proxy.answer_lost.is_set()
        assert delivery.status == 200
        assert await h.decisions() == APPROVED_BY_REVIEWER
        assert "Not confirmed" not in str(h.person(REVIEWER).ephemerals())
        await bot.stop()


async def test_a_click_whose_commit_never_arrived_is_said_to_be_not_confirmed(h: Harness) -> None:
    card = await waiting_card(h)
    await h.bots[0].stop()
    gate = Gate("decide.before")
    async with tcp_proxy(h.database_url) as proxy:
        bot = await h.start_bot(database_url=proxy.url, failpoints=gate)
        await bot.stop_loops()
        clicking = asyncio.create_task(approve(h, card))
        await asyncio.wait_for(gate.reached.wait(), 10)
        proxy.stop_commits(1)
        gate.open()
        await clicking
        assert proxy.commit_stopped.is_set()
        await h.whispered(REVIEWER, "Not confirmed")
        assert await h.decisions() == []
        await approve(h, card)
        assert await h.decisions() == APPROVED_BY_REVIEWER
        await bot.stop()


async def test_when_slack_is_slow_to_say_who_clicked_nothing_is_recorded(h: Harness) -> None:
    card = await waiting_card(h)
    hanging = h.slack.faults.add("users.info", fault=Fault.HANGS_BEFORE_COMMIT, times=9)
    delivery = await approve(h, card)
    assert hanging.fired.is_set()
    assert delivery.status == 200
    assert delivery.seconds < 2
    await h.whispered(REVIEWER, "Slack cannot tell us right now who you are")
    assert await h.decisions() == []
    h.slack.faults.clear()
    await approve(h, card)
    await h.until_operation(OperationStatus.SUCCEEDED)


async def test_b024_while_it_is_carried_out_there_is_nothing_left_to_press(h: Harness) -> None:
    card = await waiting_card(h)
    stale = len(card.revisions) - 1
    h.mailbox.fail(MailFault(Point.FINAL, Hang()))
    began = time.monotonic()
    await approve(h, card)
    await h.workspace.wait_for(lambda _: action_ids(card.blocks) == [], 2.0)
    assert time.monotonic() - began < 2
    await h.mailbox.wait_for_hang()
    await approve(h, card, SECOND, revision=stale)
    await h.whispered(SECOND, "op_1 was already approved by <@U0REVIEWER>")
    h.mailbox.release()
    await h.until_operation(OperationStatus.SUCCEEDED)
    assert h.mailbox.accepted == 1
    assert len(await h.decisions()) == 1


async def test_a_mention_starts_one_run_however_often_it_is_delivered(h: Harness) -> None:
    riko = h.person(REQUESTER)
    delivery = await riko.mention(APPROVALS, "close 4101 &amp; tell Pat")
    assert delivery.status == 200
    await riko.redeliver(delivery)
    await h.until(h.numbers, lambda numbers: len(numbers) == 1)
    await h.whispered(REQUESTER, "Started run_")
    card = await h.card()
    await riko.redeliver(delivery, 2)
    await approve(h, card)
    [number] = await h.numbers()
    await h.until_run(number, RunStatus.SUCCEEDED)
    assert await h.value("SELECT goal FROM runs") == "close 4101 & tell Pat"
    assert len(await h.numbers()) == 1


async def test_a_window_that_slack_does_not_open_in_time_is_told(h: Harness) -> None:
    card = await waiting_card(h)
    h.slack.faults.add("views.open", fault=Fault.HANGS_BEFORE_COMMIT)
    delivery = await h.person(REVIEWER).click(card.channel, card.ts, "reject")
    assert delivery.status == 200
    await h.whispered(REVIEWER, "Slack did not open the window")
    assert await h.decisions() == []
