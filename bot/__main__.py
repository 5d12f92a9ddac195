"""The web process: ``python -m bot``. The only place that puts its parts together."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Mapping
from functools import partial

from aiohttp import web
from slack_sdk.web.async_client import AsyncWebClient

from bot.application import Bot, News, WrongWorkspace, installation_of
from bot.cards import CardPainter, card_environment
from bot.config import BotSettings, bot_settings
from bot.ingress.webhooks import Webhook
from bot.slack_answers import LOST_CALL, trouble
from bot.slack_pace import slack_paces
from bot.step_up import StepUp
from executor.adapters.choice import ChoiceInvalid
from executor.adapters.host_clock import SystemClock, mint_id
from executor.adapters.mail.postmark_webhook import WebhookCredential, read_postmark_webhook
from executor.adapters.mail.provider_choice import mail_from
from executor.adapters.mail.resend_webhook import read_resend_webhook, signing_key
from executor.adapters.sealing import FernetSealer
from executor.adapters.tickets.desk_choice import desk_from
from executor.config import PolicyInvalid, SettingsInvalid, load_policy
from executor.domain.errors import ExecutorError
from executor.domain.ids import operator_principal
from executor.domain.policy import Policy
from executor.domain.secret_text import Secrets, secrets_among
from executor.engine.engine import Bell, Durations, Engine
from executor.engine.failpoint import failpoints_from
from executor.engine.providers import Providers
from executor.engine.redaction import redact_root
from executor.engine.setup import activate_policy
from executor.store.address import UnsupportedAddress
from executor.store.embedded import EmbeddedDatabaseFailed
from executor.store.installation import installed_database
from executor.store.migrate import MigrationRefused
from executor.store.wakeups import Kind, Listener, listening

_log = logging.getLogger("bot")

CANNOT_START = 78
"""EX_CONFIG of sysexits(3): starting again without changing something does not help."""

_LONGEST_CALL_SECONDS = 20
_ANSWER_GRACE_SECONDS = 4.0


class SlackUnreachable(Exception):
    """Slack did not say at the start who we are; ``code`` is its error."""

    def __init__(self, code: str) -> None:
        super().__init__(f"Slack refused or did not answer auth.test: {code}")
        self.code = code


def main() -> int:
    """Run the bot until SIGTERM or SIGINT; returns the process's exit code."""
    try:
        settings = bot_settings(os.environ)
        _set_up_log(settings)
        asyncio.run(_run(settings))
    except (
        SettingsInvalid,
        PolicyInvalid,
        MigrationRefused,
        EmbeddedDatabaseFailed,
        UnsupportedAddress,
        WrongWorkspace,
    ) as error:
        print(f"signoff bot cannot start:\n{error}", file=sys.stderr)
        return CANNOT_START
    except (ExecutorError, SlackUnreachable) as error:
        print(f"signoff bot stopped: {error}", file=sys.stderr)
        return 1
    return 0


def _set_up_log(settings: BotSettings) -> None:
    logging.basicConfig(
        level=settings.log_level, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    redact_root(
        [
            settings.slack_bot_token.get_secret_value(),
            *(secret.decode() for secret in settings.signing_secrets),
            *(secret.get_secret_value() for secret in settings.resend_webhook_secrets),
            *settings.sealing_keys,
            *(word.get_secret_value() for _, word in settings.postmark_webhook_credentials),
            *secrets_among(os.environ),
        ]
    )


async def _run(settings: BotSettings) -> None:
    policy = load_policy(settings.policy_path)
    step_up = _step_up(settings, policy)
    token = settings.slack_bot_token.get_secret_value()
    # A creating call is never repeated by a library; the loops repeat what may be repeated.
    client = AsyncWebClient(
        token=token,
        base_url=settings.base_url,
        timeout=_LONGEST_CALL_SECONDS,
        retry_handlers=[],
    )
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with installed_database(
        settings.database_url,
        settings.home,
        application_name="signoff bot",
        pool_size=settings.pool_size,
    ) as database:
        bell = Bell(database)
        engine = Engine(
            database,
            SystemClock(),
            mint_id,
            Durations(outbox_lease_seconds=settings.outbox_lease_seconds),
            failpoints=failpoints_from(settings.failpoint),
            bell=bell,
            secrets=Secrets(secrets_among(os.environ)),
        )
        try:
            installation = await installation_of(client, policy)
        except LOST_CALL as error:
            # The SDK's own error quotes the request.
            raise SlackUnreachable(trouble(error).code) from None
        # Only now: whoever lacks a workspace's token does not change the rules of that workspace.
        if await activate_policy(
            engine, policy, operator_principal(f"bot at {socket.gethostname()}")
        ):
            _log.info("policy %s is active", policy.version)
        async with listening(database) as listener:
            bot = Bot(
                engine=engine,
                policy=policy,
                client=client,
                token=token,
                installation=installation,
                signing_secrets=settings.signing_secrets,
                painter=CardPainter(card_environment()),
                news=_news(listener),
                webhooks=_webhooks(settings),
                paces=slack_paces(settings.slack_pace),
                providers=_providers(os.environ),
                step_up=step_up,
            )
            await _serve(settings, bot, bell, stop)
    _log.info("the bot has stopped")


async def _serve(settings: BotSettings, bot: Bot, bell: Bell, stop: asyncio.Event) -> None:
    """Answer until ``stop``; then accept nothing, answer what is in hand, end the loops."""
    runner = web.AppRunner(
        bot.web_application(), access_log=None, shutdown_timeout=_ANSWER_GRACE_SECONDS
    )
    await runner.setup()
    try:
        await web.TCPSite(runner, settings.host, settings.port).start()
        async with asyncio.TaskGroup() as background:
            ringing = background.create_task(bell.run(), name="bell")
            working = background.create_task(bot.run(), name="loops")
            addresses = ", ".join(f"{address[0]}:{address[1]}" for address in runner.addresses)
            _log.info("the bot listens on %s", addresses)
            await stop.wait()
            await runner.cleanup()
            await bot.close()
            working.cancel()
            ringing.cancel()
    finally:
        await runner.cleanup()


def _news(listener: Listener) -> News:
    # Private answers are queued in the commits that change cards, and rung for with them.
    return News(
        cards=partial(listener.wait, Kind.CARDS),
        notices=partial(listener.wait, Kind.CARDS),
        identities=partial(listener.wait, Kind.IDENTITIES),
        inbox=partial(listener.wait, Kind.INBOX),
        is_listening=lambda: listener.is_listening,
    )


def _step_up(settings: BotSettings, policy: Policy) -> StepUp | None:
    """Let people prove more than their Slack session, where the policy asks for it."""
    if settings.public_url is not None and settings.sealing_keys:
        return StepUp(settings.public_url, FernetSealer(settings.sealing_keys))
    if policy.asks_for_second_factor:
        raise SettingsInvalid(
            [
                "the policy asks for a second factor: set SIGNOFF_PUBLIC_URL (the address at which "
                "people's browsers reach this process) and SIGNOFF_SEALING_KEY (print one with "
                "`signoff second-factor key`)"
            ]
        )
    return None


def _providers(environ: Mapping[str, str]) -> Providers | None:
    """Take the executor's own settings of mail and desk; without them nothing is edited here."""
    try:
        return Providers(mail_from(environ), desk_from(environ))
    except ChoiceInvalid as error:
        _log.warning("emails cannot be edited from Slack: %s", "; ".join(error.problems))
        return None


def _webhooks(settings: BotSettings) -> list[Webhook]:
    """Open a door for each provider whose webhooks can be verified."""
    doors = []
    if settings.resend_webhook_secrets:
        keys = [signing_key(secret) for secret in settings.resend_webhook_secrets]
        doors.append(
            Webhook(
                "resend",
                lambda body, headers, now: read_resend_webhook(
                    body, headers, keys, now.timestamp()
                ),
            )
        )
    if settings.postmark_webhook_credentials:
        known = [WebhookCredential(*pair) for pair in settings.postmark_webhook_credentials]
        doors.append(
            Webhook(
                "postmark", lambda body, headers, _: read_postmark_webhook(body, headers, known)
            )
        )
    return doors


if __name__ == "__main__":
    sys.exit(main())
