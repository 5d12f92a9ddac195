"""K2: what people see keeps up: unseen proposals are counted, and no button outlives its use."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from functools import partial

import pytest

from bot.sandbox.faults import Fault as SlackFault
from bot.sandbox.faults import PlannedFault
from bot.sandbox.mailbox_faults import Fault, Hang, Point
from bot.slack_pace import SLACK_PACES, delivery_of
from executor.domain.operation import OperationStatus
from executor.engine.presenting import cards_behind
from executor.engine.unseen import delivery_report
from tests.support.bot_harness import REVIEWER, SECOND, Harness, proposing
from tests.support.card_reading import action_ids
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


async def unseen(h: Harness) -> tuple[int, float]:
    """How many approvals nobody can see, and for how many seconds at most."""
    found = (await delivery_report(h.engine, delivery_of(h.policy))).unseen
    return sum(one.approvals for one in found), max((o.oldest_seconds for o in found), default=0.0)


async def test_b017_proposals_that_no_bot_shows_are_counted_and_alarm_until_one_does(
    slow: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    h, gate = slow, Gate("begin_posting.before")
    dying = await h.start_told_run(partial(h.start_bot, failpoints=gate))
    await asyncio.wait_for(gate.reached.wait(), 10)
    await dying.stop()
    assert await unseen(h) != (0, 0.0)
    await h.move_time(timedelta(seconds=91))
    approvals, seconds = await unseen(h)
    assert (approvals, seconds >= 91) == (1, True)
    assert (await cards_behind(h.engine, 60))[1] == 1
    alarm = "op_1 waits for a decision that nobody can make"
    await h.until(lambda: logged(caplog, alarm), bool)
    assert "no bot posts cards" in caplog.text
    await h.start_bot()
    await h.settled_card()
    assert await unseen(h) == (0, 0.0)
    assert await cards_behind(h.engine, 60) == (0, 0)
    assert await logged(caplog, alarm) == 1
    assert await logged(caplog, "op_1 is shown now, after 9") == 1


async def logged(caplog: pytest.LogCaptureFixture, words: str) -> int:
    return sum(words in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize("busy", [False, True], ids=["at rest", "after many updates"])
async def test_b024_the_buttons_are_gone_long_before_the_action_has_ended(
    database_url: str, busy: bool
) -> None:
    async with Harness(database_url, paces=SLACK_PACES) as h:
        await h.start_run("close 4101")
        card = await h.settled_card()
        if busy:
            # Other updates have used up all that they may be ahead.
            await h.rows(
                "UPDATE paces SET free_at = signoff_clock() + interval '6 s' "
                "WHERE family = 'update' RETURNING 1"
            )
        h.mailbox.fail(Fault(Point.FINAL, Hang()))
        pressed = len(card.revisions) - 1
        await h.person(REVIEWER).click(card.channel, card.ts, "approve")
        await h.workspace.wait_for(lambda _: action_ids(card.blocks) == [], 2.0)
        await h.mailbox.wait_for_hang()
        assert await h.operations() == [OperationStatus.EXECUTING]
        await h.person(SECOND).click(card.channel, card.ts, "approve", revision=pressed)
        await h.whispered(SECOND, "was already approved by")
        assert await h.decisions() == [(f"slack:TSIGNOFF:{REVIEWER}", "approve")]
        h.mailbox.release()
        await h.until_operation(OperationStatus.SUCCEEDED)
        assert h.mailbox.accepted == 1


async def test_a_private_answer_that_slack_has_no_room_for_is_told_however_long_that_takes(
    h: Harness,
) -> None:
    limit = h.slack.faults.add(
        "chat.postEphemeral", fault=SlackFault.RATE_LIMITED, seconds=20, times=6
    )
    await h.start_run("close 4101")
    card = await h.settled_card()
    await h.person(REVIEWER).click(card.channel, card.ts, "approve")
    for limited in range(1, 7):
        await h.until(lambda n=limited: _limited(limit, n), bool)  # type: ignore[misc]
        await h.until(lambda: h.value("SELECT max(tries) FROM notices"), lambda tries: tries == 0)
        await h.move_time(timedelta(seconds=21))
    await h.whispered(REVIEWER, "Recorded: you approved op_1")


async def _limited(planned: PlannedFault, times: int) -> bool:
    return planned.firings >= times


async def test_a_person_who_is_not_in_the_channel_costs_nothing_but_the_private_answer(
    h: Harness,
) -> None:
    await h.start_run("close 4101")
    card = await h.settled_card()
    failing = h.slack.faults.add(
        "chat.postEphemeral", fault=SlackFault.ERROR_500_BEFORE_COMMIT, times=99
    )
    await h.person(REVIEWER).click(card.channel, card.ts, "approve")
    await h.until_operation(OperationStatus.SUCCEEDED)
    await asyncio.wait_for(failing.fired.wait(), 10)
    for tries in (1, 2, 3):
        await h.until(lambda: _whispers(h), lambda n, wanted=tries: n == wanted)  # type: ignore[misc]
        await h.move_time(LEASE)
    await h.until(lambda: h.value("SELECT count(*) FROM notices"), lambda left: left == 0)
    assert await _whispers(h) == 3


async def _whispers(h: Harness) -> int:
    return len(h.slack.record.calls("chat.postEphemeral"))
