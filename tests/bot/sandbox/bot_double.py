"""A bot that verifies, remembers and answers as it is told: the other end of a delivery."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import parse_qsl

from aiohttp import web
from slack_sdk.signature import SignatureVerifier

from bot.sandbox.model import Json


@dataclass(frozen=True)
class Received:
    """One request that reached the bot."""

    body: bytes
    headers: dict[str, str]

    @property
    def fields(self) -> dict[str, str]:
        return dict(parse_qsl(self.body.decode(), keep_blank_values=True))

    @property
    def payload(self) -> Json:
        if self.headers["Content-Type"] == "application/json":
            payload: Json = json.loads(self.body)
            return payload
        fields = self.fields
        return json.loads(fields["payload"]) if "payload" in fields else dict(fields)

    def is_signed_with(self, secret: str) -> bool:
        return SignatureVerifier(secret).is_valid_request(self.body, self.headers)


Answer = Callable[[Received], Awaitable[web.StreamResponse]]


class BotDouble:
    """Remember each request and answer with `answer`, 200 and nothing unless set."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.answer: Answer | None = None
        self.url = ""

    def answers(self, status: int = 200, body: Json | None = None, text: str = "") -> None:
        """Give the same answer to every request from now on."""

        async def answer(received: Received) -> web.StreamResponse:
            if body is not None:
                return web.json_response(body, status=status)
            return web.Response(status=status, text=text)

        self.answer = answer

    async def handle(self, request: web.Request) -> web.StreamResponse:
        received = Received(await request.read(), dict(request.headers))
        self.received.append(received)
        return web.Response() if self.answer is None else await self.answer(received)


@asynccontextmanager
async def running_bot() -> AsyncIterator[BotDouble]:
    bot = BotDouble()
    app = web.Application()
    app.router.add_post("/slack/events", bot.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.5)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    bot.url = f"http://{host}:{port}"
    try:
        yield bot
    finally:
        await runner.cleanup()
