"""The ``signoff`` command.

Exit codes: 0 when all is right; 1 when what was asked for did not come about; 2 when the command
line was wrong; 78 (EX_CONFIG of sysexits(3)) when settings or the installation have to be changed.
"""

from __future__ import annotations

import click

from bot.commands.audit import audit
from bot.commands.budget import budget
from bot.commands.demo import demo
from bot.commands.doubt import doubt
from bot.commands.explain import explain
from bot.commands.grants import grants
from bot.commands.manifest import manifest
from bot.commands.migrate import migrate
from bot.commands.policy import policy
from bot.commands.second_factor import second_factor
from bot.commands.tickets import tickets
from bot.commands.up import up

_EPILOG = "Start with:  signoff demo"


def _tell_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted:
        return
    from importlib.metadata import PackageNotFoundError, version

    try:
        click.echo(f"signoff {version('signoff')}")
    except PackageNotFoundError:
        click.echo("signoff (from a checkout, not installed)")
    context.exit()


@click.group(epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_tell_version,
    help="Show the version and exit.",
)
def main() -> None:
    """An agent may propose anything; a person in Slack signs it off.

    Signoff shows in Slack exactly what an agent would do, waits for a person's Approve, checks the
    world again, does it once, and tells the truth about it.
    """


for _command in (
    demo,
    up,
    migrate,
    manifest,
    policy,
    tickets,
    doubt,
    explain,
    audit,
    grants,
    budget,
    second_factor,
):
    main.add_command(_command)


if __name__ == "__main__":
    main()
