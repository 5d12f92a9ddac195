"""The one door: ``POST /slack/events``. Nothing is parsed before its signature holds.

Size, headers, signature and age, then the body; only what passed all of them reaches Bolt, whose
own verification is switched off by the mode that this module alone uses. Answers to what is turned
away are short, fixed and tell nothing. A database that is away is a failure that the sender sees:
Slack repeats events, and a person sees that the click did not arrive.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from aiohttp import web
from slack_bolt.async_app import AsyncApp, AsyncBoltRequest
from slack_bolt.response import BoltResponse

from bot.ingress.body import BodyTooLarge, read_body, single_header
from bot.ingress.counts import Counts
from bot.ingress.requests import (
    LARGEST_BODY_BYTES,
    EventCallback,
    Interaction,
    Malformed,
    UrlVerification,
    parse,
)
from bot.ingress.signature import Verdict, request_hash, verify
from bot.kept_work import KeptWork, TooMuchAtOnce
from executor.domain.errors import ExecutorError
from executor.domain.ids import TenantId
from executor.domain.payloads import JsonObject, storable
from executor.engine.engine import Engine
from executor.engine.events import store_event

_log = logging.getLogger(__name__)

PATH = "/slack/events"
REQUEST_HASH = "request_hash"
"""The key under which a listener finds the hash of the signed request in Bolt's context."""

UNAVAILABLE = 503
"""The status of what could not be recorded: Slack repeats an event, a person sees a failure."""

_STORE_SECONDS = 2.0


class Ingress:
    """Answers Slack's requests; ``now`` is this host's clock in Unix seconds."""

    def __init__(
        self,
        *,
        engine: Engine,
        tenant: TenantId,
        secrets: Sequence[bytes],
        bolt: AsyncApp,
        now: Callable[[], float],
        counts: Counts,
        kept: KeptWork,
    ) -> None:
        if not secrets or not all(secrets):
            raise ValueError("without a signing secret nothing can be verified")
        self._engine = engine
        self._tenant = tenant
        self._secrets = tuple(secrets)
        self._bolt = bolt
        self._now = now
        self._counts = counts
        self._kept = kept

    async def handle(self, request: web.Request) -> web.Response:
        """Answer one request."""
        try:
            body = await read_body(request, LARGEST_BODY_BYTES)
        except BodyTooLarge:
            self._counts.too_large += 1
            return web.Response(status=413, text="too large")
        timestamp = single_header(request, "X-Slack-Request-Timestamp")
        signature = single_header(request, "X-Slack-Signature")
        verdict = verify(body, timestamp, signature, self._secrets, self._now())
        if verdict is not Verdict.OK:
            return self._turn_away(verdict)
        assert timestamp is not None
        assert signature is not None
        try:
            parsed = parse(body, request.content_type)
        except Malformed:
            self._counts.malformed_body += 1
            return web.Response(status=400, text="bad request")
        self._counts.accepted += 1
        match parsed:
            case UrlVerification(challenge=challenge):
                return web.Response(text=challenge)
            case EventCallback():
                return await self._store(parsed)
            case Interaction(body=fields):
                return await self._dispatch(fields, request_hash(body, timestamp, signature))
            case _:
                return web.Response()

    def _turn_away(self, verdict: Verdict) -> web.Response:
        match verdict:
            case Verdict.BAD_SIGNATURE:
                self._counts.bad_signature += 1
            case Verdict.STALE_TIMESTAMP:
                self._counts.stale_timestamp += 1
            case _:
                self._counts.malformed_headers += 1
        _log.warning("a request was turned away: %s", verdict.value)
        return web.Response(status=401, text="unauthorised")

    async def _store(self, event: EventCallback) -> web.Response:
        """Store an event and acknowledge it; whoever sent it to another tenant hears nothing."""
        if event.team_id != self._tenant:
            _log.warning("an event of another workspace was ignored")
            return web.Response()
        payload: JsonObject = {"event": event.event, "team_id": event.team_id}
        stored = storable(payload)
        assert isinstance(stored, Mapping)
        try:
            work = store_event(self._engine, self._tenant, event.event_id, stored)
            await self._kept.within(_STORE_SECONDS, work)
        except (ExecutorError, TimeoutError, TooMuchAtOnce) as error:
            return self._unavailable(error)
        return web.Response()

    async def _dispatch(self, body: dict[str, object], named: bytes) -> web.Response:
        answer = await self._bolt.async_dispatch(
            AsyncBoltRequest(body=body, context={REQUEST_HASH: named}, mode="socket_mode")
        )
        if answer.status == UNAVAILABLE:
            self._counts.unavailable += 1
        return _as_web(answer)

    def _unavailable(self, error: Exception) -> web.Response:
        self._counts.unavailable += 1
        _log.warning("a request could not be taken on: %s", type(error).__name__)
        return web.Response(status=UNAVAILABLE, text="unavailable")


def _as_web(answer: BoltResponse) -> web.Response:
    content_type = answer.headers.get("content-type", ["text/plain"])[0]
    return web.Response(
        status=answer.status,
        body=(answer.body or "").encode(),
        headers={"Content-Type": content_type},
    )
