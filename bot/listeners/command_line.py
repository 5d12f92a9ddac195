"""What somebody typed after ``/signoff``, read as leniently as it can be understood. Pure.

Slack's clients put no-break spaces and curly quotes where people typed plain ones
(errbotio/errbot#1145); case, blanks and quotes around a word mean nothing. What Slack encodes is
undone last, so that no text can pass for a mention.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from bot.listeners.budget_line import BudgetCommand, parse_budget
from bot.listeners.grant_line import GrantCommand, parse_delegation, parse_grants
from bot.typed_text import as_typed
from executor.domain.ids import parse_operation_number, parse_run_number

_BLANKS = re.compile(r"[\s\u00a0\u1680\u2000-\u200d\u202f\u205f\u2060\u3000\ufeff]+")
_QUOTES = "\"'`“”„‟«»‘’\u201a\u201b"
_ENDS = ".,;!"
_HIGHEST_NUMBER = 2**63 - 1


@dataclass(frozen=True, slots=True)
class StartRun:
    """Start a run toward a goal."""

    goal: str


@dataclass(frozen=True, slots=True)
class ShowStatus:
    """Show one run, or the newest ones."""

    run: int | None


@dataclass(frozen=True, slots=True)
class CancelRun:
    """Stop a run."""

    run: int


@dataclass(frozen=True, slots=True)
class ShowPending:
    """List what waits for whoever asks, or show one operation in full."""

    operation: int | None


@dataclass(frozen=True, slots=True)
class NoSuchOperation:
    """Something stands where an operation's number belongs, and it is none."""


@dataclass(frozen=True, slots=True)
class ShowHelp:
    """List the commands."""


@dataclass(frozen=True, slots=True)
class Incomplete:
    """A known word without what has to follow it."""

    verb: str


@dataclass(frozen=True, slots=True)
class NoSuchRun:
    """Something stands where a run's number belongs, and it is none."""


@dataclass(frozen=True, slots=True)
class UnknownWord:
    """A word that is no command; untrusted."""

    word: str


Command = (
    StartRun
    | ShowStatus
    | CancelRun
    | ShowPending
    | NoSuchOperation
    | ShowHelp
    | Incomplete
    | NoSuchRun
    | UnknownWord
    | GrantCommand
    | BudgetCommand
)


def parse_command(text: str) -> Command:
    """Read what follows the slash command."""
    line = _unquoted(_BLANKS.sub(" ", text).strip())
    word, _, rest = line.partition(" ")
    verb, rest = _unquoted(word).casefold(), rest.strip()
    match verb:
        case "" | "help" | "?":
            return ShowHelp()
        case "start" | "run":
            goal = as_typed(_unquoted(rest))
            return StartRun(goal) if goal else Incomplete("start")
        case "status":
            if not rest:
                return ShowStatus(None)
            number = _run(rest)
            return NoSuchRun() if number is None else ShowStatus(number)
        case "cancel" | "stop":
            if not rest:
                return Incomplete("cancel")
            number = _run(rest)
            return NoSuchRun() if number is None else CancelRun(number)
        case "pending" | "waiting":
            if not rest:
                return ShowPending(None)
            number = _operation(rest)
            return NoSuchOperation() if number is None else ShowPending(number)
        case "grants" | "grant":
            return parse_grants(rest)
        case "delegate":
            return parse_delegation(rest)
        case "budget" | "budgets" | "money":
            return parse_budget(rest)
        case _:
            return UnknownWord(as_typed(verb))


def _run(text: str) -> int | None:
    return _number(text, parse_run_number)


def _operation(text: str) -> int | None:
    return _number(text, parse_operation_number)


def _number(text: str, parse: Callable[[str], int | None]) -> int | None:
    number = parse(_unquoted(text.rstrip(_ENDS)).rstrip(_ENDS))
    return number if number is not None and number <= _HIGHEST_NUMBER else None


def _unquoted(text: str) -> str:
    """Take quotes off both ends, where they stand at both and enclose one thing."""
    while len(text) >= 2 and text[0] in _QUOTES and text[-1] in _QUOTES:
        inside = text[1:-1].strip()
        if set(inside[1:-1]) & set(_QUOTES):
            break
        text = inside
    return text
