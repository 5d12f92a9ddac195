"""Options and arguments that several commands take, and how they print JSON."""

from __future__ import annotations

import json
from datetime import datetime

import click

from bot.commands.typed_argument import Typed

TENANT = click.option(
    "--tenant",
    metavar="TEAM",
    help="The Slack team; else that of the policy file, or the only one.",
)
AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON for a program to read.")


def _operation_number(text: str) -> int | None:
    from executor.domain.ids import parse_operation_number

    return parse_operation_number(text)


def _run_number(text: str) -> int | None:
    from executor.domain.ids import parse_run_number

    return parse_run_number(text)


RUN = Typed("run", _run_number, "no run; write for example run_7")
_OPERATION = Typed("operation", _operation_number, "no operation; write for example op_12")
OPERATION = click.argument("operation", type=_OPERATION)


def as_json_text(document: object) -> str:
    """Spell a document for a program.

    Everything beyond ASCII is escaped, so that nothing in it can deceive who looks at it in a
    terminal.
    """
    return json.dumps(document, ensure_ascii=True, indent=2, default=_spelt)


def _spelt(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} has no JSON form")
