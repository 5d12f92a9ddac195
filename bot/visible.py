"""Untrusted text as a person may read it: nothing in it hides, reorders or passes for another.

``conceal(reveal(text).text) == text`` for every string: what a reviewer reads determines what was
proposed, character for character. What cannot be seen becomes an escape, ``⟦U+202E⟧``; four or more
of one in a row become ``⟦U+200B×12⟧``. The bracket that opens an escape is itself escaped. Pure.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby

from bot.confusable import posing_letters

OPENING = "⟦"
CLOSING = "⟧"
END = "⟦end⟧"
"""Stands after a text's last character: nothing follows, and no space there can get lost."""

MOST_MARKS = 3
"""Combining marks in a row that writing systems need; more of them draw over other lines."""

_SHORTEST_RUN = 4
_ESCAPE = re.compile(r"⟦U\+([0-9A-F]{4,6})(?:×([0-9]{1,7}))?⟧")


class Trick(StrEnum):
    """What a character could do to a reader if it were left as it is."""

    CONTROL = "control character"
    BIDI = "changes the direction of text"
    ZERO_WIDTH = "takes no space"
    TAG = "invisible tag"
    VARIATION = "changes how the character before it looks"
    SOFT_HYPHEN = "invisible hyphen"
    SPACE = "looks like a space"
    SEPARATOR = "breaks the line"
    SURROGATE = "half of a character"
    UNASSIGNED = "has no agreed look"
    STACKED = "stacked mark"
    CONFUSABLE = "looks like another letter in an address"
    BRACKET = "opens an escape"


@dataclass(frozen=True, slots=True)
class Finding:
    """One character that was made visible, and how often."""

    trick: Trick
    code: int
    count: int

    @property
    def name(self) -> str:
        """Spell the character for a warning: ``U+202E RIGHT-TO-LEFT OVERRIDE``."""
        name = unicodedata.name(chr(self.code), "") if self.trick is not Trick.SURROGATE else ""
        return f"U+{self.code:04X} {name}".rstrip()


@dataclass(frozen=True, slots=True)
class Revealed:
    """Text as it may be shown, and what had to be made visible, most frequent first."""

    text: str
    findings: tuple[Finding, ...]

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The findings that a reader must be warned of: a bracket is no trick."""
        return tuple(f for f in self.findings if f.trick is not Trick.BRACKET)


def reveal(text: str, *, one_line: bool = False) -> Revealed:
    """Make everything visible that hides or deceives; ``one_line`` escapes newline and tab too."""
    if text.isascii() and text.isprintable():
        return Revealed(text, ())
    of_character = {c: _trick(c, one_line=one_line) for c in set(text)}
    tricks = [of_character[c] for c in text]
    for position in posing_letters(text):
        tricks[position] = tricks[position] or Trick.CONFUSABLE
    for position in _stacked(text):
        tricks[position] = tricks[position] or Trick.STACKED
    if not any(tricks):
        return Revealed(text, ())
    counts = Counter(
        (trick, ord(c)) for c, trick in zip(text, tricks, strict=True) if trick is not None
    )
    parts: list[str] = []
    for (character, trick), run in groupby(zip(text, tricks, strict=True)):
        length = sum(1 for _ in run)
        parts.append(character * length if trick is None else _escape(character, length))
    findings = (Finding(trick, code, n) for (trick, code), n in counts.most_common())
    return Revealed("".join(parts), tuple(findings))


def conceal(text: str) -> str:
    """Turn revealed text, with ``END`` or without, back into what it was made from."""
    return _ESCAPE.sub(
        lambda found: chr(int(found.group(1), 16)) * int(found.group(2) or 1),
        text.removesuffix(END),
    )


def merge(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Add up the findings of several texts."""
    counts: Counter[tuple[Trick, int]] = Counter()
    for finding in findings:
        counts[(finding.trick, finding.code)] += finding.count
    return tuple(Finding(trick, code, n) for (trick, code), n in counts.most_common())


def _escape(character: str, length: int) -> str:
    code = f"U+{ord(character):04X}"
    if length < _SHORTEST_RUN:
        return f"{OPENING}{code}{CLOSING}" * length
    return f"{OPENING}{code}×{length}{CLOSING}"


def _stacked(text: str) -> list[int]:
    """List the marks beyond ``MOST_MARKS`` in a row."""
    marks = {c for c in set(text) if unicodedata.category(c) in {"Mn", "Me"}}
    if not marks:
        return []
    stacked: list[int] = []
    run = 0
    for position, character in enumerate(text):
        run = run + 1 if character in marks else 0
        if run > MOST_MARKS:
            stacked.append(position)
    return stacked


_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
# Letters and marks that draw nothing: fillers, the grapheme joiner, the blank braille pattern.
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
_VARIATION = re.compile("[\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]")
# The wide space of East Asian text is as visible as an ordinary one.
_ORDINARY_SPACES = frozenset(" \u3000")


def _trick(character: str, *, one_line: bool) -> Trick | None:
    """Classify one character on its own; ``None`` means that it may be shown as it is."""
    if " " <= character <= "~":
        return None
    if character == OPENING:
        return Trick.BRACKET
    if character in "\n\t":
        return Trick.CONTROL if one_line else None
    if character in _BIDI:
        return Trick.BIDI
    if character == "\u00ad":
        return Trick.SOFT_HYPHEN
    if "\U000e0000" <= character <= "\U000e007f":
        return Trick.TAG
    if _VARIATION.match(character):
        return Trick.VARIATION
    if character in _BLANK:
        return Trick.ZERO_WIDTH
    return _trick_by_category(character)


def _trick_by_category(character: str) -> Trick | None:
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
