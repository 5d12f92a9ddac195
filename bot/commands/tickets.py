"""``signoff tickets``: the built-in desk from the command line, for the policy file's tenant."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, TextIO

import click

from bot.commands.failing import explained, fail

if TYPE_CHECKING:
    from executor.domain.new_ticket import ImportResult, NewTicket
    from executor.domain.ticket import Ticket
    from executor.domain.transition import NoChange, Refused
    from executor.store.desk import Changed

_AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON for a program to read.")
_AUTHOR = "the command line"


@click.group()
def tickets() -> None:
    """Read and change the tickets of the built-in desk.

    SIGNOFF_POLICY names the policy file, which says whose desk it is; DATABASE_URL names the
    database, and without it it is the private one in SIGNOFF_HOME.
    """


@tickets.command("import")
@click.argument("file", type=click.File("r", encoding="utf-8", errors="surrogateescape"))
@_AS_JSON
def import_file(file: TextIO, as_json: bool) -> None:
    """Import the tickets of FILE, one JSON object on each line (- is standard input).

    Importing again changes nothing. A ticket whose id is taken by other content is refused, and the
    others are imported all the same.

    \b
    A line holds, for example:
      {"id": "4101", "subject": "Double charge", "language": "en",
       "customer": {"name": "Pat Neil", "email": "pat@cust.example"},
       "messages": [{"kind": "customer", "author": "Pat Neil",
                     "body": "I was charged twice.", "at": "2026-03-03T09:12:00+00:00"},
                    {"kind": "agent", "author": "Mia", "body": "It is refunded."}]}
    """
    with explained():
        results = asyncio.run(_import(list(file)))
    _tell_import(results, as_json)


@tickets.command()
@click.argument("ticket")
@click.option("--subject", required=True, help="One line.")
@click.option("--name", required=True, help="The customer's name.")
@click.option("--email", required=True, help="The customer's address.")
@click.option("--body", required=True, help="What the customer wrote.")
@click.option("--language", default="en", show_default=True, help="A tag such as en or pt-BR.")
@_AS_JSON
def add(
    ticket: str, subject: str, name: str, email: str, body: str, language: str, as_json: bool
) -> None:
    """Add TICKET with a first message of its customer."""
    line = json.dumps(
        {
            "id": ticket,
            "subject": subject,
            "language": language,
            "customer": {"name": name, "email": email},
            "messages": [{"kind": "customer", "author": name, "body": body}],
        }
    )
    with explained():
        results = asyncio.run(_import([line]))
    _tell_import(results, as_json)


@tickets.command()
@click.argument("ticket", required=False)
@_AS_JSON
def show(ticket: str | None, as_json: bool) -> None:
    """Show TICKET with its conversation, or list the newest tickets."""
    with explained():
        found = asyncio.run(_find(ticket))
    if ticket is not None and not found:
        fail(_no_ticket(ticket))
    if as_json:
        told = [one.as_tool_result() if ticket else _short(one) for one in found]
        click.echo(json.dumps(told[0] if ticket else told, ensure_ascii=False, indent=2))
    elif ticket is not None:
        click.echo(_in_full(found[0]))
    elif found:
        for one in found:
            click.echo(f"{one.id:<12} v{one.version:<5} {one.status.value:<8} {one.subject}")
    else:
        click.echo("There are no tickets. `signoff tickets import FILE` brings some.")


@tickets.command()
@click.argument("ticket")
@click.argument("body")
@click.option(
    "--as-customer", is_flag=True, help="Write as the customer: it opens a closed ticket."
)
@click.option("--author", default="Support", show_default=True, help="Who answers.")
@_AS_JSON
def reply(ticket: str, body: str, as_customer: bool, author: str, as_json: bool) -> None:
    """Write BODY into TICKET, as an agent or as the customer. It is stored, not mailed."""
    with explained():
        changed = asyncio.run(_reply(ticket, body, None if as_customer else author))
    _tell_change(ticket, changed, as_json)


@tickets.command()
@click.argument("ticket")
@click.option("--author", default=_AUTHOR, show_default=True, help="Who opens it.")
@_AS_JSON
def reopen(ticket: str, author: str, as_json: bool) -> None:
    """Open a closed TICKET again."""
    with explained():
        changed = asyncio.run(_reopen(ticket, author))
    _tell_change(ticket, changed, as_json)


async def _import(lines: list[str]) -> list[tuple[NewTicket, ImportResult]]:
    from bot.commands.installation import of_tenant
    from executor.domain.new_ticket import parse_tickets
    from executor.engine.desk import import_tickets

    parsed = parse_tickets(lines)
    async with of_tenant() as (database, tenant):
        return await import_tickets(database, tenant, parsed)


async def _find(ticket: str | None) -> list[Ticket]:
    from bot.commands.installation import of_tenant
    from executor.engine import desk

    async with of_tenant() as (database, tenant):
        if ticket is None:
            return await desk.find_tickets(database, tenant, limit=desk.MOST_FOUND)
        found = await desk.show_ticket(database, tenant, ticket)
        return [found] if found else []


async def _reply(ticket: str, body: str, author: str | None) -> Changed | Refused:
    from bot.commands.installation import of_tenant
    from executor.engine.desk import write_as_agent, write_as_customer

    async with of_tenant() as (database, tenant):
        if author is None:
            return await write_as_customer(database, tenant, ticket, body)
        return await write_as_agent(database, tenant, ticket, author=author, body=body)


async def _reopen(ticket: str, author: str) -> Changed | NoChange | Refused:
    from bot.commands.installation import of_tenant
    from executor.engine.desk import reopen_ticket

    async with of_tenant() as (database, tenant):
        return await reopen_ticket(database, tenant, ticket, author=author)


def _tell_import(results: list[tuple[NewTicket, ImportResult]], as_json: bool) -> None:
    """Say what became of each ticket; exit code 1 when one was refused."""
    from executor.domain.new_ticket import AlreadyImported, Imported, OtherContent

    told: list[dict[str, str | int]] = []
    refused = False
    for ticket, result in results:
        match result:
            case Imported(version=version):
                told.append({"id": ticket.id, "result": "imported", "version": version})
            case AlreadyImported(version=version):
                told.append({"id": ticket.id, "result": "known", "version": version})
            case OtherContent(field=field):
                refused = True
                told.append({"id": ticket.id, "result": "refused", "differs_in": field})
    if as_json:
        click.echo(json.dumps(told, ensure_ascii=False, indent=2))
    else:
        for one in told:
            click.echo(_import_line(one))
    if refused:
        fail(
            "some ids are taken by other tickets; nothing of those was changed. Give the new "
            "tickets other ids, or leave them out."
        )


def _import_line(told: dict[str, str | int]) -> str:
    match told["result"]:
        case "imported":
            return f"{told['id']}: imported at version {told['version']}"
        case "known":
            return f"{told['id']}: known already, now at version {told['version']}"
        case _:
            return f"{told['id']}: refused, another ticket has this id ({told['differs_in']})"


def _tell_change(ticket: str, changed: Changed | NoChange | Refused, as_json: bool) -> None:
    from executor.domain.transition import NoChange, Reason, Refused

    if isinstance(changed, Refused):
        if changed.reason is Reason.TICKET_UNKNOWN:
            fail(_no_ticket(ticket))
        problem = (
            changed.detail.get("problem") or f"at most {changed.detail.get('limit')} characters"
        )
        fail(f"the text cannot be stored: {problem}.")
    unchanged = isinstance(changed, NoChange)
    version = None if isinstance(changed, NoChange) else changed.version
    reopened = not isinstance(changed, NoChange) and changed.reopened
    if as_json:
        click.echo(json.dumps({"id": ticket, "version": version, "reopened": reopened}))
    elif unchanged:
        click.echo(f"Ticket {ticket} is open already.")
    else:
        again = ", and is open again" if reopened else ""
        click.echo(f"Ticket {ticket} stands at version {version}{again}.")


def _no_ticket(ticket: str) -> str:
    return f"there is no ticket {ticket}. `signoff tickets show` lists the newest ones."


def _short(ticket: Ticket) -> dict[str, str | int]:
    return {
        "id": ticket.id,
        "version": ticket.version,
        "status": ticket.status.value,
        "subject": ticket.subject,
    }


def _in_full(ticket: Ticket) -> str:
    lines = [
        f"Ticket {ticket.id}, version {ticket.version}, {ticket.status.value}",
        f"{ticket.subject}",
        f"{ticket.customer_name} <{ticket.customer_email}>, {ticket.language}",
    ]
    for change in ticket.changes:
        at = change.happened_at.isoformat(sep=" ", timespec="minutes")
        kind = change.kind.value.replace("_", " ")
        lines += ["", f"[{change.version}] {kind}, {change.author}, {at}"]
        lines += [f"    {line}" for line in change.body.splitlines()]
    return "\n".join(lines)
