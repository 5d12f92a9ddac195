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

from bot.ingress.body import BodyRefused, BodyTooLarge, BodyTooSlow, read_body, single_header
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
    """Answers Slack's requests; ``now`` is this host's clock in Unix seconds.

    ``app_id`` is the app that they have to be for, if it is known: one secret signs for one app,
    but nobody keeps whoever runs the bot from configuring the secret of another.
    """

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
        app_id: str = "",
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
        self._apps = (app_id, None) if app_id else ()

    async def handle(self, request: web.Request) -> web.Response:
        """Answer one request."""
        try:
            body = await read_body(request, LARGEST_BODY_BYTES)
        except BodyRefused as refused:
            return self._leave(refused)
        timestamp = single_header(request, "X-Slack-Request-Timestamp")
        signature = single_header(request, "X-Slack-Signature")
        verdict = verify(body, timestamp, signature, self._secrets, self._now())
        if verdict is not Verdict.OK:
            return self._turn_away(verdict)
        assert timestamp is not None
        assert signature is not None
        try:
            parsed = parse(body, request.content_type, request.charset)
        except Malformed:
            self._counts.malformed_body += 1
            return web.Response(status=400, text="bad request")
        if isinstance(parsed, EventCallback | Interaction) and not self._is_ours(parsed):
            self._counts.other_app += 1
            _log.warning("a request for another app was turned away")
            return web.Response(status=403, text="not ours")
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

    def _is_ours(self, parsed: EventCallback | Interaction) -> bool:
        return not self._apps or parsed.api_app_id in self._apps

    def _leave(self, refused: BodyRefused) -> web.Response:
        match refused:
            case BodyTooLarge():
                self._counts.too_large += 1
            case BodyTooSlow():
                self._counts.too_slow += 1
            case _:
                self._counts.malformed_body += 1
        return web.Response(status=refused.status, text=refused.text)

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
        if not event.is_for(self._tenant):
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
