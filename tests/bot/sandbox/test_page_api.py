"""The page's JSON: the state, the stream of versions, a person's hands, and local pages only."""

from __future__ import annotations

import asyncio
import json

import aiohttp
import pytest
from aiohttp import web
from slack_sdk.web.async_client import AsyncWebClient

from bot.sandbox.model import Json
from bot.sandbox.page_api import MAX_STREAMS
from bot.sandbox.slack_server import SlackServer, routes
from bot.sandbox.workspace import Workspace
from tests.bot.sandbox.bot_double import BotDouble
from tests.bot.sandbox.conftest import CHANNEL, client_of, make_card, modal, plain


async def act(slack: SlackServer, http: aiohttp.ClientSession, what: str, **body: object) -> Json:
    async with http.post(f"{slack.url}/sandbox/{what}", json=body) as response:
        answer: Json = await response.json()
        return answer | {"http": response.status}


async def state(slack: SlackServer, http: aiohttp.ClientSession) -> Json:
    async with http.get(f"{slack.url}/sandbox/state") as response:
        shown: Json = await response.json()
        return shown


async def test_the_state_shows_people_channels_and_literal_messages(
    slack: SlackServer, client: AsyncWebClient, http: aiohttp.ClientSession
) -> None:
    blocks = [{"type": "header", "text": plain("Q&A <draft>")}, *make_card()]
    parent = await client.chat_postMessage(channel=CHANNEL, text="t", blocks=blocks)
    await client.chat_postMessage(channel=CHANNEL, text="reply", thread_ts=parent["ts"])
    await client.chat_postEphemeral(channel=CHANNEL, user="U0GUEST", text="psst")
    shown = await state(slack, http)
    assert shown["team"] == {"id": "TSIGNOFF", "name": "Acme Support"}
    roles = {user["id"]: user["role"] for user in shown["users"]}
    assert roles == {
        "U0REQUESTER": "member",
        "U0REVIEWER": "member",
        "U0SECOND": "member",
        "U0OUTSIDER": "outsider",
        "U0GUEST": "guest",
        "U0SIGNOFF": "bot",
        "U0AGENT": "agent",
    }
    [approvals] = [c for c in shown["channels"] if c["id"] == CHANNEL]
    first, second = approvals["messages"]
    assert first["blocks"][0]["text"]["text"] == "Q&A <draft>"
    assert (first["bot"], first["reply_count"], second["thread_ts"]) == (True, 1, parent["ts"])
    assert [e["text"] for e in shown["ephemerals"]["U0GUEST"]] == ["psst"]
    assert shown["views"]["U0REVIEWER"] is None
    assert shown["version"] == slack.workspace.version


async def test_a_person_can_do_everything_from_the_page(
    slack: SlackServer, client: AsyncWebClient, bot: BotDouble, http: aiohttp.ClientSession
) -> None:
    bot.answers(body={"text": "started"})
    typed = await act(
        slack, http, "slash", user="U0REQUESTER", channel=CHANNEL, text="/signoff run 4101"
    )
    assert (typed["sees"], typed["status"]) == ("started", 200)
    assert (bot.received[0].fields["command"], bot.received[0].fields["text"]) == (
        "/signoff",
        "run 4101",
    )
    bot.answer = None
    card = await client.chat_postMessage(channel=CHANNEL, text="t", blocks=make_card())
    pressed = await act(
        slack,
        http,
        "click",
        user="U0REVIEWER",
        channel=CHANNEL,
        ts=card["ts"],
        action_id="approve",
        block_id="decide.1",
    )
    assert (pressed["sees"], pressed["status"]) == ("nothing", 200)
    opened = await client.views_open(
        trigger_id=bot.received[-1].payload["trigger_id"], view=modal()
    )
    view_id = opened["view"]["id"]
    assert (await state(slack, http))["views"]["U0REVIEWER"]["id"] == view_id
    bot.answers(body={"response_action": "errors", "errors": {"reason": "say more"}})
    sent = await act(
        slack,
        http,
        "submit",
        user="U0REVIEWER",
        view_id=view_id,
        values={"reason": {"text": "no"}},
    )
    assert (sent["sees"], sent["view_errors"]) == ("say more", {"reason": "say more"})
    closed = await act(slack, http, "close_view", user="U0REVIEWER", view_id=view_id)
    assert closed["sees"] == "nothing"
    bot.answer = None
    said = await act(slack, http, "mention", user="U0REQUESTER", channel=CHANNEL, text="hello")
    assert said["status"] == 200
    assert bot.received[-1].payload["event"]["text"] == "<@U0SIGNOFF> hello"


async def test_a_button_in_a_modal_can_be_pressed(
    slack: SlackServer, client: AsyncWebClient, bot: BotDouble, http: aiohttp.ClientSession
) -> None:
    await act(slack, http, "slash", user="U0REVIEWER", channel=CHANNEL, text="/signoff")
    opened = await client.views_open(
        trigger_id=bot.received[-1].fields["trigger_id"], view=modal(blocks=make_card())
    )
    view_id = opened["view"]["id"]
    await act(slack, http, "click", user="U0REVIEWER", view_id=view_id, action_id="approve")
    assert bot.received[-1].payload["container"]["view_id"] == view_id


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"user": "U0REVIEWER", "channel": CHANNEL, "ts": "1.1", "action_id": "approve"}, 409),
        ({"user": "U0NOBODY", "channel": CHANNEL, "ts": "1.1", "action_id": "approve"}, 400),
        ({"user": "U0REVIEWER"}, 400),
        ([], 400),
    ],
)
async def test_what_cannot_be_done_is_said(
    slack: SlackServer, http: aiohttp.ClientSession, body: object, status: int
) -> None:
    async with http.post(f"{slack.url}/sandbox/click", json=body) as response:
        assert response.status == status
        assert (await response.json())["error"]


async def test_acting_before_a_bot_is_connected_is_said(http: aiohttp.ClientSession) -> None:
    async with SlackServer() as slack:
        answer = await act(slack, http, "slash", user="U0GUEST", channel=CHANNEL, text="/signoff")
    assert (answer["http"], "no bot" in answer["error"]) == (503, True)


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "127.0.0.1.evil.example:80"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost.evil.example"},
    ],
)
async def test_pages_from_elsewhere_are_refused(
    slack: SlackServer, http: aiohttp.ClientSession, headers: dict[str, str]
) -> None:
    for path in ("state", "events"):
        async with http.get(f"{slack.url}/sandbox/{path}", headers=headers) as response:
            assert response.status == 403
    body = {"user": "U0REVIEWER", "channel": CHANNEL, "text": "/signoff"}
    url = f"{slack.url}/sandbox/slash"
    async with http.post(url, json=body, headers=headers) as response:
        assert response.status == 403
    assert slack.record.deliveries() == []


@pytest.mark.parametrize(
    "origin", ["http://localhost:8080", "http://127.0.0.1:9", "http://[::1]:9"]
)
async def test_local_pages_are_served(
    slack: SlackServer, http: aiohttp.ClientSession, origin: str
) -> None:
    url = f"{slack.url}/sandbox/state"
    async with http.get(url, headers={"Origin": origin}) as response:
        assert response.status == 200


async def test_a_form_of_a_foreign_page_cannot_act(
    slack: SlackServer, http: aiohttp.ClientSession
) -> None:
    body = json.dumps({"user": "U0REVIEWER", "channel": CHANNEL, "text": "/signoff"})
    url = f"{slack.url}/sandbox/slash"
    async with http.post(url, data=body, headers={"Content-Type": "text/plain"}) as response:
        assert response.status == 415


async def version_from(stream: aiohttp.StreamReader) -> int:
    async with asyncio.timeout(5):
        line = await stream.readline()
        assert await stream.readline() == b"\n"
    prefix, _, data = line.decode().partition(": ")
    assert prefix == "data"
    return int(json.loads(data)["version"])


async def test_the_stream_tells_the_version_now_and_merges_later_changes(
    slack: SlackServer, http: aiohttp.ClientSession
) -> None:
    workspace = slack.workspace
    async with http.get(f"{slack.url}/sandbox/events") as response:
        assert response.content_type == "text/event-stream"
        assert await version_from(response.content) == workspace.version
        for number in range(20):
            workspace.post(CHANNEL, "U0REVIEWER", str(number))
        assert await version_from(response.content) == workspace.version
        workspace.close()
        async with asyncio.timeout(5):
            await response.read()


async def test_open_streams_are_bounded(slack: SlackServer) -> None:
    connector = aiohttp.TCPConnector(limit=MAX_STREAMS + 1)
    async with aiohttp.ClientSession(connector=connector) as http:
        url = f"{slack.url}/sandbox/events"
        streams = [await http.get(url) for _ in range(MAX_STREAMS)]
        async with http.get(url) as response:
            assert response.status == 503
        for stream in streams:
            stream.close()


async def test_the_same_handlers_can_be_mounted_elsewhere(workspace: Workspace) -> None:
    app = web.Application()
    app.add_routes(routes(workspace))
    runner = web.AppRunner(app, shutdown_timeout=0.5)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    workspace.public_url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        client = AsyncWebClient(
            token=workspace.bot_token, base_url=f"{workspace.public_url}/api/", retry_handlers=[]
        )
        assert (await client.auth_test())["team_id"] == "TSIGNOFF"
    finally:
        await runner.cleanup()


async def test_a_server_can_be_left_while_a_stream_is_open(workspace: Workspace) -> None:
    async with aiohttp.ClientSession() as http:
        async with SlackServer(workspace) as slack:
            response = await http.get(f"{slack.url}/sandbox/events")
            await version_from(response.content)
            await client_of(slack).auth_test()
        async with asyncio.timeout(5):
            await response.read()
