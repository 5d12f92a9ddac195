"""``signoff policy``: the policy file, from the example to what it says."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from bot.commands.failing import FAILED, explained
from bot.commands.grants import SLACK_USER

if TYPE_CHECKING:
    from executor.domain.policy import Policy

_FILE = click.argument(
    "file", type=click.Path(path_type=Path), envvar="SIGNOFF_POLICY", required=False
)


@click.group()
def policy() -> None:
    """Write, check and explain the policy file."""


@policy.command()
def example() -> None:
    """Print a commented policy file.

    \b
    For example:
      signoff policy example > policy.toml
    """
    from bot.policy_example import policy_example

    click.echo(policy_example(), nl=False)


@policy.command()
@_FILE
@click.option(
    "--operation",
    type=click.File("r", encoding="utf-8"),
    metavar="FILE",
    help="Tell what it would ask for this operation, in JSON or TOML (- is standard input).",
)
@click.option("--requested-by", type=SLACK_USER, help="Who would ask for it: a Slack user id.")
@click.option(
    "--with-database", is_flag=True, help="Ask the database for first contacts and grants."
)
def check(
    file: Path | None, operation: TextIO | None, requested_by: str | None, with_database: bool
) -> None:
    """Say whether a policy file can be used; FILE is the one in SIGNOFF_POLICY unless given.

    Nothing is changed. Every problem is named with its line and what to write instead. Where
    SLACK_BOT_TOKEN is set, Slack is asked who is in the user groups that the file names.

    With --operation it tells which rules match and why, whose approvals are needed, for how long
    there is to decide, and who could approve now. Exit code 1 if it could never be approved or
    asked for.

    \b
    For example:
      echo '{"ticket": {"id": "4101", "customer_email": "pat@cust.example"},
             "to": ["eve@elsewhere.example"], "subject": "Refund", "message": "900 EUR"}' |
        signoff policy check policy.toml --operation - --requested-by U0123ABCD
    """
    from bot.commands.group_check import group_lines

    with explained():
        found = _read(file)
    if operation is not None:
        _tell_operation(found, operation.read(), requested_by, with_database=with_database)
        return
    if requested_by is not None or with_database:
        raise click.UsageError("--requested-by and --with-database belong to --operation")
    click.echo(f"{file} can be used; its version is {found.version}.")
    for line in group_lines(found, os.environ):
        click.echo(line)


def _tell_operation(
    policy: Policy, source: str, requested_by: str | None, *, with_database: bool
) -> None:
    from bot.commands.operation_check import operation_lines, read_operation

    supposed = read_operation(source, policy, requested_by)
    with explained():
        told, can_come_about = operation_lines(policy, supposed, with_database=with_database)
    click.echo("\n".join(told))
    if not can_come_about:
        sys.exit(FAILED)


@policy.command()
@_FILE
def explain(file: Path | None) -> None:
    """Tell in sentences what a policy file decides, what it leaves to the default included."""
    from bot.policy_text import sentences

    with explained():
        found = _read(file)
    click.echo("\n".join(sentences(found)))


def _read(file: Path | None) -> Policy:
    from executor.config import POLICY_HELP, SettingsInvalid, load_policy

    if file is None:
        raise SettingsInvalid([f"name a policy file, or {POLICY_HELP}"])
    return load_policy(file)
