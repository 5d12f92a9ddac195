"""``signoff migrate``: the schema is brought up to this code, and nothing else is touched."""

from __future__ import annotations

import asyncio
import json

import click

from bot.commands.failing import explained


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON for a program to read.")
def migrate(as_json: bool) -> None:
    """Bring the database up to this release.

    Run it once for each release, before the new processes start; running it again changes nothing.
    DATABASE_URL names the database; without it, it is the private one in SIGNOFF_HOME.
    """
    with explained():
        applied = asyncio.run(_migrate())
    if as_json:
        click.echo(json.dumps({"applied": applied}))
    elif applied:
        click.echo("\n".join(f"applied {file}" for file in applied))
    else:
        click.echo("The database is up to date.")


async def _migrate() -> list[str]:
    from bot.commands.installation import connected
    from executor.engine.setup import move_schema

    async with connected() as database:
        return await move_schema(database)
