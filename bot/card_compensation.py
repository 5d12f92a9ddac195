"""What a card says about opening a ticket again whose closure email was not sent.

On the reopening: what it would undo, and why. On the closing: what was asked for, and how that
ended. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

from bot.card_parts import Item, Literal, Words, excerpt, one_line, paragraph
from bot.reason_text import sentence
from bot.visible import EMPTY, END, reveal
from executor.domain.compensation import LEFT_BECAUSE
from executor.domain.effect import EffectStatus
from executor.domain.ids import operation_label
from executor.domain.operation import OperationStatus
from executor.domain.transition import Reason
from executor.engine.card_record import OperationRecord, ReopeningRecord, UndoneRecord

NOT_UNDONE = "Nobody's later change is undone: who wants the ticket open opens it at the desk."
"""What is said where the ticket has moved since we closed it."""

MOST_RECIPIENTS = 3
"""Addresses of the email that was not sent which a card names."""

_LONGEST_FIELD = 120
_LONGEST_NOTE = 300


@dataclass(frozen=True, slots=True)
class Verbs:
    """What the two buttons of a decision say, and the question before a yes."""

    approve: str
    reject: str
    question: str
    why_not: str


DECIDE = Verbs(
    "Approve",
    "Reject",
    "Approve exactly this?",
    "The agent reads this and may propose something better.",
)
"""For everything that an agent proposes."""

_REOPEN = Verbs(
    "Reopen",
    "Leave it closed",
    "Open the ticket again?",
    "It is kept with the record of the ticket's closing.",
)


_RAISE = Verbs(
    "Raise the limit",
    "Do not raise it",
    "Raise this limit?",
    "It stays on this card.",
)


def verbs_of(record: OperationRecord) -> Verbs:
    """Return the words of the decision about this record."""
    if record.raising is not None:
        return _RAISE
    return DECIDE if record.undoes is None else _REOPEN


def undone_of(record: OperationRecord, *, whole: bool = True) -> tuple[Item, ...]:
    """Say what a reopening would undo, and exactly what it does; empty for all else.

    Without ``whole``, long fields and notes are shortened.
    """
    undone = record.undoes
    if undone is None:
        return ()
    why = "" if undone.reason is None else sentence(undone.reason, {"effect": "email.send"})
    closing = operation_label(undone.number)
    return (
        paragraph(
            Words(f"It undoes a part of {closing}. ", bold=True),
            f"{closing} closed the ticket at version {record.target.version}, and this email of "
            f"it was not sent. {why}",
        ),
        Literal(_whole_email(undone) if whole else _email(undone)),
        paragraph(
            "Only the ticket is opened again, and only if nobody has changed it since. "
            "No email is sent. This note is left on the ticket:"
        ),
        Literal(reveal(undone.note).text + END) if whole else excerpt(undone.note, _LONGEST_NOTE),
    )


def what_follows(record: OperationRecord) -> str:
    """Say what becomes, or became, of a closing that was done in part; in our own words."""
    match record.status:
        case OperationStatus.COMPENSATED:
            return _opened_again(record)
        case OperationStatus.LEFT:
            return why_left(record)
        case _:
            return _asked(record.reopening)


def why_left(record: OperationRecord) -> str:
    """Say why nothing undoes what was done in part, where that was recorded."""
    why = record.detail.get(LEFT_BECAUSE)
    if not isinstance(why, Mapping):
        return ""
    try:
        return sentence(Reason(str(why.get("reason"))), why)
    except ValueError:
        return ""


def _opened_again(record: OperationRecord) -> str:
    reopening = record.reopening
    who = "Another operation" if reopening is None else operation_label(reopening.number)
    said = f"{who} has opened the ticket again."
    if all(effect.status is EffectStatus.APPLIED for effect in record.effects):
        # The proof came too late; what was done for the lack of it stands.
        return f"{said} That it was not sent has turned out wrong: somebody has to look."
    return said


def _asked(reopening: ReopeningRecord | None) -> str:
    if reopening is None:
        return "Next we look at the ticket, and then do what the policy says about it."
    label = operation_label(reopening.number)
    match reopening.status:
        case OperationStatus.AWAITING:
            return f"{label} asks whether the ticket is opened again. Decide on its card."
        case OperationStatus.APPROVED | OperationStatus.EXECUTING:
            return f"{label} is approved and opens the ticket again."
        case OperationStatus.UNKNOWN:
            return f"{label} may have opened the ticket again; that is not known yet."
        case (
            OperationStatus.SUCCEEDED
            | OperationStatus.FAILED
            | OperationStatus.PARTIAL
            | OperationStatus.REJECTED
            | OperationStatus.EXPIRED
            | OperationStatus.SUPERSEDED
            | OperationStatus.WITHDRAWN
            | OperationStatus.STALE
            | OperationStatus.COMPENSATED
            | OperationStatus.LEFT
        ):
            return f"{label} has ended, and so does this in a moment."
        case _:
            assert_never(reopening.status)


def _whole_email(undone: UndoneRecord) -> str:
    rows = [("To", to) for to in undone.to] + [("Subject", undone.subject)]
    return "\n".join(
        f"{name:<10} {reveal(value, one_line=True).text or EMPTY}" for name, value in rows
    )


def _email(undone: UndoneRecord) -> str:
    named = [one_line(to, _LONGEST_FIELD) for to in undone.to[:MOST_RECIPIENTS]]
    more = len(undone.to) - len(named)
    rows = [f"To         {to}" for to in named] + ([f"To         ({more} more)"] * (more > 0))
    return "\n".join((*rows, f"Subject    {one_line(undone.subject, _LONGEST_FIELD)}"))
