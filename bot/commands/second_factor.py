"""``signoff second-factor``: what people prove beyond their Slack session, given by operators."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from bot.commands.failing import explained, fail
from bot.commands.grants import BY, SLACK_USER
from bot.commands.options import TENANT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from executor.domain.transition import Refused
    from executor.engine.second_factor import Enrolled
    from executor.store.second_factors import FactorLine

_USER = click.argument("user", type=SLACK_USER)


@click.group(name="second-factor", short_help="Give people a second factor.")
def second_factor() -> None:
    """Give people what they have to prove, beside their Slack session, to approve what is risky.

    It is an authenticator app: a policy that says step_up = true asks for its code on a page whose
    link is sent to the person. DATABASE_URL names the database; without it it is the private one
    in SIGNOFF_HOME. SIGNOFF_SEALING_KEY is the key that seals what is stored.
    """


@second_factor.command()
def key() -> None:
    """Print a new key for SIGNOFF_SEALING_KEY."""
    from executor.adapters.sealing import new_key

    click.echo(new_key())


@second_factor.command()
@_USER
@BY
@TENANT
def give(user: str, by: str, tenant: str | None) -> None:
    """Give USER (a Slack user id) a second factor, in place of the one before.

    What is printed is printed once: hand it over in person, not by Slack.
    """
    from bot.grant_text import refused_text
    from executor.domain.transition import Refused

    with explained():
        result = asyncio.run(_give(user, by, tenant))
    if isinstance(result, Refused):
        fail(refused_text(result))
    import segno

    click.echo(f"Let {user} read this with an authenticator app, or type {result.secret} into it:")
    segno.make(result.uri, error="m").terminal(compact=True)
    click.echo("The one before, if there was one, does not count any more.")


@second_factor.command()
@_USER
@BY
@TENANT
def take(user: str, by: str, tenant: str | None) -> None:
    """Take USER's second factor away; what needs one cannot be approved by USER until a new one."""
    with explained():
        taken = asyncio.run(_take(user, by, tenant))
    if not taken:
        fail(f"{user} has no second factor.")
    click.echo(f"{user} has no second factor any more.")


@second_factor.command("list")
@TENANT
def list_(tenant: str | None) -> None:
    """List whoever has a second factor, and who gave it when."""
    with explained():
        found = asyncio.run(_list(tenant))
    for line in found:
        blocked = "; kept out until " + line.blocked_until.isoformat() if line.blocked_until else ""
        click.echo(
            f"{line.principal}, given by {line.enrolled_by} at "
            f"{line.enrolled_at.isoformat(timespec='seconds')}{blocked}"
        )
    if not found:
        click.echo("Nobody has a second factor.")


async def _give(user: str, by: str, tenant: str | None) -> Enrolled | Refused:
    from bot.commands.installation import engine_for, sealer
    from executor.domain.ids import operator_principal, slack_principal
    from executor.engine.second_factor import enrol

    seals = sealer()
    async with engine_for(tenant) as (engine, team):
        return await enrol(engine, seals, team, slack_principal(team, user), operator_principal(by))


async def _take(user: str, by: str, tenant: str | None) -> bool:
    from bot.commands.installation import engine_for
    from executor.domain.ids import operator_principal, slack_principal
    from executor.engine.second_factor import withdraw

    async with engine_for(tenant) as (engine, team):
        return await withdraw(engine, team, slack_principal(team, user), operator_principal(by))


async def _list(tenant: str | None) -> Sequence[FactorLine]:
    from bot.commands.installation import engine_for
    from executor.engine.second_factor import list_factors

    async with engine_for(tenant) as (engine, team):
        return await list_factors(engine, team)
