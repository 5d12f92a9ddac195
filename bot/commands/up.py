"""``signoff up``: the bot and the executor as children of one process, for a real Slack."""

from __future__ import annotations

import asyncio
import os
import sys

import click

from bot.commands.failing import CANNOT_START, FAILED, explained, fail


@click.command(short_help="Run Signoff against a real Slack.")
def up() -> None:
    """Run Signoff against a real Slack, over HTTP, until Ctrl-C or SIGTERM.

    Starts the bot (which Slack's requests reach) and the executor (which does the work), starts
    them again when they crash, and stops both in order. All settings come from the environment:

    \b
      SLACK_BOT_TOKEN        the app's Bot User OAuth Token
      SLACK_SIGNING_SECRET   the app's Signing Secret
      SIGNOFF_POLICY         path of the policy file (signoff policy example)
      SMTP_URL               the mail server that closure emails leave by; or
                             RESEND_API_KEY, or POSTMARK_SERVER_TOKEN
      ZENDESK_URL, or GITHUB_REPOSITORY and GITHUB_TOKEN
                             a ticket desk outside; without, the built-in one
      SIGNOFF_RESEND_WEBHOOK_SECRET, SIGNOFF_POSTMARK_WEBHOOK_CREDENTIAL
                             open /webhooks/resend and /webhooks/postmark
      DATABASE_URL           PostgreSQL; without it, a private one in SIGNOFF_HOME
      SIGNOFF_HOST, SIGNOFF_PORT   where to listen (127.0.0.1:8080)

    Slack has to reach /slack/events there over HTTPS; `signoff manifest` prints the app to create.
    The README lists every setting.
    """
    with explained():
        _check(dict(os.environ))
    sys.exit(asyncio.run(_run()))


def _check(environ: dict[str, str]) -> None:
    """Name everything that is missing or wrong at once.

    Raises ``SettingsInvalid``, ``PolicyInvalid``, ``UnsupportedAddress``.
    """
    from bot.config import bot_settings
    from executor.adapters.choice import ChoiceInvalid
    from executor.adapters.mail.provider_choice import mail_from
    from executor.adapters.tickets.desk_choice import desk_from
    from executor.config import SettingsInvalid, executor_settings, load_policy
    from executor.store.address import asyncpg_dsn

    problems: list[str] = []
    policy_path = None
    try:
        policy_path = bot_settings(environ).policy_path
    except SettingsInvalid as error:
        problems += error.problems
    try:
        policy_path = executor_settings(environ).policy_path
    except SettingsInvalid as error:
        # What both need is named once.
        problems += [problem for problem in error.problems if problem not in problems]
    for choose in (mail_from, desk_from):
        try:
            choose(environ)
        except ChoiceInvalid as error:
            problems += error.problems
    if problems:
        raise SettingsInvalid(problems)
    assert policy_path is not None
    load_policy(policy_path)
    if environ.get("DATABASE_URL"):
        asyncpg_dsn(environ["DATABASE_URL"])


async def _run() -> int:
    from bot.commands.stopping import until_told_to_stop
    from bot.supervisor import Child, ChildGivenUp

    environ = dict(os.environ)
    children = [Child("bot", "bot", environ), Child("executor", "executor", environ)]
    stop = until_told_to_stop()
    lost: ChildGivenUp | None = None
    try:
        for child in children:
            await child.start()
        click.echo("Signoff is running; Ctrl-C stops it.", err=True)
        waits = [
            asyncio.ensure_future(c.wait_for(lambda c: c.given_up is not None)) for c in children
        ]
        stopping = asyncio.ensure_future(stop.wait())
        await asyncio.wait([*waits, stopping], return_when=asyncio.FIRST_COMPLETED)
        lost = next((c.given_up for c in children if c.given_up is not None), None)
        for task in (*waits, stopping):
            task.cancel()
        await asyncio.wait([*waits, stopping])
    finally:
        await asyncio.gather(*(child.stop() for child in children))
    if lost is not None:
        fail(str(lost), CANNOT_START if lost.code == CANNOT_START else FAILED)
    return 0
