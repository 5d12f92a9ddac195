"""Another app's bot posts, and its mention arrives as Slack tells of one."""

from __future__ import annotations

import pytest

from bot.sandbox.agent import linked
from bot.sandbox.workspace import Workspace
from tests.bot.sandbox.bot_double import BotDouble
from tests.bot.sandbox.conftest import CHANNEL

pytestmark = pytest.mark.usefixtures("slack")

REQUEST = {"kind": "run", "request_key": "k", "arguments": {"goal": "close 4101"}}


@pytest.mark.parametrize("in_event", [True, False])
async def test_a_mention_by_a_bot_names_its_bot_its_app_and_its_user(
    workspace: Workspace, bot: BotDouble, in_event: bool
) -> None:
    await workspace.agent("U0AGENT").ask(CHANNEL, REQUEST, in_event=in_event)
    [message] = workspace.visible(CHANNEL)
    event = bot.received[0].payload["event"]
    assert (event["type"], event["user"], event["bot_id"], event["app_id"]) == (
        "app_mention",
        "U0AGENT",
        "B0AGENT",
        "A0AGENT",
    )
    assert event["bot_profile"]["team_id"] == "TSIGNOFF"
    assert ("metadata" in event) is in_event
    assert message.metadata == {"event_type": "signoff_request", "event_payload": REQUEST}
    assert message.bot_id == "B0AGENT"


async def test_an_old_bots_message_has_a_subtype(workspace: Workspace, bot: BotDouble) -> None:
    await workspace.agent("U0AGENT").mention(CHANNEL, "hello", as_subtype=True)
    event = bot.received[0].payload["event"]
    assert (event["type"], event["subtype"]) == ("message", "bot_message")


async def test_the_page_lets_the_agent_ask_with_the_hands_of_its_bot(
    workspace: Workspace, bot: BotDouble
) -> None:
    await workspace.person("U0AGENT").mention(CHANNEL, "close 4101")
    assert bot.received[0].payload["event"]["bot_id"] == "B0AGENT"


def test_slack_makes_links_of_addresses() -> None:
    assert linked('<@U1> "pat@c.example" at https://a.example/x, (b@c.example)') == (
        '<@U1> "<mailto:pat@c.example|pat@c.example>" at <https://a.example/x,>'
        " (<mailto:b@c.example|b@c.example>)"
    )
