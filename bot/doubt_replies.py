"""What people are told about a word of theirs: before they give it, and when it is recorded.

Like ``replies``: constants, numbers and our own names, nothing that somebody else wrote. Pure.
"""

from __future__ import annotations

from typing import assert_never

from bot.effect_words import words_for
from executor.domain.ids import operation_label
from executor.engine.word import Said

LONGEST_TITLE = 24
"""Characters of a modal's title and of its buttons (docs.slack.dev, modal views, 2026)."""


def label(said: Said, kind: str) -> str:
    """Name one word, as its button does."""
    words = words_for(kind)
    match said:
        case Said.SENT:
            return f"It was {words.done}"
        case Said.NOT_SENT:
            return f"It was not {words.done}"
        case Said.SEND_AGAIN:
            return f"It was not {words.done}: {words.again}"
        case Said.LEAVE:
            return "Leave it"
        case _:
            assert_never(said)


def short_label(said: Said, kind: str) -> str:
    """Name one word in at most ``LONGEST_TITLE`` characters."""
    if said is Said.SEND_AGAIN:
        again = words_for(kind).again
        return again[:1].upper() + again[1:]
    return label(said, kind)


def consequence(said: Said, kind: str) -> str:
    """Say what a word will do; what *send again* needs and risks is said beside it."""
    words = words_for(kind)
    it = words.subject[:1].lower() + words.subject[1:]
    match said:
        case Said.SENT:
            return (
                f"It is recorded, on your word, that {it} was {words.done}. "
                f"Say it only if you have seen {words.seen}."
            )
        case Said.NOT_SENT:
            return (
                f"It is recorded, on your word, that {it} was not {words.done}, and nothing more "
                "is done. Say it only if you have looked."
            )
        case Said.SEND_AGAIN:
            return (
                f"It is recorded, on your word, that {it} was not {words.done}, and you approve "
                "that exactly the same is tried once more. Everything is checked again before. "
            )
        case Said.LEAVE:
            return (
                "Nothing is done and it stays unknown. The card says that you looked and left it; "
                "what happened can still be said later."
            )
        case _:
            assert_never(said)


def word_given(said: Said, operation: int, kind: str, *, still_needed: int) -> str:
    """Confirm a person's word about something that may have been done; it is stored."""
    words = words_for(kind)
    it = f"{words.subject[:1].lower()}{words.subject[1:]} of {operation_label(operation)}"
    match said:
        case Said.SENT:
            return f"Recorded: you said that {it} was {words.done}."
        case Said.NOT_SENT:
            return f"Recorded: you said that {it} was not {words.done}. Nothing more is done."
        case Said.SEND_AGAIN if still_needed > 0:
            more = "1 more person has" if still_needed == 1 else f"{still_needed} more people have"
            return (
                f"Recorded: you said that {it} was not {words.done}, and to {words.again}. "
                f"{more} to say so before anything is done."
            )
        case Said.SEND_AGAIN:
            return (
                f"Recorded: you said that {it} was not {words.done}, and to {words.again}. "
                "The card will show it."
            )
        case Said.LEAVE:
            label_ = operation_label(operation)
            return f"Recorded: {label_} stays unknown, and its card says that you left it."
        case _:
            assert_never(said)
