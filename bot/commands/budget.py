"""``signoff budget``: how money stands, and what calls have cost that nobody knew."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from bot.commands.failing import FAILED, explained, fail
from bot.commands.grants import BY
from bot.commands.options import AS_JSON, RUN, TENANT, as_json_text
from bot.commands.typed_argument import Typed
from bot.typed_money import AMOUNTS, amount_of, dollars

if TYPE_CHECKING:
    from executor.domain.budget import Account
    from executor.domain.ids import PrincipalId
    from executor.engine.accounts import Accounts, Call, RunAccount, Unknown
    from executor.engine.grant_reading import LocalTime
    from executor.engine.invoice import Invoiced, KnownBefore, SettledNow, SettleResult

_LONGEST_NAME = 80
_LONGEST_NOTE = 300
_SETTLE = '`signoff budget settle {} --cost 0.0123 --note "invoice 4711"`'


def _charge(text: str) -> str | None:
    from executor.domain.charge_name import parse_charge

    return parse_charge(text)


_CHARGE = Typed("charge", _charge, "no charge; `signoff budget` lists them")
_DOLLARS = Typed("usd", amount_of, f"no amount; write dollars like {AMOUNTS}, 10000 at most")


@click.group(invoke_without_command=True, short_help="Show what is spent, and settle charges.")
@TENANT
@AS_JSON
@click.pass_context
def budget(context: click.Context, tenant: str | None, as_json: bool) -> None:
    """Show today's account, runs at a limit, and calls of which nobody knows what they cost.

    Exit code 1 if there is such a call, 0 if there is none. DATABASE_URL names the database;
    without it it is the private one in SIGNOFF_HOME.
    """
    if context.invoked_subcommand is not None:
        return
    with explained():
        found = asyncio.run(_see(tenant))
    if as_json:
        click.echo(as_json_text(_accounts_as_json(found)))
    else:
        for line in _told(found):
            click.echo(line)
    sys.exit(FAILED if found.unknown else 0)


@budget.command(name="run")
@click.argument("number", type=RUN)
@TENANT
@AS_JSON
def run_(number: int, tenant: str | None, as_json: bool) -> None:
    """Show the account of one run NUMBER (run_7) and what each of its calls has cost."""
    with explained():
        found = asyncio.run(_see_run(tenant, number))
    if as_json:
        click.echo(as_json_text(_run_as_json(found)))
        return
    for line in _run_told(found):
        click.echo(line)


@budget.command()
@click.argument("charge", type=_CHARGE)
@click.option("--cost", type=_DOLLARS, required=True, help="What the invoice says, in dollars.")
@click.option("--note", required=True, help="Where the amount stands; it is kept in the record.")
@BY
@TENANT
@AS_JSON
def settle(charge: str, cost: int, note: str, by: str, tenant: str | None, as_json: bool) -> None:
    """Settle CHARGE (ch_5f0c1b2a) to what the provider's invoice says.

    What was held of it is free then. It is charged to the day on which it was reserved. Nothing
    voids a charge: one that cost nothing is settled to 0, with the invoice that says so.
    """
    from bot.budget_text import known_before, refused_text, settled_text
    from executor.domain.errors import CommitUnknown
    from executor.domain.transition import Refused
    from executor.engine.invoice import Invoiced, KnownBefore

    name = _name(by)
    said = Invoiced(charge, cost, _note(note))
    with explained():
        try:
            result, here = asyncio.run(_settle(tenant, name, said))
        except CommitUnknown:
            fail("not confirmed: it was recorded or not. `signoff budget` shows it.")
    if isinstance(result, Refused):
        fail(refused_text(result))
    if as_json:
        click.echo(as_json_text(_settled_as_json(result)))
    elif isinstance(result, KnownBefore):
        click.echo(known_before(result, here.zone, _called))
        if result.end.note:
            click.echo(f"    Note: {_line(result.end.note)}")
    else:
        click.echo(settled_text(result))


async def _see(tenant: str | None) -> Accounts:
    from bot.commands.installation import engine_for
    from executor.domain.ids import operator_principal
    from executor.domain.transition import Refused
    from executor.engine.accounts import see_accounts

    async with engine_for(tenant) as (engine, chosen):
        found = await see_accounts(engine, chosen, operator_principal(""))
    assert not isinstance(found, Refused), "an operator sees everything"
    return found


async def _see_run(tenant: str | None, number: int) -> RunAccount:
    from bot.budget_text import refused_text
    from bot.commands.installation import engine_for
    from executor.domain.ids import operator_principal
    from executor.domain.transition import Refused
    from executor.engine.accounts import see_run

    async with engine_for(tenant) as (engine, chosen):
        found = await see_run(engine, chosen, operator_principal(""), number)
    if isinstance(found, Refused):
        fail(refused_text(found))
    return found


async def _settle(
    tenant: str | None, by: PrincipalId, said: Invoiced
) -> tuple[SettleResult, LocalTime]:
    from bot.commands.installation import engine_for
    from executor.engine.grant_reading import local_time
    from executor.engine.invoice import settle_invoiced

    async with engine_for(tenant) as (engine, chosen):
        return await settle_invoiced(engine, chosen, by, said), await local_time(engine, chosen)


def _name(by: str) -> PrincipalId:
    from executor.domain.ids import operator_principal
    from executor.domain.payloads import storable_text

    name = storable_text(by.strip())[:_LONGEST_NAME]
    if not name:
        raise click.UsageError("say who you are with --by; it is kept in the record")
    return operator_principal(name)


def _note(note: str) -> str:
    from executor.engine.granting import LONGEST_NOTE

    told = note.strip()
    if not any(character.isalnum() for character in told):
        raise click.UsageError("say with --note where the amount stands, such as an invoice")
    if len(told) > LONGEST_NOTE:
        raise click.UsageError(f"--note has at most {LONGEST_NOTE} characters")
    return told


def _told(found: Accounts) -> Iterator[str]:
    from bot.budget_text import charge_line, how_to_free, nothing_stuck, short_run_line, today
    from executor.engine.grant_reading import LocalTime

    here = LocalTime(found.now, found.zone)
    yield today(found)
    for run in found.runs:
        yield short_run_line(run)
    for one in found.unknown:
        yield charge_line(one, here)
    if found.unknown:
        yield how_to_free(_example(found.unknown[0]))
    elif not found.runs:
        yield nothing_stuck(is_whole=True)


def _run_told(found: RunAccount) -> Iterator[str]:
    from bot.budget_text import charge_line, how_to_free, run_line
    from bot.state_text import run_state
    from executor.engine.grant_reading import LocalTime

    here = LocalTime(found.now, found.zone)
    yield run_line(found.number, run_state(found.status), found.account)
    for call in found.calls:
        yield f"    {_call_line(call)}"
    for one in found.unknown:
        yield charge_line(one, here)
    if found.unknown:
        yield how_to_free(_example(found.unknown[0]))


def _call_line(call: Call) -> str:
    from executor.domain.charge_name import charge_label

    tokens = "tokens not told"
    if call.tokens is not None:
        tokens = f"{call.tokens.read:,} tokens read, {call.tokens.written:,} written"
    cost = f"{dollars(call.amount_microusd)} held ({call.charge.value})"
    if call.actual_microusd is not None:
        cost = dollars(call.actual_microusd)
    label = charge_label(call.reservation_id)
    return (
        f"call {call.number}, {label}, {_line(call.model)}: {call.status.value}, {tokens}, {cost}"
    )


def _example(one: Unknown) -> str:
    from executor.domain.charge_name import charge_label

    return _SETTLE.format(charge_label(one.id))


def _line(text: str) -> str:
    from bot.card_parts import one_line

    return one_line(text, _LONGEST_NOTE)


def _called(principal: PrincipalId) -> str:
    """Call somebody by their id, as the other commands do."""
    from executor.domain.ids import slack_user

    user = slack_user(principal)
    return user[1] if user is not None else _line(principal)


def _accounts_as_json(found: Accounts) -> dict[str, object]:
    return {
        "day": found.today.day.isoformat(),
        **_account_as_json(found.today.account),
        "renews_at": found.today.renews_at.astimezone(found.zone),
        "timezone": found.zone.key,
        "runs": [
            {
                "run": f"run_{r.number}",
                "status": r.status.value,
                **_account_as_json(r.account),
                "paused_at_limit_of": None if r.scope is None else r.scope.value,
                "next_call_needs_microusd": None if r.scope is None else r.needed_microusd,
            }
            for r in found.runs
        ],
        "unknown": [_unknown_as_json(one) for one in found.unknown],
    }


def _run_as_json(found: RunAccount) -> dict[str, object]:
    return {
        "run": f"run_{found.number}",
        "status": found.status.value,
        **_account_as_json(found.account),
        "calls": [_call_as_json(call) for call in found.calls],
        "unknown": [_unknown_as_json(one) for one in found.unknown],
    }


def _account_as_json(account: Account) -> dict[str, object]:
    return {
        "limit_microusd": account.limit_microusd,
        "spent_microusd": account.spent_microusd,
        "held_microusd": account.held_microusd,
        "unknown_microusd": account.unknown_microusd,
        "left_microusd": account.left_microusd,
    }


def _unknown_as_json(one: Unknown) -> dict[str, object]:
    from executor.domain.charge_name import charge_label

    return {
        "charge": charge_label(one.id),
        "id": str(one.id),
        "run": f"run_{one.run}",
        "purpose": one.purpose,
        "model": one.model,
        "response_id": one.response_id,
        "held_microusd": one.amount_microusd,
        "day": one.day.isoformat(),
        "since": one.reserved_at,
        "next_action": f"Look at the provider's invoice, then {_example(one)}",
    }


def _call_as_json(call: Call) -> dict[str, object]:
    from executor.domain.charge_name import charge_label

    tokens = call.tokens
    return {
        "number": call.number,
        "charge": charge_label(call.reservation_id),
        "model": call.model,
        "status": call.status.value,
        "input_tokens": None if tokens is None else tokens.read,
        "output_tokens": None if tokens is None else tokens.written,
        "response_id": call.response_id,
        "asked_at": call.asked_at,
        "charge_status": call.charge.value,
        "held_microusd": call.amount_microusd,
        "cost_microusd": call.actual_microusd,
    }


def _settled_as_json(result: SettledNow | KnownBefore) -> dict[str, object]:
    from executor.domain.charge_name import charge_label
    from executor.engine.invoice import SettledNow

    one = result.charge
    told: dict[str, object] = {
        "charge": charge_label(one.id),
        "run": f"run_{one.run}",
        "day": one.day.isoformat(),
        "had_held_microusd": one.amount_microusd,
        "settled_now": isinstance(result, SettledNow),
    }
    if isinstance(result, SettledNow):
        return told | {"cost_microusd": result.actual_microusd}
    end = result.end
    cost = one.actual_microusd or 0
    return told | {"cost_microusd": cost, "by": end.by, "at": end.at, "note": end.note}
