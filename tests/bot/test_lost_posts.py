"""A message whose answer was lost is found before another is posted, however hard that is."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from bot import replies
from bot.sandbox.faults import Fault, PlannedFault
from bot.sandbox.model import Message
from tests.support.bot_harness import APPROVALS, REQUESTER, REVIEWER, SUPPORT, Harness
from tests.support.card_reading import action_ids


@pytest.fixture
async def h(database_url: str) -> AsyncIterator[Harness]:
    async with Harness(database_url) as harness:
        yield harness


async def lost_post(h: Harness) -> PlannedFault:
    """Ask for a card whose first posting is accepted and not answered; wait until that happened."""
    lost = h.slack.faults.add(
        "chat.postMessage",
        fault=Fault.LOST_AFTER_COMMIT,
        when=lambda args: args["channel"] == APPROVALS,
    )
    await h.start_run("close 4101", channel=SUPPORT)
    await h.until(lambda: _fired(lost), bool)
    return lost


async def _fired(planned: PlannedFault) -> bool:
    return planned.fired.is_set()


def posts(h: Harness) -> int:
    """How often the card was posted; people are told of it in messages without blocks."""
    called = [call.data["args"] for call in h.slack.record.calls("chat.postMessage")]
    return len([args for args in called if args["channel"] == APPROVALS and "blocks" in args])


def live(h: Harness) -> list[Message]:
    return [m for m in h.cards() if "approve" in action_ids(m.blocks)]


async def outcomes(h: Harness) -> list[str]:
    """What became of the messages of the operation's card, in their order."""
    found = await h.rows(
        "SELECT p.outcome FROM card_postings p JOIN operations o ON o.id = p.subject_id "
        "ORDER BY p.attempted_at"
    )
    return [row.outcome for row in found]


async def settled_and_posted_once(h: Harness) -> None:
    card = await h.settled_card()
    assert [m.ts for m in live(h)] == [card.ts]
    assert posts(h) == 1
    assert await outcomes(h) == ["posted"]


async def test_it_is_found_by_its_blocks_where_slack_keeps_no_metadata(h: Harness) -> None:
    h.workspace.keeps_metadata = False
    await lost_post(h)
    await settled_and_posted_once(h)
    assert live(h)[0].metadata is None


async def test_it_is_found_behind_many_messages_that_came_after_it(h: Harness) -> None:
    h.workspace.history_page = 15
    await lost_post(h)
    for number in range(40):
        await h.person(REQUESTER).say(APPROVALS, f"meanwhile {number}")
    await settled_and_posted_once(h)
    assert len(h.slack.record.calls("conversations.history")) >= 3


async def test_it_is_found_once_history_has_caught_up(h: Harness) -> None:
    lag = h.slack.faults.add("conversations.history", fault=Fault.HISTORY_LAGS, times=1)
    await lost_post(h)
    await settled_and_posted_once(h)
    assert lag.fired.is_set()


async def test_it_is_looked_for_no_faster_than_slack_allows(h: Harness) -> None:
    limit = h.slack.faults.add(
        "conversations.history", fault=Fault.RATE_LIMITED, seconds=20, times=1
    )
    await lost_post(h)
    await h.until(lambda: _fired(limit), bool)
    await h.until(lambda: _held(h), bool)
    await h.move_time(timedelta(seconds=15))
    assert len(h.slack.record.calls("conversations.history")) == 1
    await h.move_time(timedelta(seconds=10))
    await settled_and_posted_once(h)


async def _held(h: Harness) -> bool:
    found = "SELECT count(*) FROM paces WHERE family = 'search' AND free_at > signoff_clock()"
    return bool(await h.value(found))


async def test_as_long_as_slack_is_away_it_is_looked_for_and_never_posted_again(
    h: Harness,
) -> None:
    away = h.slack.faults.add(
        "conversations.history", fault=Fault.ERROR_500_BEFORE_COMMIT, times=1_000
    )
    await lost_post(h)
    for _ in range(5):
        looks = len(h.slack.record.calls("conversations.history"))
        await h.move_time(timedelta(seconds=61))
        await h.until(lambda n=looks: _more_looks(h, n), bool)  # type: ignore[misc]
    assert posts(h) == 1
    away.times = 0
    await h.move_time(timedelta(seconds=61))
    await settled_and_posted_once(h)


async def _more_looks(h: Harness, than: int) -> bool:
    return len(h.slack.record.calls("conversations.history")) > than


@pytest.mark.parametrize("why", ["missing scope", "too often for three minutes"])
async def test_where_nobody_may_look_another_is_posted_in_the_end_and_either_decides(
    h: Harness, why: str
) -> None:
    if why == "missing scope":
        h.workspace.drop_scope("channels:history")
    else:
        h.slack.faults.add(
            "conversations.history", fault=Fault.RATE_LIMITED, seconds=50, times=1_000
        )
    await lost_post(h)
    for _ in range(6):
        await h.move_time(timedelta(seconds=51))
        if posts(h) > 1:
            break
        await h.until(lambda: _looked(h), bool)
    card = await h.settled_card(predicate=lambda m: m.ts != h.cards()[0].ts)
    assert await outcomes(h) == ["absent", "posted"]
    orphan = h.cards()[0]
    assert orphan.ts != card.ts
    await h.person(REVIEWER).click(orphan.channel, orphan.ts, "approve")
    assert len(await h.decisions()) == 1


async def _looked(h: Harness) -> bool:
    """Whether what was due has been done."""
    in_hand = "SELECT count(*) FROM cards WHERE ts IS NULL AND lease_until IS NOT NULL"
    return int(await h.value(in_hand)) == 0


async def test_b015_one_that_turns_up_beside_its_card_loses_its_buttons(h: Harness) -> None:
    h.slack.faults.add("conversations.history", fault=Fault.HISTORY_LAGS, times=30, count=9)
    await lost_post(h)
    await h.until(lambda: _live(h), lambda n: n == 2)
    card = await h.settled_card()
    [orphan] = [m for m in live(h) if m.ts != card.ts]
    h.slack.faults.clear()
    await h.move_time(timedelta(seconds=61))
    await h.workspace.wait_for(lambda _: replies.replaced_card() in str(orphan.blocks), 15)
    assert [m.ts for m in live(h)] == [card.ts]
    await h.person(REVIEWER).click(orphan.channel, orphan.ts, "approve", revision=0)
    assert len(await h.decisions()) == 1, "who clicked before it was retired has decided"


async def _live(h: Harness) -> int:
    return len(live(h))
