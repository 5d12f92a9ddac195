"""The sandbox counts calls as Slack does: posts by channel, Tier 3 by method, on its own clock."""

from __future__ import annotations

from functools import partial

import pytest
from slack_sdk.errors import SlackApiError

from bot.sandbox.clock import VirtualClock
from bot.sandbox.slack_server import SlackServer
from bot.sandbox.workspace import Workspace
from tests.bot.sandbox.conftest import CHANNEL, client_of, make_card


@pytest.fixture
def workspace(clock: VirtualClock) -> Workspace:
    return Workspace.seeded(clock=clock, post_burst=1, tier_3_burst=2)


async def limited_for(call: object) -> str:
    with pytest.raises(SlackApiError) as caught:
        await call  # type: ignore[misc]
    assert caught.value.response.status_code == 429
    return str(caught.value.response.headers["Retry-After"])


async def test_a_channel_takes_one_message_a_second_and_others_are_not_held_up(
    slack: SlackServer, clock: VirtualClock
) -> None:
    client = client_of(slack)
    await client.chat_postMessage(channel=CHANNEL, text="one")
    assert await limited_for(client.chat_postMessage(channel=CHANNEL, text="two")) == "1"
    await client.chat_postMessage(channel="C0SUPPORT", text="two")
    clock.advance(1)
    await client.chat_postMessage(channel=CHANNEL, text="three")
    assert [m.text for m in slack.workspace.visible(CHANNEL)] == ["one", "three"]


async def test_each_tier_3_method_has_fifty_calls_a_minute_of_its_own(
    slack: SlackServer, clock: VirtualClock
) -> None:
    client = client_of(slack)
    answer = await client.chat_postMessage(channel=CHANNEL, text="t", blocks=make_card())
    update = partial(client.chat_update, channel=CHANNEL, ts=str(answer["ts"]), text="t")
    for number in (2, 3):
        await update(blocks=make_card(number))
    assert await limited_for(update(blocks=make_card(4))) == "2"
    await client.conversations_history(channel=CHANNEL)
    clock.advance(1.2)
    await update(blocks=make_card(4))


async def test_what_was_refused_costs_nothing(slack: SlackServer, clock: VirtualClock) -> None:
    client = client_of(slack)
    await client.chat_postMessage(channel=CHANNEL, text="one")
    for _ in range(5):
        await limited_for(client.chat_postMessage(channel=CHANNEL, text="two"))
    clock.advance(1)
    await client.chat_postMessage(channel=CHANNEL, text="two")
