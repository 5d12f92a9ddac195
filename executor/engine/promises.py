"""What can be promised of a provider, and what cannot: every sentence comes from its declaration.

The card, the operators' page ``docs/guarantees.md`` and the terms that recovery goes by all rest on
the same ``Declaration``, so that they cannot say different things.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import assert_never

from executor.domain.declaration import Declaration, Guard, Notices
from executor.domain.effect import Capability, EffectKind
from executor.domain.recovery import MOST_LOOKUPS, MOST_SENDINGS

LONGEST_SENTENCE = 160
"""Characters that the card has for the sentence of one provider."""


@dataclass(frozen=True, slots=True)
class Told:
    """A declaration in words: ``card`` for the reviewer, the others for the operator."""

    card: str
    limit: str
    unknown: str
    promised: str
    not_promised: str


def promise(declaration: Declaration) -> str:
    """Say in one sentence what can be promised, for the card."""
    return tell(declaration).card


def tell(declaration: Declaration) -> Told:
    """Put a declaration into words."""
    name, done = declaration.name, _done(declaration.kind)
    asked = f"{declaration.witness} has to say what happened"
    match declaration.capability:
        case Capability.TRANSACTIONAL:
            return Told(
                f"{name}: {done} together with its record, at exactly this version, or not at all.",
                "none",
                "cannot be: it commits with its record",
                f"{done} once, together with its record, at the version that was approved",
                _not_promised(
                    declaration,
                    "what the database loses, as in a failover to an asynchronous replica",
                ),
            )
        case Capability.CONDITIONAL:
            return Told(
                f"{name}: {done} only if nothing has changed since{_resolution(declaration)}; "
                "a lost answer is read back.",
                f"version: to within {_spelled(declaration.version_resolution)}",
                f"read back: our mark is there = {done}; no mark and the version moved = not "
                f"{done}; no mark and not moved = still unknown, and the same request "
                f"with the same version may be made again; in the end {asked}",
                f"{done} at most once, and not over a change that the version shows",
                _not_promised(
                    declaration,
                    "that a change is noticed within "
                    f"{_spelled(declaration.version_resolution)} of the one before it",
                ),
            )
        case Capability.KEYED:
            window = _spelled(declaration.key_window)
            return Told(
                f"{name}: repeats of this mail within {window} are dropped; "
                "if it is still unknown after that, a person has to find out.",
                f"key: {window} from the first attempt",
                "sent again with the same key and the same bytes, at most "
                f"{MOST_SENDINGS} attempts in all, inside the window minus the longest that one "
                f"attempt can take; after that {asked}",
                f"{done} at most once inside the window, although it is tried again",
                _not_promised(
                    declaration, "anything after the window: a repeat is a second mail then"
                ),
            )
        case Capability.LOOKUP:
            return _told_of_lookup(declaration, asked)
        case Capability.OPAQUE:
            once, came, again = "handed over", "whether it arrived", "send again"
            if declaration.kind is EffectKind.TOOL_CALL:
                once, came, again = "called", "whether it was done", "call again"
            return Told(
                f"{name}: {once} at most once; if the answer is lost, nobody can look it up "
                f"and a person has to find out {came}.",
                "none",
                f"put to a person at once: {asked}",
                f"{once} at most once, unless a person says *{again}*",
                _not_promised(
                    declaration, "that we learn by ourselves what became of a lost answer"
                ),
            )
        case _:
            assert_never(declaration.capability)


def _told_of_lookup(declaration: Declaration, asked: str) -> Told:
    name, done = declaration.name, _done(declaration.kind)
    lag = _spelled(declaration.lookup_lag)
    kept = declaration.lookup_retention
    searched = "can be searched by our reference at once"
    if declaration.lookup_lag:
        searched = f"can be searched by our reference after about {lag}"
    card = f"{name}: {done} at most once; {searched}; not finding it proves nothing."
    if declaration.guard is Guard.CHECKED_ONLY:
        card = (
            f"{name}: checked, not guarded: a change in the last moment is run over; a lost answer "
            "is looked up by our mark, and not finding it proves nothing."
        )
    if declaration.rehearses:
        card = f"{name}: mail is checked and never sent."
    return Told(
        card,
        f"lag: {lag or 'none'}" + ("" if kept is None else f"; kept {_spelled(kept)}"),
        f"searched for after the lag, at most {MOST_LOOKUPS} times; found = {done}; not found "
        f"proves nothing, and in the end {asked}",
        f"{done} at most once, unless a person says *send again*; what the search finds is settled",
        _not_promised(declaration, "that what the search does not find was not accepted"),
    )


def guard(declaration: Declaration) -> str:
    """Say in one sentence what keeps a change of the last moment from being run over."""
    change = "reopening" if declaration.kind is EffectKind.TICKET_REOPEN else "close"
    match declaration.guard:
        case Guard.NOTHING_TO_GUARD:
            return f"{declaration.name}: there is nothing that could change."
        case Guard.LOCKED:
            return f"{declaration.name}: the ticket is locked while its version is compared."
        case Guard.COMPARED:
            return (
                f"{declaration.name} refuses the {change} if the ticket has changed since; "
                f"a change within {_spelled(declaration.version_resolution)} of the last one can "
                "slip through."
            )
        case Guard.CHECKED_ONLY:
            return (
                f"{declaration.name}: checked, not guarded: a change in the last moment is not "
                "stopped."
            )
        case _:
            assert_never(declaration.guard)


def _not_promised(declaration: Declaration, first: str) -> str:
    lacking = [first]
    if declaration.guard is Guard.CHECKED_ONLY:
        lacking.append("that a change between our reading and our request is not run over")
    match declaration.notices:
        case Notices.NEVER:
            pass
        case Notices.ALWAYS:
            lacking.append("that nobody else is told: it mails about every close by itself")
        case Notices.AS_SET:
            lacking.append(
                "that it mails nobody about the close by itself: a setting has to say so"
            )
        case _:
            assert_never(declaration.notices)
    return "; ".join(lacking)


def _done(kind: EffectKind) -> str:
    match kind:
        case EffectKind.EMAIL_SEND:
            return "sent"
        case EffectKind.TICKET_REOPEN:
            return "opened again"
        case EffectKind.TICKET_NOTE | EffectKind.TICKET_CLOSE:
            return "closed"
        case EffectKind.BUDGET_RAISE:
            return "raised"
        case EffectKind.TOOL_CALL:
            return "called"
        case _:
            assert_never(kind)


def _resolution(declaration: Declaration) -> str:
    within = _spelled(declaration.version_resolution)
    return f", to within {within}" if within else ""


def _spelled(duration: timedelta | None) -> str:
    """Spell a duration in the largest unit that expresses it exactly; empty where there is none."""
    seconds = 0.0 if duration is None else duration.total_seconds()
    for unit, name, least in ((86_400, "days", 2), (3_600, "h", 1), (60, "minutes", 2)):
        if seconds >= unit * least and seconds % unit == 0:
            return f"{seconds / unit:g} {name}"
    return f"{seconds:g} s" if seconds else ""
