"""What people are told about money: how a day and its runs stand, and what a charge came to.

A sentence may stand in ``mrkdwn``: amounts, times and labels are ours, and of what a call was for
only plain characters are left. Notes, which anybody may have written, are in none of them. Pure.
"""

from __future__ import annotations

import re
from zoneinfo import ZoneInfo

from bot.grant_text import Naming
from bot.mrkdwn import hint
from bot.notice_text import refusal_text
from bot.state_text import run_state
from bot.typed_money import AMOUNTS, dollars
from bot.typed_time import spelt
from executor.domain.budget import Account, ReservationStatus
from executor.domain.charge_name import charge_label
from executor.domain.ids import run_label
from executor.domain.raising import Scope
from executor.domain.transition import Reason, Refused
from executor.engine.accounts import Accounts, RunAccount, ShortRun, Unknown
from executor.engine.grant_reading import LocalTime
from executor.engine.invoice import KnownBefore, SettledNow

MOST_SHOWN = 10
EXECUTOR = "executor"
_LONGEST_PURPOSE = 60
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9._:/@ -]")
EXAMPLE = "budget settle ch_5f0c1b2a 0.0123 invoice 4711"


def accounts_text(found: Accounts) -> str:
    """Answer in Slack how money stands."""
    here = LocalTime(found.now, found.zone)
    lines = [today(found)]
    lines += [f"• {short_run_line(one)}" for one in found.runs[:MOST_SHOWN]]
    lines += [f"• {charge_line(one, here)}" for one in found.unknown[:MOST_SHOWN]]
    if max(len(found.runs), len(found.unknown)) > MOST_SHOWN:
        lines.append("There is more: an operator sees it with `signoff budget`.")
    if found.unknown:
        lines.append(how_to_free(_settling(found.unknown[0])))
    elif not found.runs:
        lines.append(nothing_stuck(is_whole=found.is_whole))
    return "\n".join(lines)


def run_text(found: RunAccount) -> str:
    """Answer in Slack how the money of one run stands."""
    here = LocalTime(found.now, found.zone)
    lines = [run_line(found.number, run_state(found.status), found.account)]
    lines += [f"• {charge_line(one, here)}" for one in found.unknown[:MOST_SHOWN]]
    if found.unknown:
        lines.append(how_to_free(_settling(found.unknown[0])))
    return "\n".join(lines)


def today(found: Accounts) -> str:
    """Say how the day stands, and when it renews on the tenant's clock."""
    day = found.today
    renews = spelt(day.renews_at, LocalTime(found.now, found.zone))
    return (
        f"Today ({day.day}): {account_words(day.account)}. It renews {renews} ({found.zone.key})."
    )


def account_words(account: Account) -> str:
    """Say what an account has spent, holds and has left."""
    told = f"{dollars(account.spent_microusd)} of {dollars(account.limit_microusd)} spent"
    if account.held_microusd:
        told += f", {dollars(account.held_microusd)} held"
    if account.unknown_microusd:
        told += f" ({dollars(account.unknown_microusd)} of it for calls of unknown cost)"
    return f"{told}, {dollars(account.left_microusd)} left"


def run_line(number: int, state: str, account: Account) -> str:
    """Say how one run stands."""
    return f"{run_label(number)} ({state}): {account_words(account)}."


def short_run_line(one: ShortRun) -> str:
    """Say how a run stands, and of a paused one at which limit, and what its next call needs."""
    told = run_line(one.number, run_state(one.status), one.account)
    if one.scope is None:
        return told
    limit = "its own limit" if one.scope is Scope.RUN else "the day's limit"
    return f"{told} It is paused at {limit}: its next call needs {dollars(one.needed_microusd)}."


def charge_line(one: Unknown, here: LocalTime) -> str:
    """Name one charge that nobody knows: whose, for what, how much it holds and since when."""
    return (
        f"{charge_label(one.id)} of {run_label(one.run)}, for `{purpose(one.purpose)}`, holds "
        f"{dollars(one.amount_microusd)} since {spelt(one.reserved_at, here)}."
    )


def purpose(text: str) -> str:
    """Spell what a call was for; a tool's own name may hold anything."""
    return _NOT_PLAIN.sub("?", text)[:_LONGEST_PURPOSE]


def how_to_free(command: str) -> str:
    """Say what frees a charge that nobody knows."""
    return (
        "An answer that still comes frees a charge by itself, else an operator with what the "
        f"provider's invoice says: {command}"
    )


def nothing_stuck(*, is_whole: bool) -> str:
    """Say that no run waits for money and every charge is known."""
    whose = "No run" if is_whole else "None of your runs"
    return f"{whose} waits for money, and all that calls have cost is known."


def settled_text(settled: SettledNow) -> str:
    """Confirm a settlement that is stored; more than was held is charged all the same."""
    one, actual = settled.charge, settled.actual_microusd
    told = (
        f"Settled: {charge_label(one.id)} of {run_label(one.run)} has cost {dollars(actual)}, "
        f"charged to {one.day}. {dollars(one.amount_microusd)} had been held for it."
    )
    over = actual - one.amount_microusd
    if over > 0:
        told += (
            f" Mind that this is {dollars(over)} more than was held, and all of it is charged: "
            "if it is right, the model's price in the policy is not."
        )
    return told


def known_before(known: KnownBefore, zone: ZoneInfo, name: Naming) -> str:
    """Tell that a charge was settled or voided before."""
    one, end = known.charge, known.end
    came = (
        f"settled to {dollars(one.actual_microusd or 0)}"
        if one.status is ReservationStatus.SETTLED
        else "released, because nothing was spent,"
    )
    by = "us when its answer came" if end.by == EXECUTOR else name(end.by)
    at = spelt(end.at, LocalTime(end.at, zone))
    return f"{charge_label(one.id)} was already {came} by {by} {at}. Nothing has changed."


def refused_text(refused: Refused) -> str:
    """Say why nothing was settled or shown."""
    detail = refused.detail
    if refused.reason is Reason.CHARGE_NOT_FOUND and detail.get("several"):
        return (
            "Several charges end like this, so nothing was changed. `signoff budget --json` gives "
            "their whole ids."
        )
    if refused.reason is Reason.CHARGE_NOT_UNKNOWN and detail.get("status") == "held":
        return "This call may still be under way, so nothing was changed. Look again in a while."
    return refusal_text(refused.reason, detail)


def settle_wanted() -> str:
    """Show how a charge is settled."""
    return (
        "Which charge, to which amount, and where does that stand? For example: "
        f"{hint(EXAMPLE)}. {hint('budget')} lists the charges."
    )


def amount_unclear() -> str:
    """Tell how an amount is written."""
    return (
        f"This amount cannot be read, so nothing was changed. Write dollars like {AMOUNTS}, "
        "10,000 at most, with a point and no more than six digits after it."
    )


def note_wanted() -> str:
    """Ask what an amount rests on."""
    return (
        "Where does the amount stand? Say it after the amount, so that others can look it up. For "
        f"example: {hint(EXAMPLE)}"
    )


def note_too_long(most: int) -> str:
    """Tell that a note does not fit the record."""
    return f"Say where the amount stands in {most} characters; nothing was changed."


def never_voided() -> str:
    """Tell why nobody can void a charge."""
    return (
        "Nobody's word voids a charge. If the provider's invoice says that it cost nothing, settle "
        "it to 0 and say which invoice."
    )


def words_unclear() -> str:
    """Tell what can follow."""
    return (
        f"Not everything was understood, so nothing was done. {hint('budget')} shows how money "
        f"stands, {hint('budget run_7')} one run; {hint(EXAMPLE)} settles a charge."
    )


def not_confirmed() -> str:
    """Tell that a charge may have been settled or not."""
    return f"Not confirmed: it may have been recorded or not. {hint('budget')} shows it."


def _settling(one: Unknown) -> str:
    return hint(f"budget settle {charge_label(one.id)} 0.0123 invoice 4711")
