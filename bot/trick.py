"""What a single character could do to a reader if it were shown as it is. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from enum import StrEnum

OPENING = "⟦"
CLOSING = "⟧"


class Trick(StrEnum):
    """Why a character is written out."""

    CONTROL = "control character"
    BIDI = "changes the direction of text"
    ZERO_WIDTH = "takes no space"
    TAG = "invisible tag"
    VARIATION = "changes how the character before it looks"
    JOINER = "shapes the letters or the emoji beside it"
    SOFT_HYPHEN = "invisible hyphen"
    SPACE = "looks like a space"
    SEPARATOR = "breaks the line"
    SURROGATE = "half of a character"
    UNASSIGNED = "has no agreed look"
    STACKED = "stacked mark"
    LOOSE_MARK = "mark without a letter, drawn over what stands beside it"
    CONFUSABLE = "looks like another letter"
    GAP = "leaves a gap"
    BLANK_LINES = "blank lines, which push what follows out of sight"
    BRACKET = "would look like one of these escapes"


ORDINARY = frozenset({Trick.JOINER, Trick.SPACE, Trick.GAP})
"""Written out as well, since they cannot be told by their look, but honest text is full of them."""

_NAMES: Mapping[int, str] = {
    0x00: "NULL",
    0x09: "TAB",
    0x0A: "LINE FEED",
    0x0D: "CARRIAGE RETURN",
    0x1B: "ESCAPE",
    0x7F: "DELETE",
    0x85: "NEXT LINE",
}
"""Controls that have no name in Unicode's own table."""

_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
# Letters, marks and signs that draw nothing: fillers, the grapheme joiner, the blank braille
# pattern, the null note head.
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\U0001d159")
# The wide space of East Asian text is as visible as an ordinary one.
_ORDINARY_SPACES = frozenset(" \u3000")
# Our own bracket, and the ones that most fonts draw alike.
_BRACKETS = frozenset("⟦〚⟬⦗⟪⦃")


def name_of(code: int) -> str:
    """Spell a character for people: ``U+202E RIGHT-TO-LEFT OVERRIDE``."""
    name = _NAMES.get(code) or unicodedata.name(chr(code), "")
    return f"U+{code:04X} {name}".rstrip()


def trick_of(character: str, *, one_line: bool) -> Trick | None:
    """Classify one character on its own; ``None`` means that it may be shown as it is.

    ``one_line`` counts a newline and a tab among the controls.
    """
    if " " <= character <= "~":
        return None
    if character in _BRACKETS:
        return Trick.BRACKET
    if character in "\n\t":
        return Trick.CONTROL if one_line else None
    if character in _BIDI:
        return Trick.BIDI
    if character == "\u00ad":
        return Trick.SOFT_HYPHEN
    if "\U000e0000" <= character <= "\U000e007f":
        return Trick.TAG
    if is_variation(character):
        return Trick.VARIATION
    if character in _BLANK:
        return Trick.ZERO_WIDTH
    return _by_category(character)


def is_mark(character: str) -> bool:
    """Tell whether a character is drawn over or under the one before it."""
    return unicodedata.category(character) in {"Mn", "Me"}


def is_variation(character: str) -> bool:
    """Tell whether a character chooses a look for the one before it."""
    return (
        "\ufe00" <= character <= "\ufe0f"
        or "\U000e0100" <= character <= "\U000e01ef"
        or character in "\u180b\u180c\u180d\u180f"
    )


def _by_category(character: str) -> Trick | None:
    match unicodedata.category(character):
        case "Cc":
            return Trick.CONTROL
        case "Cf":
            return Trick.ZERO_WIDTH
        case "Zl" | "Zp":
            return Trick.SEPARATOR
        case "Zs":
            return None if character in _ORDINARY_SPACES else Trick.SPACE
        case "Cs":
            return Trick.SURROGATE
        case "Co" | "Cn":
            return Trick.UNASSIGNED
        case _:
            return None
