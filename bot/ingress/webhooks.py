"""The providers' door: ``POST /webhooks/<provider>``, there only where its secret is configured.

Nothing is parsed before the reader has proved whose request it is. Answers to what is turned away
are short, fixed and tell nothing. What could not be recorded is answered so that the provider sends
it again; what it sends again changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import assert_never

from aiohttp import web

from bot.ingress.body import BodyRefused, BodyTooLarge, read_body, single_header
from bot.kept_work import KeptWork, TooMuchAtOnce
from executor.domain.delivery_event import (
    LONGEST_WEBHOOK,
    DeliveryEvent,
    RefusalReason,
    WebhookRefused,
)
from executor.domain.errors import ExecutorError
from executor.domain.ids import TenantId
from executor.engine.engine import Engine
from executor.engine.late_evidence import Recorded, record

_log = logging.getLogger(__name__)

_RECORD_SECONDS = 5.0

ReadWebhook = Callable[[bytes, Mapping[str, str], datetime], DeliveryEvent | None]
"""Verifies and reads one request at this host's time; raises ``WebhookRefused``.

``None`` is an authentic event that says nothing about delivery.
"""


@dataclass(slots=True)
class WebhookCounts:
    """One provider's requests by what became of them, for the health check."""

    accepted: int = 0
    not_ours: int = 0
    not_authentic: int = 0
    stale: int = 0
    malformed: int = 0
    too_large: int = 0
    unavailable: int = 0

    def as_json(self) -> dict[str, int]:
        """Spell the counts for the health check."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Webhook:
    """One provider's door; ``provider`` is its name without the account, as in ``resend``."""

    provider: str
    read: ReadWebhook
    counts: WebhookCounts = field(default_factory=WebhookCounts)

    @property
    def path(self) -> str:
        """Where the provider sends to."""
        return f"/webhooks/{self.provider}"


class Webhooks:
    """Answers one provider's requests."""

    def __init__(self, engine: Engine, tenant: TenantId, webhook: Webhook, kept: KeptWork) -> None:
        self._engine = engine
        self._tenant = tenant
        self._webhook = webhook
        self._counts = webhook.counts
        self._kept = kept

    async def handle(self, request: web.Request) -> web.Response:
        """Answer one request."""
        try:
            body = await read_body(request, LONGEST_WEBHOOK)
            event = self._webhook.read(body, _headers(request), self._engine.clock.wall())
        except BodyTooLarge:
            return self._refuse(RefusalReason.TOO_LARGE)
        except BodyRefused as refused:
            self._counts.malformed += 1
            return web.Response(status=refused.status, text=refused.text)
        except WebhookRefused as refused:
            return self._refuse(refused.reason)
        if event is None:
            self._counts.not_ours += 1
            return web.Response()
        return await self._record(event)

    async def _record(self, event: DeliveryEvent) -> web.Response:
        work = record(self._engine, self._tenant, self._webhook.provider, event)
        try:
            came_to = await self._kept.within(_RECORD_SECONDS, work)
        except (ExecutorError, TimeoutError, TooMuchAtOnce) as error:
            self._counts.unavailable += 1
            _log.warning("a webhook could not be recorded: %s", type(error).__name__)
            return web.Response(status=503, text="unavailable")
        if came_to is Recorded.NOT_OURS:
            self._counts.not_ours += 1
        else:
            self._counts.accepted += 1
        return web.Response()

    def _refuse(self, reason: RefusalReason) -> web.Response:
        _log.warning("a webhook of %s was turned away: %s", self._webhook.provider, reason.value)
        match reason:
            case RefusalReason.TOO_LARGE:
                self._counts.too_large += 1
                return web.Response(status=413, text="too large")
            case RefusalReason.MALFORMED:
                self._counts.malformed += 1
                return web.Response(status=400, text="bad request")
            case RefusalReason.NOT_AUTHENTIC:
                self._counts.not_authentic += 1
            case RefusalReason.STALE:
                self._counts.stale += 1
            case _:
                assert_never(reason)
        return web.Response(status=401, text="unauthorised")


def _headers(request: web.Request) -> dict[str, str]:
    """Keep the headers that stand there exactly once: two signatures are none."""
    found = {name.lower(): single_header(request, name) for name in request.headers}
    return {name: value for name, value in found.items() if value is not None}
