"""Response URLs: five uses, thirty minutes, ephemeral unless told otherwise."""

from __future__ import annotations

import aiohttp
import pytest
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.webhook.async_client import AsyncWebhookClient

from bot.sandbox.clock import VirtualClock
from bot.sandbox.faults import Fault
from bot.sandbox.slack_server import SlackServer
from bot.sandbox.workspace import Workspace
from tests.bot.sandbox.bot_double import BotDouble
from tests.bot.sandbox.conftest import CHANNEL, make_card, plain


@pytest.fixture
async def hook(slack: SlackServer, bot: BotDouble) -> AsyncWebhookClient:
    await slack.workspace.person("U0REVIEWER").slash(CHANNEL, "/signoff")
    return AsyncWebhookClient(bot.received[-1].fields["response_url"], retry_handlers=[])


async def clicked(workspace: Workspace, bot: BotDouble, ts: str) -> AsyncWebhookClient:
    await workspace.person("U0REVIEWER").click(CHANNEL, ts, "approve")
    return AsyncWebhookClient(bot.received[-1].payload["response_url"], retry_handlers=[])


async def test_an_answer_is_ephemeral_by_default(
    hook: AsyncWebhookClient, workspace: Workspace
) -> None:
    assert (await hook.send(text="only you")).status_code == 200
    assert [e.text for e in workspace.person("U0REVIEWER").ephemerals()] == ["only you"]
    assert workspace.visible(CHANNEL) == []
    await hook.send(text="all of you", response_type="in_channel")
    assert [m.text for m in workspace.visible(CHANNEL)] == ["all of you"]


async def test_the_sixth_use_is_refused(hook: AsyncWebhookClient, workspace: Workspace) -> None:
    statuses = [(await hook.send(text=str(n))).status_code for n in range(6)]
    assert statuses == [200] * 5 + [404]
    assert len(workspace.person("U0REVIEWER").ephemerals()) == 5


async def test_it_expires_after_thirty_minutes(
    hook: AsyncWebhookClient, clock: VirtualClock
) -> None:
    clock.advance(30 * 60)
    assert (await hook.send(text="in time")).status_code == 200
    clock.advance(0.001)
    late = await hook.send(text="late")
    assert (late.status_code, "expired_url" in late.body) == (404, True)


async def test_it_replaces_and_deletes_the_message_that_was_clicked(
    client: AsyncWebClient, workspace: Workspace, bot: BotDouble
) -> None:
    answer = await client.chat_postMessage(channel=CHANNEL, text="card", blocks=make_card())
    hook = await clicked(workspace, bot, answer["ts"])
    await hook.send(text="decided", replace_original=True)
    [message] = workspace.visible(CHANNEL)
    assert (message.ts, message.text, len(message.revisions)) == (answer["ts"], "decided", 2)
    await hook.send(delete_original=True)
    assert workspace.visible(CHANNEL) == []


async def test_it_replaces_the_ephemeral_that_was_clicked(
    client: AsyncWebClient, workspace: Workspace, bot: BotDouble
) -> None:
    answer = await client.chat_postEphemeral(
        channel=CHANNEL, user="U0REVIEWER", text="t", blocks=make_card()
    )
    hook = await clicked(workspace, bot, answer["message_ts"])
    await hook.send(text="replaced", replace_original=True)
    assert [e.text for e in workspace.person("U0REVIEWER").ephemerals()] == ["replaced"]


async def test_invalid_blocks_are_refused(hook: AsyncWebhookClient, workspace: Workspace) -> None:
    bad = await hook.send(text="t", blocks=[{"type": "header", "text": plain("x" * 151)}])
    assert (bad.status_code, "invalid_blocks" in bad.body) == (400, True)
    assert workspace.person("U0REVIEWER").ephemerals() == []


async def test_an_invented_url_is_refused(slack: SlackServer) -> None:
    hook = AsyncWebhookClient(f"{slack.url}/response/invented", retry_handlers=[])
    assert (await hook.send(text="t")).status_code == 404


async def test_faults_reach_response_urls_too(slack: SlackServer, hook: AsyncWebhookClient) -> None:
    slack.faults.add("response_url", fault=Fault.LOST_AFTER_COMMIT)
    with pytest.raises(aiohttp.ClientError):
        await hook.send(text="t")
    assert len(slack.workspace.person("U0REVIEWER").ephemerals()) == 1
