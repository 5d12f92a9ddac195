"""Whether the process lives and can do its work; short JSON without settings or names."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from aiohttp import web

from bot.ingress.counts import Counts
from bot.ingress.webhooks import WebhookCounts
from executor.domain.errors import ExecutorError
from executor.domain.ids import TenantId
from executor.engine.card_turns import Delivery
from executor.engine.delivery_trouble import WORKSPACE
from executor.engine.doubt import count_in_doubt
from executor.engine.engine import Engine
from executor.engine.people import group_problems
from executor.engine.presenting import cards_behind
from executor.engine.setup import schema_is_current
from executor.engine.status import database_time, run_load
from executor.engine.unseen import delivery_report

MOST_SKEW_SECONDS = 2.0
BEHIND_AFTER_SECONDS = 60.0
WAITS_FOR_ITS_TURN = "waits_for_its_turn"
_CHECK_SECONDS = 3.0


class Health:
    """Answers ``/healthz`` and ``/readyz``; ``is_listening`` says whether notifications arrive."""

    def __init__(
        self,
        engine: Engine,
        counts: Counts,
        is_listening: Callable[[], bool],
        webhooks: Mapping[str, WebhookCounts],
        tenant: TenantId,
        delivery: Delivery,
    ) -> None:
        self._engine = engine
        self._counts = counts
        self._is_listening = is_listening
        self._webhooks = webhooks
        self._tenant = tenant
        self._delivery = delivery

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
        # Nobody acts by being in such a group; whoever is named by name is not held up by it.
        report["groups_unknown"] = await group_problems(self._engine, self._tenant)
        report |= await self._look_at_delivery()
        load = await run_load(self._engine, self._tenant)
        if load is not None:
            report |= {"runs_queued": load.queued, "runs_at_work": load.at_work}
            report["runs_at_work_most"] = load.most_at_work

    async def _look_at_delivery(self) -> dict[str, object]:
        """Tell what cannot be shown; requests are taken on all the same."""
        found = await delivery_report(self._engine, self._delivery)
        return {
            "approvals_unseen": sum(one.approvals for one in found.unseen),
            "approvals_unseen_oldest_seconds": round(
                max((one.oldest_seconds for one in found.unseen), default=0.0)
            ),
            "approvals_unseen_problems": {
                one.problem or WAITS_FOR_ITS_TURN: one.approvals for one in found.unseen
            },
            "delivery_troubles": [
                {
                    "where": self._named(one.place),
                    "problem": one.problem,
                    "seconds": round(one.seconds),
                    "is_tried": one.is_tried,
                }
                for one in found.troubles
            ],
        }

    def _named(self, place: str) -> str:
        """Name a place without its id."""
        route = self._delivery.route
        names = {WORKSPACE: "workspace", route.channel: "channel", route.fallback: "fallback"}
        return names.get(place, "another channel")
