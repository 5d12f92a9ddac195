"""``signoff explain``: why something was or was not sent, told from its record."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from bot.commands.failing import explained, fail
from bot.commands.options import AS_JSON, OPERATION, TENANT, as_json_text

if TYPE_CHECKING:
    from executor.engine.doubt import Account

_LONGEST_GOAL = 400


@click.command(short_help="Tell why something was or was not sent.")
@OPERATION
@TENANT
@AS_JSON
def explain(operation: int, tenant: str | None, as_json: bool) -> None:
    """Tell why OPERATION (op_12) was or was not sent, and everything that happened to it.

    It is told from the record: where it stands and why, what comes next, who asked and who
    approved, every check of its opening with its result, what was tried and what each attempt
    proves, what was searched for, what people said, and what providers said later.

    \b
    For example:
      signoff explain op_12
    """
    with explained():
        account = asyncio.run(_account(operation, tenant))
    if account is None:
        fail(f"there is no operation op_{operation}.")
    click.echo(as_json_text(_as_json(account)) if as_json else "\n".join(_in_words(account)))


async def _account(number: int, tenant: str | None) -> Account | None:
    from bot.commands.installation import engine_for
    from executor.engine.doubt import account_of

    async with engine_for(tenant) as (engine, chosen):
        return await account_of(engine, chosen, number)


def _in_words(account: Account) -> Iterator[str]:
    from bot.account_text import story
    from bot.card_parts import one_line, stamp
    from bot.next_step import next_step
    from bot.state_text import operation_state

    record = account.record
    yield _summary(account)
    yield f"Next: {next_step(record)}"
    yield (
        f"{one_line(record.requester, 80)} asked for it in run_{record.run_number}: "
        f"{one_line(record.goal, _LONGEST_GOAL)}"
    )
    if record.undoes is not None:
        yield f"It would undo a part of op_{record.undoes.number}, whose email was not sent."
    if record.reopening is not None:
        label, state = f"op_{record.reopening.number}", operation_state(record.reopening.status)
        yield f"{label} would open its ticket again; it is {state}."
    for vote in record.approval.votes:
        who = one_line(vote.principal, 80)
        yield f"{who} voted to {vote.vote.value} it at {stamp(vote.decided_at)}."
    for effect in record.effects:
        yield f"{effect.kind.value} through {one_line(effect.provider, 80)}: {effect.status.value}."
    yield ""
    yield "What happened, in order (UTC):"
    for told in story(account):
        yield from told.lines()
    if record.deliveries:
        yield ""
        yield "What the provider said later of the accepted email:"
        for event in record.deliveries:
            about = ", ".join((*event.recipients, *((event.said,) if event.said else ())))
            yield f"  {stamp(event.happened_at)}  {event.kind.value}: {one_line(about, 300)}"


def _summary(account: Account) -> str:
    from bot.about_text import about
    from bot.reason_text import sentence
    from bot.state_text import operation_state
    from executor.domain.effect import EffectStatus
    from executor.domain.operation import OperationStatus

    record = account.record
    undone = [e.kind.value for e in record.effects if e.status is not EffectStatus.APPLIED]
    detail = {**record.detail, **({"effect": undone[0]} if undone else {})}
    # Why it had once ended otherwise is told in its place; what is done needs no reason.
    reason = None if record.status is OperationStatus.SUCCEEDED else record.reason
    why = "" if reason is None else f" {sentence(reason, detail)}"
    return (
        f"op_{record.number} of run_{record.run_number}, about {about(record)}: "
        f"{operation_state(record.status)}.{why}"
    )


def _as_json(account: Account) -> dict[str, object]:
    from bot.about_text import about
    from bot.account_text import story
    from bot.next_step import next_step

    record = account.record
    return {
        "operation": f"op_{record.number}",
        "run": f"run_{record.run_number}",
        "tenant": record.tenant_id,
        "about": about(record),
        "ticket": None
        if record.ticket is None
        else {
            "desk": record.ticket.desk,
            "id": record.ticket.id,
            "version": record.ticket.version,
        },
        "status": record.status.value,
        "reason": None if record.reason is None else record.reason.value,
        "summary": _summary(account),
        "next": next_step(record),
        "requested_by": record.requester,
        "goal": record.goal,
        "undoes": None if record.undoes is None else f"op_{record.undoes.number}",
        "reopening": None if record.reopening is None else f"op_{record.reopening.number}",
        "digest": record.digest.hex(),
        "votes": [
            {"by": v.principal, "vote": v.vote.value, "note": v.note, "at": v.decided_at}
            for v in record.approval.votes
        ],
        "checks": [
            {"at": entry.recorded_at, "event": entry.event, "results": entry.detail["checks"]}
            for entry in account.entries
            if "checks" in entry.detail
        ],
        "effects": [
            {
                "kind": effect.kind.value,
                "provider": effect.provider,
                "status": effect.status.value,
                "promise": effect.promise,
                "attempts": [
                    {
                        "number": attempt.number,
                        "capability": attempt.capability.value,
                        "status": attempt.status.value,
                        "opened_at": attempt.opened_at,
                        "searches": attempt.lookups,
                        "recover_at": attempt.recover_at,
                        "evidence": attempt.evidence,
                    }
                    for attempt in effect.attempts
                ],
            }
            for effect in record.effects
        ],
        "words": [
            {"by": w.by, "said": w.said.value, "note": w.note, "at": w.said_at}
            for w in record.words
        ],
        "deliveries": [
            {"kind": d.kind.value, "at": d.happened_at, "recipients": d.recipients, "said": d.said}
            for d in record.deliveries
        ],
        "story": [{"at": t.at, "text": t.text, "below": t.below} for t in story(account)],
    }
