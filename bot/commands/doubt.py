"""``signoff doubt``: what may have been sent and nobody knows, from the command line."""

from __future__ import annotations

import asyncio
import json
import sys
from datetime import timedelta
from typing import TYPE_CHECKING

import click

from bot.commands.failing import FAILED, explained, fail
from bot.commands.options import AS_JSON, OPERATION, TENANT, as_json_text

if TYPE_CHECKING:
    from executor.engine.card_record import AttemptRecord
    from executor.engine.doubt import Doubt
    from executor.engine.word import WordResult

_LONGEST_LINE = 300
_LONGEST_NAME = 80
_WORDS = {"sent": "sent", "not-sent": "not_sent", "leave": "leave"}


@click.group(invoke_without_command=True, short_help="List what nobody knows, and settle it.")
@click.option("--tenant", metavar="TEAM", help="The Slack team; without it, all of them.")
@AS_JSON
@click.pass_context
def doubt(context: click.Context, tenant: str | None, as_json: bool) -> None:
    """List what may have been sent and nobody knows, the oldest first, of all tenants.

    Exit code 1 if there is anything, 0 if there is nothing. DATABASE_URL names the database;
    without it it is the private one in SIGNOFF_HOME.
    """
    if context.invoked_subcommand is not None:
        return
    with explained():
        found = asyncio.run(_list(tenant))
    if as_json:
        click.echo(as_json_text([_as_json(one) for one in found]))
    elif found:
        for one in found:
            click.echo("\n".join(_in_short(one)))
    else:
        click.echo("Nothing is in doubt.")
    sys.exit(FAILED if found else 0)


@doubt.command()
@OPERATION
@TENANT
@AS_JSON
def show(operation: int, tenant: str | None, as_json: bool) -> None:
    """Show what is known of OPERATION (op_12), which is in doubt."""
    with explained():
        one = asyncio.run(_find(operation, tenant))
    if one is None:
        fail(_not_in_doubt(operation))
    if as_json:
        click.echo(as_json_text(_as_json(one)))
    else:
        click.echo("\n".join(_in_full(one)))


@doubt.command()
@OPERATION
@TENANT
@click.option("--word", type=click.Choice(list(_WORDS)), required=True, help="What happened.")
@click.option("--by", required=True, help="Your name; it is kept in the record.")
@click.option("--note", required=True, help="How you found out; it is kept in the record.")
def settle(operation: int, tenant: str | None, word: str, by: str, note: str) -> None:
    """Say what became of OPERATION (op_12), as an operator.

    Nothing is sent by this: sending again needs somebody who may approve, in Slack.
    """
    from executor.domain.payloads import storable_text

    name = storable_text(by.strip())[:_LONGEST_NAME]
    if not name or not note.strip():
        raise click.UsageError("--by and --note may not be empty")
    with explained():
        result = asyncio.run(_settle(operation, tenant, _WORDS[word], name, note.strip()))
    _tell(operation, word, result)


async def _list(tenant: str | None) -> list[Doubt]:
    from bot.commands.installation import engine_for, engine_of_installation
    from executor.engine.doubt import in_doubt

    if tenant is None:
        async with engine_of_installation() as engine:
            return await in_doubt(engine)
    async with engine_for(tenant) as (engine, chosen):
        return await in_doubt(engine, chosen)


async def _find(number: int, tenant: str | None) -> Doubt | None:
    from bot.commands.installation import engine_for
    from executor.engine.doubt import in_doubt

    async with engine_for(tenant) as (engine, chosen):
        found = await in_doubt(engine, chosen, number)
    return found[0] if found else None


async def _settle(
    number: int, tenant: str | None, said: str, name: str, note: str
) -> WordResult | None:
    from bot.commands.installation import engine_for
    from executor.domain.ids import operator_principal
    from executor.engine.doubt import in_doubt
    from executor.engine.settling import settle
    from executor.engine.word import Said, Word

    async with engine_for(tenant) as (engine, chosen):
        listed = await in_doubt(engine, chosen, number)
        if not listed:
            return None
        [found] = listed
        word = Word(
            chosen,
            found.record.id,
            found.attempt_id,
            Said(said),
            operator_principal(name),
            note,
        )
        [result] = await settle(engine, [word])
        return result


def _tell(operation: int, word: str, result: WordResult | None) -> None:
    from bot.reason_text import sentence
    from bot.state_text import operation_state
    from executor.domain.transition import Refused
    from executor.engine.word import Given

    if result is None:
        fail(_not_in_doubt(operation))
    if isinstance(result, Refused):
        fail(sentence(result.reason, {}))
    if not isinstance(result, Given):
        fail("it is not confirmed. `signoff doubt` shows whether it was recorded.")
    click.echo(f"Recorded ({word}). op_{operation}: {operation_state(result.status)}.")


def _not_in_doubt(operation: int) -> str:
    label = f"op_{operation}"
    return f"{label} is not in doubt. `signoff explain {label}` tells what became of it."


def _next_action(one: Doubt) -> str:
    from bot.next_step import next_step
    from executor.domain.operation import OperationStatus

    if one.record.status is OperationStatus.EXECUTING:
        return "No executor has concluded it, and it is time: see that one runs."
    return next_step(one.record)


def _attempts(one: Doubt) -> list[AttemptRecord]:
    return [attempt for effect in one.record.effects for attempt in effect.attempts]


def _as_json(one: Doubt) -> dict[str, object]:
    from bot.about_text import about

    return {
        "tenant": one.record.tenant_id,
        "operation": f"op_{one.record.number}",
        "run": f"run_{one.record.run_number}",
        "about": about(one.record),
        "ticket": None if one.record.ticket is None else one.record.ticket.id,
        "status": one.record.status.value,
        "since": one.since.isoformat(),
        "age_seconds": int((one.now - one.since).total_seconds()),
        "next_action": _next_action(one),
        "recover_at": None if one.recover_at is None else one.recover_at.isoformat(),
        "attempts": [
            {
                "number": attempt.number,
                "status": attempt.status.value,
                "opened_at": attempt.opened_at.isoformat(),
                "may_arrive_until": attempt.conclude_at.isoformat(),
                "evidence": attempt.evidence,
            }
            for attempt in _attempts(one)
        ],
        "words": [
            {"by": w.by, "said": w.said.value, "note": w.note, "at": w.said_at.isoformat()}
            for w in one.record.words
        ],
    }


def _in_short(one: Doubt) -> list[str]:
    from bot.about_text import about
    from bot.card_parts import one_line, stamp

    age = timedelta(seconds=int((one.now - one.since).total_seconds()))
    count = len(_attempts(one))
    return [
        f"op_{one.record.number} of run_{one.record.run_number}, "
        f"tenant {one_line(one.record.tenant_id, 40)}, "
        f"{about(one.record)}: "
        f"{one.record.status.value} since {stamp(one.since)} ({age}), "
        f"{count} attempt{'' if count == 1 else 's'}",
        f"    Next: {_next_action(one)}",
    ]


def _in_full(one: Doubt) -> list[str]:
    from bot.card_parts import one_line, stamp

    lines = _in_short(one)
    for attempt in _attempts(one):
        lines.append(
            f"    Attempt {attempt.number}: {attempt.status.value}, "
            f"made {stamp(attempt.opened_at)}, "
            f"may be on its way until {stamp(attempt.conclude_at)}"
        )
        for key, value in attempt.evidence.items():
            spelt = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            lines.append(f"        {one_line(key, 40)}: {one_line(spelt, _LONGEST_LINE)}")
    for word in one.record.words:
        note = f": {one_line(word.note, _LONGEST_LINE)}" if word.note else ""
        lines.append(
            f"    {one_line(word.by, 80)} said {word.said.value} at {stamp(word.said_at)}{note}"
        )
    return lines
