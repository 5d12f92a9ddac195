"""``signoff policy``: the policy file that a newcomer starts from."""

from __future__ import annotations

import click


@click.group()
def policy() -> None:
    """Write the file that says who may ask and who may decide."""


@policy.command()
def example() -> None:
    """Print a commented policy file.

    \b
    For example:
      signoff policy example > policy.toml
    """
    from bot.policy_example import policy_example

    click.echo(policy_example(), nl=False)
