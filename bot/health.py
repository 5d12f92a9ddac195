"""Whether the process lives and can do its work; short JSON without settings or names."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from aiohttp import web

from bot.ingress.counts import Counts
from bot.ingress.webhooks import WebhookCounts
from executor.domain.errors import ExecutorError
from executor.engine.doubt import count_in_doubt
from executor.engine.engine import Engine
from executor.engine.presenting import cards_behind
from executor.engine.setup import schema_is_current
from executor.engine.status import database_time

MOST_SKEW_SECONDS = 2.0
BEHIND_AFTER_SECONDS = 60.0
_CHECK_SECONDS = 3.0


class Health:
    """Answers ``/healthz`` and ``/readyz``; ``is_listening`` says whether notifications arrive."""

    def __init__(
        self,
        engine: Engine,
        counts: Counts,
        is_listening: Callable[[], bool],
        webhooks: Mapping[str, WebhookCounts],
    ) -> None:
        self._engine = engine
        self._counts = counts
        self._is_listening = is_listening
        self._webhooks = webhooks

    async def healthz(self, request: web.Request) -> web.Response:
        """Say that the process lives."""
        return web.json_response({"status": "alive"})

    async def readyz(self, request: web.Request) -> web.Response:
        """Say whether requests can be taken on, and each reason why not."""
        problems: list[str] = []
        report: dict[str, object] = {
            "ingress": self._counts.as_json(),
            "webhooks": {name: counts.as_json() for name, counts in self._webhooks.items()},
        }
        if not self._is_listening():
            problems.append("listener_down")
        try:
            async with asyncio.timeout(_CHECK_SECONDS):
                await self._look_at_database(problems, report)
        except (ExecutorError, TimeoutError):
            problems.append("database_away")
        report |= {"status": "not ready" if problems else "ready", "problems": problems}
        return web.json_response(report, status=503 if problems else 200)

    async def _look_at_database(self, problems: list[str], report: dict[str, object]) -> None:
        before = self._engine.clock.wall()
        database = await database_time(self._engine)
        after = self._engine.clock.wall()
        # The database's clock was read at some moment between the two.
        skew = before - database if database < before else min(database, after) - database
        skew_seconds = round(skew.total_seconds(), 1)
        report["clock_skew_seconds"] = skew_seconds
        if abs(skew_seconds) > MOST_SKEW_SECONDS:
            problems.append("clock_skew")
        if not await schema_is_current(self._engine.database):
            problems.append("schema_is_old")
        behind, unseen = await cards_behind(self._engine, BEHIND_AFTER_SECONDS)
        in_doubt = await count_in_doubt(self._engine)
        report |= {"cards_behind": behind, "cards_unseen": unseen, "in_doubt": in_doubt}
