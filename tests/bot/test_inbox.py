"""A mention by a person asks for a run; everything else that arrives asks for nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from bot.inbox import MOST_TRIES, Mention, goal_of, mention_of
from bot.sandbox.faults import Fault
from executor.domain.ids import TenantId
from tests.support.bot_harness import APPROVALS, GUEST, OUTSIDER, REQUESTER, Harness

TENANT, BOT = TenantId("T1"), "U0BOT"


def payload(**changes: Any) -> dict[str, Any]:
    event = {
        "type": "app_mention",
        "user": "U0REQ",
        "team": "T1",
        "text": "<@U0BOT> close 4101",
        "ts": "1700000000.000100",
        "channel": "C1",
    }
    return {"team_id": "T1", "event": {k: v for k, v in {**event, **changes}.items() if v}}


def test_a_mention_is_read_with_where_it_stands() -> None:
    ts = "1700000000.000100"
    assert mention_of(payload(), TENANT, BOT) == Mention("U0REQ", "T1", "C1", ts, ts, "close 4101")
    threaded = mention_of(payload(thread_ts="1600000000.000100"), TENANT, BOT)
    assert threaded is not None
    assert threaded.thread_ts == "1600000000.000100"


@pytest.mark.parametrize(
    "changes",
    [
        {"type": "message"},
        {"bot_id": "B1"},
        {"bot_profile": {"id": "B1"}},
        {"subtype": "message_changed"},
        {"user": None},
        {"user": BOT},
        {"user": "<@U1>"},
        {"channel": None},
        {"ts": None},
    ],
)
def test_what_no_person_said_just_now_is_ignored(changes: dict[str, Any]) -> None:
    assert mention_of(payload(**changes), TENANT, BOT) is None
    assert mention_of({"event": []}, TENANT, BOT) is None


@pytest.mark.parametrize(
    ("text", "goal"),
    [
        ("<@U0BOT> close 4101", "close 4101"),
        ("hey <@U0BOT|signoff>,\n close  4101", "hey , close 4101"),
        ("<@U0BOT> say &lt;b&gt; &amp; &amp;lt;", "say <b> & &lt;"),
        ("<@U0BOT> ask <@U0OTHER>", "ask <@U0OTHER>"),
        ("<@U0BOT>", ""),
    ],
)
def test_b032_the_goal_is_what_was_typed_decoded_once(text: str, goal: str) -> None:
    assert goal_of(text, BOT) == goal


@pytest.fixture
async def h(database_url: str) -> AsyncIterator[Harness]:
    async with Harness(database_url, worker=False) as harness:
        yield harness


async def left(h: Harness) -> int:
    count: int = await h.value("SELECT count(*) FROM inbox WHERE handled_at IS NULL")
    return count


@pytest.mark.parametrize(("who", "why"), [(GUEST, "guests"), (OUTSIDER, "another workspace")])
async def test_who_may_not_ask_is_told_why_and_starts_nothing(
    h: Harness, who: str, why: str
) -> None:
    await h.person(who).mention(APPROVALS, "close 4101")
    await h.whispered(who, why)
    assert await h.numbers() == set()
    assert await left(h) == 0


async def test_a_bare_mention_gets_help(h: Harness) -> None:
    name = f"<@{h.workspace.app.user_id}>"
    await h.person(REQUESTER).mention(APPROVALS, name)
    await h.whispered(REQUESTER, "and a goal: start a run")
    assert await h.numbers() == set()


async def test_an_event_waits_for_slack_to_say_who_it_is_from_but_not_for_ever(h: Harness) -> None:
    h.slack.faults.add("users.info", fault=Fault.ERROR_500_BEFORE_COMMIT, times=1_000)
    await h.person(REQUESTER).mention(APPROVALS, "close 4101")
    for tries in range(1, MOST_TRIES + 1):
        await h.until(
            lambda: h.value("SELECT max(tries) FROM inbox"),
            lambda n, t=tries: n >= t,  # type: ignore[misc]
        )
        await h.move_time(timedelta(seconds=31))
    await h.until(lambda: left(h), lambda n: n == 0)
    assert await h.numbers() == set()


async def test_an_event_is_handled_once_slack_answers_again(h: Harness) -> None:
    failing = h.slack.faults.add("users.info", fault=Fault.ERROR_500_BEFORE_COMMIT, times=1)
    await h.person(REQUESTER).mention(APPROVALS, "close 4101")
    await h.until(lambda: h.value("SELECT max(tries) FROM inbox"), lambda n: n == 1)
    await failing.fired.wait()
    await h.move_time(timedelta(seconds=31))
    await h.until(h.numbers, lambda numbers: len(numbers) == 1)
    assert await left(h) == 0
