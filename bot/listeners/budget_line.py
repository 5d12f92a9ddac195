"""What somebody typed after ``/signoff budget``. Pure.

What a person may do with money is typed in full: a word that is not understood settles nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from bot.listeners.grant_line import QUOTES
from bot.typed_money import amount_of
from bot.typed_text import as_typed
from executor.domain.charge_name import parse_charge
from executor.domain.ids import parse_run_number

LONGEST_NOTE = 500
_HIGHEST_NUMBER = 2**63 - 1
_ENDS = ".,;!"


class UnclearMoney(Enum):
    """What could not be understood."""

    SETTLE = "settle"
    AMOUNT = "amount"
    NOTE = "note"
    LONG_NOTE = "long_note"
    VOID = "void"
    WORDS = "words"
    RUN = "run"


@dataclass(frozen=True, slots=True)
class ShowBudget:
    """Show how money stands, of the day or of one run."""

    run: int | None = None


@dataclass(frozen=True, slots=True)
class SettleCharge:
    """Settle a charge to what an invoice says; ``note`` is untrusted."""

    charge: str
    microusd: int
    note: str


@dataclass(frozen=True, slots=True)
class UnclearBudget:
    """It could not be understood; nothing of it is repeated."""

    what: UnclearMoney


BudgetCommand = ShowBudget | SettleCharge | UnclearBudget


def parse_budget(rest: str) -> BudgetCommand:
    """Read what follows ``budget``."""
    verb, _, more = rest.strip().partition(" ")
    match _plain(verb).casefold():
        case "" | "show" | "list" | "today":
            return ShowBudget() if not more.strip() else UnclearBudget(UnclearMoney.WORDS)
        case "settle":
            return _settlement(more.strip())
        case "void" | "release":
            return UnclearBudget(UnclearMoney.VOID)
        case "run":
            return _run(more)
        case _ if not more.strip() and parse_run_number(_plain(verb)) is not None:
            return _run(verb)
        case _:
            return UnclearBudget(UnclearMoney.WORDS)


def _run(text: str) -> BudgetCommand:
    number = parse_run_number(_plain(text).rstrip(_ENDS))
    if number is None or number > _HIGHEST_NUMBER:
        return UnclearBudget(UnclearMoney.RUN)
    return ShowBudget(number)


def _settlement(text: str) -> BudgetCommand:
    """Read which charge, to which amount, and where that stands."""
    name, _, rest = text.partition(" ")
    amount, _, note = rest.strip().partition(" ")
    charge = parse_charge(_plain(name))
    if charge is None or not amount:
        return UnclearBudget(UnclearMoney.SETTLE)
    if amount == "$":
        # A blank after the sign is not the end of the amount.
        digits, _, note = note.strip().partition(" ")
        amount += digits
    microusd = amount_of(_plain(amount))
    if microusd is None:
        return UnclearBudget(UnclearMoney.AMOUNT)
    told = as_typed(note).strip().strip(QUOTES).strip()
    if not any(character.isalnum() for character in told):
        return UnclearBudget(UnclearMoney.NOTE)
    if len(told) > LONGEST_NOTE:
        return UnclearBudget(UnclearMoney.LONG_NOTE)
    return SettleCharge(charge, microusd, told)


def _plain(word: str) -> str:
    return as_typed(word).strip().strip(QUOTES).strip()
