"""``signoff policy``: the policy file, from the example to what it says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from bot.commands.failing import explained

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
def check(file: Path | None) -> None:
    """Say whether a policy file can be used; FILE is the one in SIGNOFF_POLICY unless given.

    Nothing is changed. Every problem is named with its line and what to write instead.
    """
    with explained():
        found = _read(file)
    click.echo(f"{file} can be used; its version is {found.version}.")


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
