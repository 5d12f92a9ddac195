"""Options and arguments that several commands take, and how they print JSON."""

from __future__ import annotations

import json
from datetime import datetime

import click

TENANT = click.option(
    "--tenant",
    metavar="TEAM",
    help="The Slack team; else that of the policy file, or the only one.",
)
AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON for a program to read.")


class _OperationNumber(click.ParamType[int]):
    """An operation as people type it: ``op_12``."""

    name = "operation"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Read the number."""
        from executor.domain.ids import parse_operation_number

        number = value if isinstance(value, int) else parse_operation_number(str(value))
        if number is None:
            self.fail(f"{value!r} is no operation; write for example op_12", param, ctx)
        return number


OPERATION = click.argument("operation", type=_OperationNumber())


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
