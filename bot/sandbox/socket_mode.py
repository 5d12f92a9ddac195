"""Socket Mode: the same deliveries, over sockets that the bot opened.

Source: Slack, "Using Socket Mode": a URL is good for one connection, at most ten are open, any
envelope may go to any of them, and nothing is kept for a bot that has none.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from aiohttp import WSMsgType, web

from bot.sandbox.delivery import JSON, Delivery, SignedRequest
from bot.sandbox.model import Json

if TYPE_CHECKING:
    from bot.sandbox.workspace import Workspace

MAX_CONNECTIONS = 10
MAX_TICKETS = 100
_ENVELOPES = {"event": "events_api", "slash": "slash_commands"}


class Sockets:
    """The open sockets of one app, and the envelopes that wait for their ack."""

    def __init__(self) -> None:
        self._tickets: list[str] = []
        self._open: list[web.WebSocketResponse] = []
        self._transports: dict[web.WebSocketResponse, asyncio.Transport] = {}
        self._acks: dict[str, asyncio.Future[Json]] = {}
        self._turn = 0
        self.silent = False

    @property
    def connections(self) -> int:
        return len(self._open)

    def issue_ticket(self) -> str:
        """Return the secret last part of a URL that opens one connection."""
        ticket = secrets.token_urlsafe(18)
        self._tickets = [*self._tickets, ticket][-MAX_TICKETS:]
        return ticket

    def spend(self, ticket: str) -> bool:
        """Tell whether the ticket was good; it no longer is."""
        if ticket not in self._tickets:
            return False
        self._tickets.remove(ticket)
        return True

    async def serve(
        self, socket: web.WebSocketResponse, transport: asyncio.Transport, app_id: str
    ) -> None:
        """Greet a connection and take its acks until it ends."""
        self._open.append(socket)
        self._transports[socket] = transport
        try:
            await socket.send_json(
                {
                    "type": "hello",
                    "num_connections": self.connections,
                    "connection_info": {"app_id": app_id},
                    "debug_info": {"host": "sandbox", "approximate_connection_time": 18060},
                }
            )
            async for frame in socket:
                if frame.type is WSMsgType.TEXT:
                    self._take_ack(frame.data)
        finally:
            self._open.remove(socket)
            del self._transports[socket]

    def _take_ack(self, text: str) -> None:
        try:
            frame = json.loads(text)
        except ValueError:
            return  # Slack, too, ignores a frame that it cannot read.
        waiting = self._acks.get(str(frame.get("envelope_id"))) if isinstance(frame, dict) else None
        if waiting is not None and not waiting.done():
            waiting.set_result(frame)

    async def deliver(self, request: SignedRequest, number: int, limit_seconds: float) -> Delivery:
        """Send one envelope over the next connection in turn and wait for its ack.

        While `silent`, the socket is open but dead: the envelope is lost.
        """
        delivery = Delivery(request, number)
        started = time.monotonic()
        envelope_id = secrets.token_hex(16)
        acked: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._acks[envelope_id] = acked
        try:
            async with asyncio.timeout(limit_seconds):
                if self._open and not self.silent:
                    self._turn += 1
                    socket = self._open[self._turn % len(self._open)]
                    await socket.send_json(_envelope(request, envelope_id))
                frame = await acked
            delivery.status = 200
            if "payload" in frame:
                delivery.body = json.dumps(frame["payload"])
                delivery.headers = {"content-type": JSON}
        except TimeoutError:
            delivery.timed_out = True
        except ConnectionError as error:
            delivery.body = type(error).__name__
        finally:
            del self._acks[envelope_id]
        delivery.seconds = time.monotonic() - started
        return delivery

    async def disconnect(self, reason: str = "refresh_requested") -> None:
        """Tell every connection to go, with Slack's reason, and close it."""
        for socket in list(self._open):
            await socket.send_json({"type": "disconnect", "reason": reason})
            await socket.close()

    def drop(self) -> None:
        """Cut every connection without a word."""
        for transport in self._transports.values():
            transport.abort()


def _envelope(request: SignedRequest, envelope_id: str) -> Json:
    envelope: Json = {
        "type": _ENVELOPES.get(request.kind, "interactive"),
        "envelope_id": envelope_id,
        "payload": payload_of(request),
        "accepts_response_payload": request.kind != "event",
    }
    if request.kind == "event":
        envelope["retry_attempt"] = int(request.headers.get("x-slack-retry-num", "0"))
        envelope["retry_reason"] = request.headers.get("x-slack-retry-reason", "")
    return envelope


def payload_of(request: SignedRequest) -> Json:
    """Return what a request carries, whichever way its body is encoded."""
    if request.headers["Content-Type"] == JSON:
        payload: Json = json.loads(request.body)
        return payload
    fields = dict(parse_qsl(request.body.decode(), keep_blank_values=True))
    return json.loads(fields["payload"]) if "payload" in fields else dict(fields)


class SocketEndpoint:
    """`GET /link/<ticket>`: where the URLs of apps.connections.open lead."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    async def handle(self, request: web.Request) -> web.StreamResponse:
        sockets = self._workspace.sockets
        if not sockets.spend(request.match_info["ticket"]):
            raise web.HTTPForbidden(text="this URL was used, or never issued")
        if sockets.connections >= MAX_CONNECTIONS:
            raise web.HTTPTooManyRequests(text="too_many_websockets")
        socket = web.WebSocketResponse(heartbeat=30.0)
        await socket.prepare(request)
        if request.transport is not None:
            await sockets.serve(socket, request.transport, self._workspace.app.app_id)
        return socket
