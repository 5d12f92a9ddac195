"""K10: no duplicate, and a person settles what no machine can find out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from bot.sandbox.mailbox_faults import Close, Fault, Point
from bot.sandbox.model import Message
from executor.domain.operation import OperationStatus
from tests.support.bot_harness import REVIEWER, SECOND, Harness
from tests.support.card_reading import action_ids
from tests.support.failpoints import Trap
from tests.support.words import say

SETTLE = ["settle_sent", "settle_not_sent", "settle_send_again", "settle_leave"]


@pytest.fixture
async def h(database_url: str) -> AsyncIterator[Harness]:
    async with Harness(database_url) as harness:
        yield harness


async def asks_a_person(h: Harness, card: Message) -> None:
    await h.workspace.wait_for(lambda _: action_ids(card.blocks) == SETTLE)
    await h.until_operation(OperationStatus.UNKNOWN)


async def test_b123_an_answer_lost_after_the_body_is_unknown_and_put_to_a_person(
    h: Harness,
) -> None:
    await h.start_run("close 4101")
    card = await h.settled_card()
    h.mailbox.fail(Fault(Point.FINAL, Close(after_accepting=True)))
    await h.person(REVIEWER).click(card.channel, card.ts, "approve")
    await asks_a_person(h, card)
    await h.shown("Not known: it may have been sent.", "A person has to look.")
    await h.move_time(timedelta(hours=1))
    await h.until(
        lambda: h.value("SELECT count(*) FROM attempts WHERE status = 'unknown'"),
        lambda found: found == 1,
    )
    assert h.mailbox.accepted == 1
    assert await h.operations() == [OperationStatus.UNKNOWN]


@pytest.mark.parametrize(
    ("point", "mails", "word", "statuses"),
    [
        ("call.before", 0, "settle_not_sent", [OperationStatus.PARTIAL, OperationStatus.AWAITING]),
        ("call.after", 1, "settle_sent", [OperationStatus.SUCCEEDED]),
    ],
)
async def test_b127_a_worker_lost_while_sending_leaves_it_to_a_person_whose_word_is_kept(
    database_url: str, point: str, mails: int, word: str, statuses: list[OperationStatus]
) -> None:
    async with Harness(database_url) as h:
        await h.start_run("close 4101")
        card = await h.settled_card()
        await h.workers[0].stop()
        trap = Trap(point)
        await h.start_worker(failpoints=trap)
        await h.person(REVIEWER).click(card.channel, card.ts, "approve")

        async def died() -> bool:
            return trap.sprung

        await h.until(died, bool)
        await h.move_time(timedelta(seconds=2 * h.durations.lease.ttl_seconds))
        await asks_a_person(h, card)
        assert h.mailbox.accepted == mails
        await say(h, SECOND, card, word)
        await h.until_operation(*statuses)
        [told] = await h.notes("word_given")
        assert told["actor"] == "slack:TSIGNOFF:U0SECOND"
        assert h.mailbox.accepted == mails
