"""Socket Mode, as slack_sdk's own client speaks it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.async_client import AsyncBaseSocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.socket_mode.response import SocketModeResponse
from slack_sdk.web.async_client import AsyncWebClient

from bot.sandbox.clock import VirtualClock
from bot.sandbox.delivery import Sees
from bot.sandbox.model import Json
from bot.sandbox.slack_server import SlackServer
from tests.bot.sandbox.conftest import CHANNEL, client_of, make_card


class SocketBot:
    """A bot on a socket: remembers envelopes and acks them with `payload`, unless `deaf`."""

    def __init__(self) -> None:
        self.received: list[SocketModeRequest] = []
        self.payload: Json | None = None
        self.deaf = False

    async def listen(self, client: AsyncBaseSocketModeClient, request: SocketModeRequest) -> None:
        self.received.append(request)
        if not self.deaf:
            await client.send_socket_mode_response(
                SocketModeResponse(request.envelope_id, self.payload)
            )


@pytest.fixture
async def socket_bot(slack: SlackServer) -> AsyncIterator[SocketBot]:
    bot = SocketBot()
    slack.workspace.use_socket_mode()
    client = SocketModeClient(
        app_token=slack.workspace.app_token,
        web_client=client_of(slack),
        auto_reconnect_enabled=False,
    )
    client.socket_mode_request_listeners.append(bot.listen)
    await client.connect()  # type: ignore[no-untyped-call]
    yield bot
    await client.close()  # type: ignore[no-untyped-call]


async def test_clicks_commands_and_events_arrive_over_the_socket(
    slack: SlackServer, client: AsyncWebClient, socket_bot: SocketBot
) -> None:
    person = slack.workspace.person("U0REVIEWER")
    card = await client.chat_postMessage(channel=CHANNEL, text="t", blocks=make_card())
    click = await person.click(CHANNEL, card["ts"], "approve")
    assert (click.status, click.sees) == (200, Sees.NOTHING)
    socket_bot.payload = {"text": "only you"}
    assert (await person.slash(CHANNEL, "/signoff", "run 4101")).said == "only you"
    socket_bot.payload = None
    assert (await person.mention(CHANNEL, "hello")).acknowledged
    interactive, command, event = socket_bot.received
    assert interactive.type == "interactive"
    assert interactive.payload["actions"][0]["value"] == "op:1"
    assert command.type == "slash_commands"
    assert command.payload["text"] == "run 4101"
    assert event.type == "events_api"
    assert event.payload["event"]["type"] == "app_mention"


async def test_an_event_without_ack_comes_again_with_its_attempt(
    slack: SlackServer, socket_bot: SocketBot, clock: VirtualClock
) -> None:
    socket_bot.deaf = True
    await slack.workspace.person("U0REQUESTER").mention(CHANNEL, "hello")
    await clock.until_sleeping()
    socket_bot.deaf = False
    clock.advance(60)
    await slack.workspace.event_retries.settle()
    assert [r.retry_attempt for r in socket_bot.received] == [0, 1, 2]
    assert len({r.envelope_id for r in socket_bot.received}) == 3


async def test_a_dead_socket_loses_a_click(
    slack: SlackServer, client: AsyncWebClient, socket_bot: SocketBot
) -> None:
    card = await client.chat_postMessage(channel=CHANNEL, text="t", blocks=make_card())
    slack.workspace.sockets.silent = True
    lost = await slack.workspace.person("U0REVIEWER").click(CHANNEL, card["ts"], "approve")
    assert (lost.sees, socket_bot.received) == (Sees.WARNING_SIGN, [])


async def test_a_bot_without_socket_gets_nothing(slack: SlackServer) -> None:
    slack.workspace.use_socket_mode()
    missed = await slack.workspace.person("U0REVIEWER").slash(CHANNEL, "/signoff")
    assert missed.sees is Sees.OPERATION_TIMEOUT


async def connection_url(slack: SlackServer) -> str:
    answer = await client_of(slack).apps_connections_open(app_token=slack.workspace.app_token)
    return str(answer["url"])


async def connected(
    slack: SlackServer, http: aiohttp.ClientSession
) -> tuple[aiohttp.ClientWebSocketResponse, Json]:
    """Open one connection by hand and return it with its greeting."""
    socket = await http.ws_connect(await connection_url(slack))
    return socket, await socket.receive_json()


async def test_connections_are_counted_and_each_url_is_good_once(
    slack: SlackServer, http: aiohttp.ClientSession
) -> None:
    url = await connection_url(slack)
    one = await http.ws_connect(url)
    first = await one.receive_json()
    two, second = await connected(slack, http)
    assert (first["type"], first["num_connections"], second["num_connections"]) == ("hello", 1, 2)
    with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
        await http.ws_connect(url)
    assert caught.value.status == 403
    more = [await connected(slack, http) for _ in range(8)]
    with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
        await connected(slack, http)
    assert caught.value.status == 429
    assert not any(socket.closed for socket in (one, two, *(m[0] for m in more)))


async def test_envelopes_take_turns_over_the_connections(
    slack: SlackServer, http: aiohttp.ClientSession
) -> None:
    sockets = [(await connected(slack, http))[0] for _ in range(2)]
    slack.workspace.use_socket_mode()

    async def ack(socket: aiohttp.ClientWebSocketResponse) -> None:
        envelope = await socket.receive_json()
        await socket.send_json({"envelope_id": envelope["envelope_id"]})

    person = slack.workspace.person("U0REVIEWER")
    acks = [asyncio.create_task(ack(socket)) for socket in sockets]
    assert (await person.slash(CHANNEL, "/signoff")).acknowledged
    assert (await person.slash(CHANNEL, "/signoff")).acknowledged
    await asyncio.gather(*acks)


async def test_slack_says_goodbye_with_a_reason_or_not_at_all(
    slack: SlackServer, http: aiohttp.ClientSession
) -> None:
    socket, _ = await connected(slack, http)
    await slack.workspace.sockets.disconnect("warning")
    assert await socket.receive_json() == {"type": "disconnect", "reason": "warning"}
    assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE
    socket, _ = await connected(slack, http)
    slack.workspace.sockets.drop()
    assert (await socket.receive()).type in (aiohttp.WSMsgType.ERROR, aiohttp.WSMsgType.CLOSED)


async def test_only_an_app_token_in_the_header_opens_a_connection(
    slack: SlackServer, http: aiohttp.ClientSession
) -> None:
    for token, error in (
        (slack.workspace.bot_token, "not_allowed_token_type"),
        ("xapp-wrong", "invalid_auth"),
    ):
        with pytest.raises(SlackApiError) as caught:
            await client_of(slack).apps_connections_open(app_token=token)
        assert caught.value.response["error"] == error
    form = {"token": slack.workspace.app_token}
    async with http.post(f"{slack.api_url}apps.connections.open", data=form) as response:
        assert (await response.json())["error"] == "not_authed"
