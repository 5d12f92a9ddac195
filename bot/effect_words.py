"""How one part of an operation is spoken of: an email is sent, a ticket is closed.

Keyed by the kind as it is recorded, so that a kind that has no words yet is told plainly. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EffectWords:
    """The words for one kind of effect.

    ``title`` says what is asked for, with room for what it is about; ``again`` what a person can
    ask to have done once more, ``seen`` what somebody has to have seen to say that it was done,
    ``twice`` what happens if both the first one and the repeat arrive.
    """

    title: str
    subject: str
    done: str
    again: str
    seen: str
    twice: str


_WORDS: Mapping[str, EffectWords] = {
    "email.send": EffectWords(
        "send one email",
        "The email",
        "sent",
        "send again",
        "that it arrived, or stands in the provider's log",
        "the customer gets it twice",
    ),
    "ticket.close": EffectWords(
        "close ticket {ticket}",
        "The ticket",
        "closed",
        "try again",
        "it closed at the desk",
        "the desk is told twice to close it",
    ),
    "ticket.reopen": EffectWords(
        "open ticket {ticket} again",
        "The ticket",
        "opened again",
        "try again",
        "it open at the desk",
        "the desk is told twice to open it",
    ),
    "ticket.note": EffectWords(
        "add a note to ticket {ticket}",
        "The note",
        "added",
        "try again",
        "it on the ticket",
        "it stands on the ticket twice",
    ),
    "budget.raise": EffectWords(
        "raise the limit of {limit}",
        "The limit",
        "raised",
        "try again",
        "it raised",
        "it is raised twice",
    ),
    "tool.call": EffectWords(
        "call {tool}",
        "The tool",
        "called",
        "call again",
        "what it does",
        "it is called twice",
    ),
}
_PLAIN = EffectWords(
    "do one thing outside", "It", "done", "try again", "it done", "it is done twice"
)


def words_for(kind: str) -> EffectWords:
    """Return the words for a kind of effect."""
    return _WORDS.get(kind, _PLAIN)
