"""Mentions, and Slack's three retries of an event, on a clock the test moves."""

from __future__ import annotations

import pytest
from aiohttp import web

from bot.sandbox.clock import VirtualClock
from bot.sandbox.workspace import Workspace
from tests.bot.sandbox.bot_double import BotDouble, Received
from tests.bot.sandbox.conftest import CHANNEL

pytestmark = pytest.mark.usefixtures("slack")


def retry_headers(bot: BotDouble) -> list[tuple[str | None, str | None]]:
    return [
        (r.headers.get("x-slack-retry-num"), r.headers.get("x-slack-retry-reason"))
        for r in bot.received
    ]


async def test_a_mention_is_a_message_and_an_event(workspace: Workspace, bot: BotDouble) -> None:
    delivery = await workspace.person("U0REQUESTER").mention(CHANNEL, "please run 4101")
    [message] = workspace.visible(CHANNEL)
    envelope = bot.received[0].payload
    assert message.text == "<@U0SIGNOFF> please run 4101"
    assert envelope["type"] == "event_callback"
    assert envelope["event"]["type"] == "app_mention"
    assert envelope["event"]["ts"] == message.ts
    assert envelope["authorizations"][0]["team_id"] == "TSIGNOFF"
    assert envelope["event_id"].startswith("Ev")
    assert delivery.acknowledged


async def test_an_unanswered_event_comes_again_at_once_after_a_minute_and_after_five(
    workspace: Workspace, bot: BotDouble, clock: VirtualClock
) -> None:
    bot.answers(500)
    await workspace.person("U0REQUESTER").mention(CHANNEL, "hello")
    for seconds, before in ((60, 2), (300, 3)):
        await clock.until_sleeping()
        assert len(bot.received) == before
        clock.advance(seconds)
    await workspace.event_retries.settle()
    assert retry_headers(bot) == [
        (None, None),
        ("1", "http_error"),
        ("2", "http_error"),
        ("3", "http_error"),
    ]
    assert len({r.payload["event_id"] for r in bot.received}) == 1
    signatures = {r.headers["X-Slack-Signature"] for r in bot.received}
    assert len(signatures) == 3  # the first two were sent within one standing second


async def test_retries_end_with_the_first_2xx(
    workspace: Workspace, bot: BotDouble, clock: VirtualClock
) -> None:
    statuses = iter([500, 202])

    async def answer(received: Received) -> web.StreamResponse:
        return web.Response(status=next(statuses))

    bot.answer = answer
    await workspace.person("U0REQUESTER").mention(CHANNEL, "hello")
    await workspace.event_retries.settle()
    assert len(bot.received) == 2


async def test_a_bot_may_refuse_retries(workspace: Workspace, bot: BotDouble) -> None:
    async def answer(received: Received) -> web.StreamResponse:
        return web.Response(status=503, headers={"X-Slack-No-Retry": "1"})

    bot.answer = answer
    await workspace.person("U0REQUESTER").mention(CHANNEL, "hello")
    await workspace.event_retries.settle()
    assert len(bot.received) == 1


async def test_a_test_can_redeliver_by_hand(workspace: Workspace, bot: BotDouble) -> None:
    person = workspace.person("U0REQUESTER")
    first = await person.mention(CHANNEL, "hello", retries=False)
    await person.redeliver(first, 2, "http_timeout")
    assert retry_headers(bot) == [(None, None), ("2", "http_timeout")]
    assert bot.received[0].body == bot.received[1].body


async def test_an_interaction_is_never_retried(workspace: Workspace, bot: BotDouble) -> None:
    bot.answers(500)
    await workspace.person("U0REQUESTER").slash(CHANNEL, "/signoff")
    await workspace.event_retries.settle()
    assert len(bot.received) == 1
