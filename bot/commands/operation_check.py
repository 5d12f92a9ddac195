"""Reads an operation that somebody supposes, and tells what a policy would ask for it."""

from __future__ import annotations

import asyncio
import json
import tomllib
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic_core import ErrorDetails

from bot.rehearsal_text import rehearsal_lines
from executor.domain.closing import ProposeClosing
from executor.domain.ids import slack_principal
from executor.domain.intent import REOPEN_TICKET
from executor.domain.policy import Policy
from executor.domain.policy_names import ToolName
from executor.domain.ticket import BUILTIN_DESK, Ticket, TicketStatus
from executor.engine.rehearsing import Known, Rehearsal, Supposed, known_of, rehearse

if TYPE_CHECKING:
    from executor.domain.ids import PrincipalId

EXAMPLE = """\
{"ticket": {"id": "4101", "customer_email": "pat@cust.example"},
 "subject": "Your refund", "message": "We refund 900 EUR.", "language": "en"}"""
"""The least that an operation has."""


class _TicketPart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    desk: str = Field(default=BUILTIN_DESK, min_length=1, max_length=160)
    id: str = Field(min_length=1, max_length=64)
    customer_email: str = Field(min_length=3, max_length=320)
    customer_name: str = Field(default="", max_length=200)

    @field_validator("id", mode="before")
    @classmethod
    def _number_as_text(cls, value: object) -> object:
        return str(value) if isinstance(value, int) else value


class OperationFile(BaseModel):
    """An operation as it is written down; a reopening has nothing but its ticket."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: ToolName = "close_ticket"
    ticket: _TicketPart
    to: tuple[str, ...] | None = None
    cc: tuple[str, ...] = ()
    subject: str = ""
    message: str = ""
    language: str = "en"

    def supposed(self, requester: PrincipalId | None) -> Supposed:
        """Make the operation that the executor would judge; raises ``ValidationError``."""
        part = self.ticket
        ticket = Ticket(
            part.desk,
            part.id,
            1,
            TicketStatus.CLOSED if self.kind == REOPEN_TICKET else TicketStatus.OPEN,
            self.subject,
            part.customer_name,
            part.customer_email,
            self.language,
            1,
            datetime.now(UTC),
        )
        if self.kind == REOPEN_TICKET:
            return Supposed(self.kind, ticket, None, requester)
        written = self.model_dump(include={"language", "subject", "message", "to", "cc"})
        proposal = ProposeClosing.model_validate({"ticket_id": part.id, **written})
        return Supposed(self.kind, ticket, proposal, requester)


def read_operation(source: str, policy: Policy, requested_by: str | None) -> Supposed:
    """Read JSON or TOML; what cannot be read is a wrong command line that says how to write it."""
    try:
        document = json.loads(source) if source.lstrip()[:1] == "{" else tomllib.loads(source)
    except (ValueError, RecursionError) as error:
        raise click.UsageError(
            f"the operation is neither JSON nor TOML ({error}); write for example:\n{EXAMPLE}"
        ) from error
    requester = None if requested_by is None else slack_principal(policy.slack.team, requested_by)
    try:
        return OperationFile.model_validate(document).supposed(requester)
    except ValidationError as error:
        problems = "; ".join(map(_problem, error.errors(include_url=False, include_input=False)))
        raise click.UsageError(f"the operation's {problems}. For example:\n{EXAMPLE}") from error


def _problem(error: ErrorDetails) -> str:
    where = ".".join(str(part) for part in error["loc"])
    match error["type"]:
        case "missing":
            return f"{where} is missing"
        case "extra_forbidden":
            return f"{where} is none that an operation has"
        case _:
            return f"{where} cannot be used: {error['msg']}"


def operation_lines(
    policy: Policy, supposed: Supposed, *, with_database: bool
) -> tuple[list[str], bool]:
    """Tell what the policy would ask for it, and whether it could come about at all.

    Raises ``InvalidContent`` for an email that nobody could be asked about.
    """
    known = asyncio.run(_known(policy, supposed)) if with_database else Known(datetime.now(UTC))
    found = rehearse(policy, supposed, known)
    told = list(rehearsal_lines(policy, supposed, found, with_database=with_database))
    return told, _can_come_about(found)


def _can_come_about(found: Rehearsal) -> bool:
    return found.objection is None and not found.out_of_reach()


async def _known(policy: Policy, supposed: Supposed) -> Known:
    from bot.commands.installation import engine_of_installation

    async with engine_of_installation() as engine:
        return await known_of(engine, policy, supposed)
