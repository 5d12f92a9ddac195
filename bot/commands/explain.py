"""``signoff explain``: why something was or was not sent, told from its record."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import click

from bot.commands.failing import explained, fail

if TYPE_CHECKING:
    from executor.domain.journal import JournalEntry
    from executor.engine.doubt import Account

_LONGEST_LINE = 400
_HIDDEN = frozenset({"request", "view_digest"})
"""Details that say nothing to a person."""


@click.command(short_help="Tell why something was or was not sent.")
@click.argument("operation")
def explain(operation: str) -> None:
    """Tell why OPERATION (op_12) was or was not sent, and everything that happened to it.

    It is told from the record: where it stands and why, who approved it, what was tried and what
    each attempt proves, and every entry of the journal about it, in order.

    \b
    For example:
      signoff explain op_12
    """
    from executor.domain.ids import parse_operation_number

    number = parse_operation_number(operation)
    if number is None:
        raise click.BadParameter(f"{operation!r} is no operation; write for example op_12")
    with explained():
        account = asyncio.run(_account(number))
    if account is None:
        fail(f"there is no operation {operation}.")
    click.echo("\n".join([*_summary(account), "", "What happened, in order:", *_history(account)]))


async def _account(number: int) -> Account | None:
    from bot.commands.installation import engine_of_tenant
    from executor.engine.doubt import account_of

    async with engine_of_tenant() as (engine, tenant):
        return await account_of(engine, tenant, number)


def _summary(account: Account) -> Iterator[str]:
    """Say where it stands, why, on whose word, and what each attempt proves."""
    from bot.card_parts import one_line, stamp
    from bot.replies import operation_state, sentence

    record = account.record
    yield (
        f"op_{record.number} of run_{record.run_number}, about ticket "
        f"{one_line(record.ticket.id, 60)}: {operation_state(record.status)}."
    )
    if record.reason is not None:
        yield f"Why: {sentence(record.reason, {})}"
    yield f"Asked for by {one_line(record.requester, 80)}: {one_line(record.goal, _LONGEST_LINE)}"
    approval = record.approval
    yield f"The newest approval is {approval.status.value}; it needs {approval.quorum} vote(s)."
    for vote in approval.votes:
        note = f": {one_line(vote.note, _LONGEST_LINE)}" if vote.note else ""
        who = one_line(vote.principal, 80)
        yield f"    {who} voted {vote.vote.value} at {stamp(vote.decided_at)}{note}"
    for effect in record.effects:
        yield f"{effect.kind.value} through {one_line(effect.provider, 80)}: {effect.status.value}."
        for attempt in effect.attempts:
            yield (
                f"    Attempt {attempt.number}, made {stamp(attempt.opened_at)}: "
                f"{attempt.status.value}{_spelt(attempt.evidence)}"
            )


def _history(account: Account) -> Iterator[str]:
    for entry in account.entries:
        yield _entry(entry)


def _entry(entry: JournalEntry) -> str:
    from bot.card_parts import one_line

    at = entry.recorded_at.isoformat(sep=" ", timespec="seconds")
    what = (
        "note"
        if entry.machine is None
        else f"{entry.machine.value} {entry.source} -> {entry.target}"
    )
    detail = {key: value for key, value in entry.detail.items() if key not in _HIDDEN}
    return (
        f"    {at}  {what}, {entry.event.replace('_', ' ')}, by {one_line(entry.actor, 80)}"
        f"{_spelt(detail)}"
    )


def _spelt(detail: Mapping[str, object]) -> str:
    from bot.card_parts import one_line

    if not detail:
        return ""
    return f": {one_line(json.dumps(detail, ensure_ascii=False, default=str), _LONGEST_LINE)}"
