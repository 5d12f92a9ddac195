"""The bot, put together from values: what it answers over HTTP and the loops behind it.

Accepting stops first, requests in hand are answered, then the loops end. What a loop had in hand is
due again for the next process.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from aiohttp import web
from slack_bolt.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_sdk.web.async_client import AsyncWebClient

from bot.card_delivery import CardDelivery
from bot.cards import CardPainter
from bot.due_work import DueWork
from bot.health import Health
from bot.identity import IdentityWatch, Wait
from bot.inbox import Inbox
from bot.ingress.counts import Counts
from bot.ingress.handler import PATH, Ingress
from bot.ingress.webhooks import Webhook, Webhooks
from bot.kept_work import KeptWork
from bot.listeners.clicks import Clicks
from bot.listeners.commands import Commands
from bot.listeners.deciding import Deciding
from bot.listeners.opening_views import ViewOpener
from bot.listeners.registration import register
from bot.listeners.settling import Settling
from bot.listeners.views import Views
from bot.notice_delivery import NoticeDelivery
from bot.whisper import Whisperer
from executor.domain.policy import Policy
from executor.engine.engine import Engine
from executor.engine.events import StoredEvent, due_events
from executor.engine.presenting import DueCard, Notice, due_cards, due_notices

_log = logging.getLogger(__name__)

MOST_CARDS = 8
MOST_NOTICES = 8


class WrongWorkspace(Exception):
    """The token belongs to another workspace than the policy names."""


@dataclass(frozen=True, slots=True)
class Installation:
    """Who the bot is in its workspace, as ``auth.test`` said at the start."""

    team_id: str
    bot_id: str
    bot_user: str


@dataclass(frozen=True, slots=True)
class News:
    """How each loop waits for its news; every wait ends by its time limit."""

    cards: Wait
    notices: Wait
    identities: Wait
    inbox: Wait
    is_listening: Callable[[], bool]


async def installation_of(client: AsyncWebClient, policy: Policy) -> Installation:
    """Ask Slack once who we are; raises ``WrongWorkspace`` and what the SDK does."""
    said = await client.auth_test()
    team = str(said["team_id"])
    if team != policy.slack.team:
        raise WrongWorkspace(
            f"the token belongs to workspace {team}, the policy names {policy.slack.team}: "
            "correct slack.team in the policy file, or use that workspace's token"
        )
    return Installation(team, str(said.get("bot_id") or ""), str(said["user_id"]))


class Bot:
    """One web process of the bot."""

    def __init__(
        self,
        *,
        engine: Engine,
        policy: Policy,
        client: AsyncWebClient,
        token: str,
        installation: Installation,
        signing_secrets: Sequence[bytes],
        painter: CardPainter,
        news: News,
        delivery: CardDelivery | None = None,
        webhooks: Sequence[Webhook] = (),
    ) -> None:
        tenant = policy.tenant_id
        self.counts = Counts()
        self._kept = KeptWork()
        people = IdentityWatch(engine, tenant, client, self._kept)
        whisperer = Whisperer(client, self._kept)
        self._deciding = Deciding(engine, tenant, people, whisperer, self._kept)
        bolt = _bolt(client.base_url, token, installation)
        opener = ViewOpener(client, whisperer)
        clicks = Clicks(engine, self._deciding, painter, opener, whisperer)
        self._settling = Settling(
            engine, tenant, people, painter, opener, whisperer, self._kept, clicks.outdated
        )
        register(
            bolt,
            clicks,
            self._settling,
            Views(self._deciding),
            Commands(engine, tenant, people, self._kept),
        )
        self._ingress = Ingress(
            engine=engine,
            tenant=tenant,
            secrets=signing_secrets,
            bolt=bolt,
            now=lambda: engine.clock.wall().timestamp(),
            counts=self.counts,
            kept=self._kept,
        )
        self._webhooks = {
            webhook.path: Webhooks(engine, tenant, webhook, self._kept) for webhook in webhooks
        }
        self._health = Health(
            engine,
            self.counts,
            news.is_listening,
            {webhook.provider: webhook.counts for webhook in webhooks},
        )
        cards = delivery or CardDelivery(engine, client, painter, policy.slack.channel)
        notices = NoticeDelivery(engine, client)
        inbox = Inbox(engine, tenant, installation.bot_user, people, whisperer)
        self._loops: dict[str, Callable[[], Awaitable[None]]] = {
            "cards": DueWork[DueCard](
                "cards", partial(due_cards, engine), cards.deliver, news.cards, most=MOST_CARDS
            ).run,
            "notices": DueWork[Notice](
                "notices",
                partial(due_notices, engine),
                notices.deliver,
                news.notices,
                most=MOST_NOTICES,
            ).run,
            "inbox": DueWork[StoredEvent](
                "inbox", lambda _: due_events(engine), inbox.handle, news.inbox
            ).run,
            "identities": partial(people.run, news.identities),
        }

    def web_application(self) -> web.Application:
        """Make what answers over HTTP."""
        app = web.Application(middlewares=[_fixed_texts])
        app.router.add_post(PATH, self._ingress.handle)
        for path, webhook in self._webhooks.items():
            app.router.add_post(path, webhook.handle)
        app.router.add_get("/healthz", self._health.healthz)
        app.router.add_get("/readyz", self._health.readyz)
        return app

    async def run(self) -> None:
        """Run the loops until cancelled; one that ends by an error is told and started again."""
        async with asyncio.TaskGroup() as group:
            for name, loop in self._loops.items():
                group.create_task(_kept_going(name, loop), name=name)

    async def close(self) -> None:
        """Answer what is in hand; call it when nothing is accepted any more."""
        await self._deciding.idle()
        await self._settling.idle()
        await self._kept.close()


async def _kept_going(name: str, loop: Callable[[], Awaitable[None]]) -> None:
    while True:
        try:
            await loop()
        except Exception:
            _log.exception("the loop for %s failed and starts again", name)
        await asyncio.sleep(1.0)


@web.middleware
async def _fixed_texts(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Answer what goes wrong with short fixed texts, never with a path or a trace."""
    try:
        return await handler(request)
    except web.HTTPException as refusal:
        texts = {404: "not found", 405: "not allowed", 413: "too large"}
        return web.Response(status=refusal.status, text=texts.get(refusal.status, "bad request"))
    except Exception:
        _log.exception("a request failed")
        return web.Response(status=500, text="failed")


def _bolt(base_url: str, token: str, installation: Installation) -> AsyncApp:
    """Make a Bolt application that verifies nothing, asks nobody and ends before it answers."""

    async def authorize() -> AuthorizeResult:
        return AuthorizeResult(
            enterprise_id=None,
            team_id=installation.team_id,
            bot_id=installation.bot_id,
            bot_user_id=installation.bot_user,
            bot_token=token,
        )

    return AsyncApp(
        name="signoff",
        client=AsyncWebClient(base_url=base_url, retry_handlers=[]),
        authorize=authorize,
        process_before_response=True,
        request_verification_enabled=False,
        ssl_check_enabled=False,
        url_verification_enabled=False,
        attaching_function_token_enabled=False,
    )
