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
from slack_sdk.errors import SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

from bot.agent_mentions import OurApp
from bot.agent_requests import AgentRequests
from bot.card_delivery import CardDelivery
from bot.cards import CardPainter
from bot.due_work import DueWork
from bot.health import Health
from bot.home_delivery import HomeDelivery
from bot.identity import IdentityWatch, Wait
from bot.inbox import Inbox
from bot.ingress.counts import Counts
from bot.ingress.handler import PATH, Ingress
from bot.ingress.webhooks import Webhook, Webhooks
from bot.kept_work import KeptWork
from bot.listeners.asking import Asking
from bot.listeners.clicks import Clicks
from bot.listeners.commands import Commands
from bot.listeners.deciding import Deciding
from bot.listeners.editing import Editing
from bot.listeners.full_views import FullViews
from bot.listeners.home import HomePresses
from bot.listeners.opening_views import ViewOpener
from bot.listeners.pending import PendingList
from bot.listeners.pressing import Pressing
from bot.listeners.proposing import Proposing
from bot.listeners.registration import register
from bot.listeners.settling import Settling
from bot.listeners.views import Views
from bot.listeners.withdrawing import Withdrawing
from bot.notice_delivery import NoticeDelivery
from bot.pages.decision import DecisionPage
from bot.slack_answers import trouble
from bot.slack_pace import SLACK_PACES, delivery_of
from bot.step_up import LinkSender, StepUp
from bot.stray_posts import StrayPosts
from bot.unseen_notices import UnseenNotices
from bot.whisper import Whisperer
from executor.domain.policy import Policy
from executor.engine.card_turns import DueCard, Paces
from executor.engine.closure_email import ClosureEmails
from executor.engine.delivery_trouble import Trouble as DeliveryTrouble
from executor.engine.engine import Engine
from executor.engine.events import StoredEvent, due_events
from executor.engine.presenting import Notice, Posting, due_notices
from executor.engine.providers import Providers
from executor.engine.replacement_scene import Workshop
from executor.engine.unseen import ToTell

_log = logging.getLogger(__name__)

MOST_CARDS = 8
MOST_NOTICES = 8


class WrongWorkspace(Exception):
    """The token belongs to another workspace than the policy names."""


@dataclass(frozen=True, slots=True)
class Installation:
    """Who the bot is in its workspace, as Slack said at the start; no ``app_id``: it did not."""

    team_id: str
    bot_id: str
    bot_user: str
    app_id: str = ""


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
    if said.get("is_enterprise_install") is True and said.get("enterprise_id") == policy.slack.team:
        team = policy.slack.team
    if team != policy.slack.team:
        raise WrongWorkspace(
            f"the token belongs to workspace {team}, the policy names {policy.slack.team}: "
            "correct slack.team in the policy file, or use that workspace's token"
        )
    bot_id = str(said.get("bot_id") or "")
    return Installation(team, bot_id, str(said["user_id"]), await _app_of(client, bot_id))


async def _app_of(client: AsyncWebClient, bot_id: str) -> str:
    """Ask whose bot it is; what is signed for another app can be told then."""
    try:
        said = await client.bots_info(bot=bot_id)
    except SlackClientError as error:
        _log.info("Slack does not say which app the bot belongs to: %s", trouble(error).code)
        return ""
    return str((said.get("bot") or {}).get("app_id") or "")


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
        paces: Paces = SLACK_PACES,
        webhooks: Sequence[Webhook] = (),
        providers: Providers | None = None,
        step_up: StepUp | None = None,
    ) -> None:
        tenant = policy.tenant_id
        self.counts = Counts()
        self._kept = KeptWork()
        people = IdentityWatch(engine, tenant, client, self._kept)
        whisperer = Whisperer(client, self._kept)
        links = None if step_up is None else LinkSender(engine, client, step_up.public_url)
        self._deciding = Deciding(engine, tenant, people, whisperer, self._kept, links)
        self._page = (
            None
            if step_up is None
            else DecisionPage(engine, tenant, painter, step_up.sealer, self._deciding)
        )
        bolt = _bolt(client.base_url, token, installation)
        opener = ViewOpener(client, whisperer)
        homes = HomeDelivery(engine, tenant, client, painter, people, self._kept)
        pressing = Pressing(engine, self._deciding, whisperer)
        full = FullViews(engine, self._deciding, people, painter, opener, whisperer)
        clicks = Clicks(engine, self._deciding, pressing, full, painter, opener, whisperer)
        self._settling = Settling(
            engine,
            tenant,
            people,
            pressing,
            full,
            painter,
            opener,
            whisperer,
            self._kept,
            clicks.outdated,
        )
        # What is edited here is frozen here, so this takes what the executor's emails leave by.
        shop = None if providers is None else Workshop(engine, providers, ClosureEmails())
        self._editing = Editing(
            engine,
            shop,
            tenant,
            people,
            pressing,
            full,
            painter,
            opener,
            whisperer,
            self._kept,
            clicks.outdated,
        )
        self._proposing = Proposing(
            engine, shop, tenant, people, pressing, whisperer, self._kept, clicks.outdated
        )
        self._asking = Asking(
            engine,
            tenant,
            people,
            pressing,
            full,
            painter,
            opener,
            whisperer,
            self._kept,
            clicks.outdated,
        )
        self._withdrawing = Withdrawing(
            engine, tenant, people, pressing, whisperer, self._kept, clicks.outdated
        )
        pending = PendingList(engine, tenant, people, full, painter)
        register(
            bolt,
            clicks,
            self._settling,
            self._editing,
            self._proposing,
            self._asking,
            self._withdrawing,
            HomePresses(engine, tenant, people, pressing, homes, self._kept),
            Views(self._deciding, homes),
            Commands(engine, tenant, people, pending, self._kept),
        )
        self._ingress = Ingress(
            engine=engine,
            tenant=tenant,
            secrets=signing_secrets,
            bolt=bolt,
            now=lambda: engine.clock.wall().timestamp(),
            counts=self.counts,
            kept=self._kept,
            app_id=installation.app_id,
        )
        self._webhooks = {
            webhook.path: Webhooks(engine, tenant, webhook, self._kept) for webhook in webhooks
        }
        cards = delivery or CardDelivery(engine, client, painter, delivery_of(policy, paces))
        self._health = Health(
            engine,
            self.counts,
            news.is_listening,
            {webhook.provider: webhook.counts for webhook in webhooks},
            tenant,
            cards.delivery,
        )
        notices = NoticeDelivery(engine, client)
        strays = StrayPosts(engine, client, tenant, cards.troubles)
        unseen = UnseenNotices(engine, client, cards.delivery, cards.troubles)
        us = OurApp(installation.bot_user, installation.bot_id, installation.app_id)
        agents = AgentRequests(engine, shop, tenant, us, people, client, self.counts)
        inbox = Inbox(
            engine, tenant, installation.bot_user, people, whisperer, policy.slack, homes, agents
        )
        self._loops: dict[str, Callable[[], Awaitable[None]]] = {
            "cards": DueWork[DueCard](
                "cards",
                cards.take,
                cards.deliver,
                news.cards,
                most=MOST_CARDS,
                again_in=cards.again_in,
            ).run,
            "troubles": DueWork[DeliveryTrouble](
                "troubles", cards.troubles.take, cards.troubles.look, _poll
            ).run,
            "strays": DueWork[Posting](
                "strays", strays.take, strays.look, _poll, most=1, poll_seconds=5.0
            ).run,
            "unseen": DueWork[ToTell]("unseen", unseen.take, unseen.tell, _poll, most=1).run,
            "notices": DueWork[Notice](
                "notices",
                partial(due_notices, engine, tenant),
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
        if self._page is not None:
            self._page.add_to(app.router)
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
        await self._asking.idle()
        await self._withdrawing.idle()
        await self._editing.idle()
        await self._proposing.idle()
        await self._kept.close()


async def _poll(seconds: float) -> bool:
    """Wait for work of which no news comes."""
    await asyncio.sleep(seconds)
    return False


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
