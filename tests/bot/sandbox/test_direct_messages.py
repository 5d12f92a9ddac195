"""A message to a person's id goes to the app's conversation with that person, or nowhere."""

from __future__ import annotations

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.sandbox.slack_server import SlackServer


async def test_a_member_is_written_to_in_a_conversation_of_its_own(
    slack: SlackServer, client: AsyncWebClient
) -> None:
    first = await client.chat_postMessage(channel="U0REVIEWER", text="one")
    second = await client.chat_postMessage(channel="U0REVIEWER", text="two")
    assert first["channel"] == second["channel"] == "D0U0REVIEWER"
    assert [m.text for m in slack.workspace.visible("D0U0REVIEWER")] == ["one", "two"]
    info = await client.conversations_info(channel="D0U0REVIEWER")
    assert info["channel"]["is_member"] is True


@pytest.mark.parametrize(
    ("user", "error"),
    [
        ("U0NOBODY", "channel_not_found"),
        ("U0OUTSIDER", "channel_not_found"),
        ("U0SIGNOFF", "cannot_dm_bot"),
        ("U0GONE", "channel_not_found"),
    ],
)
async def test_nobody_else_is(
    slack: SlackServer, client: AsyncWebClient, user: str, error: str
) -> None:
    workspace = slack.workspace
    gone = workspace.users["U0SECOND"]
    gone.deleted = True
    workspace.users["U0GONE"] = gone
    with pytest.raises(SlackApiError) as caught:
        await client.chat_postMessage(channel=user, text="one")
    assert caught.value.response["error"] == error
