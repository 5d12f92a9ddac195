"""Untrusted text as a person may read it: nothing in it hides, reorders or passes for another.

What is shown determines what was written, character for character: no two texts are revealed
alike. What cannot be seen becomes an escape, ``⟦U+202E⟧``; four or more of one in a row become
``⟦U+200B×12⟧``. The bracket that opens an escape is itself escaped, so that text which only looks
like an escape can be told from one. ``tests/support/card_reading.py`` reads it back. Pure.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from bot.confusable import posing_letters
from bot.trick import CLOSING, OPENING, ORDINARY, Trick, is_mark, name_of, trick_of

END = f"{OPENING}end{CLOSING}"
"""Stands after a text's last character: nothing follows, and no space there can get lost."""

EMPTY = f"{OPENING}empty{CLOSING}"
"""Stands for a text without any character."""

MOST_MARKS = 3
"""Combining marks in a row that writing systems need; more of them draw over other lines."""

MOST_BLANK_LINES = 4
"""Blank lines in a row that stand as they are; more of them are counted instead."""

_SHORTEST_RUN = 4
# Newlines around a counted run stay, so that the count stands on a line of its own.
_BLANK_LINES = re.compile(rf"(?<=\n)\n{{{MOST_BLANK_LINES},}}(?=\n)")
# A blank line that is not empty would not count as one; a table may need some space.
_GAPS = re.compile(r"[ \t\u3000]{41,}|(?<![^\n])[ \t\u3000]+(?![^\n])")
_GAPS_IN_LINE = re.compile(r"[ \u3000]{4,}|^[ \u3000]+|[ \u3000]+\Z")


@dataclass(frozen=True, slots=True)
class Finding:
    """One character that was made visible, and how often."""

    trick: Trick
    code: int
    count: int

    @property
    def name(self) -> str:
        """Spell the character for a warning: ``U+202E RIGHT-TO-LEFT OVERRIDE``."""
        return name_of(self.code)

    @property
    def deceives(self) -> bool:
        """Whether honest text seldom has it."""
        return self.trick not in ORDINARY


@dataclass(frozen=True, slots=True)
class Revealed:
    """Text as it may be shown, and what had to be made visible, most frequent first."""

    text: str
    findings: tuple[Finding, ...]


def reveal(text: str, *, one_line: bool = False) -> Revealed:
    """Make everything visible that hides or deceives; ``one_line`` escapes newline and tab too."""
    gaps = _GAPS_IN_LINE if one_line else _GAPS
    if text.isascii() and text.isprintable() and not gaps.search(text):
        return Revealed(text, ())
    of_character = {c: trick_of(c, one_line=one_line) for c in set(text)}
    tricks = [of_character[c] for c in text]
    _find_shaping(text, tricks)
    for found in gaps.finditer(text):
        tricks[found.start() : found.end()] = [
            trick or Trick.GAP for trick in tricks[found.start() : found.end()]
        ]
    if not one_line:
        for found in _BLANK_LINES.finditer(text):
            tricks[found.start() : found.end()] = [Trick.BLANK_LINES] * len(found.group())
    for position in posing_letters(text):
        tricks[position] = tricks[position] or Trick.CONFUSABLE
    _find_marks(text, tricks)
    escaped = [(position, trick) for position, trick in enumerate(tricks) if trick is not None]
    if not escaped:
        return Revealed(text, ())
    counts = Counter((trick, ord(text[position])) for position, trick in escaped)
    findings = (Finding(trick, code, n) for (trick, code), n in counts.most_common())
    return Revealed("".join(_written(text, [p for p, _ in escaped])), tuple(findings))


def merge(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Add up the findings of several texts."""
    counts: Counter[tuple[Trick, int]] = Counter()
    for finding in findings:
        counts[(finding.trick, finding.code)] += finding.count
    return tuple(Finding(trick, code, n) for (trick, code), n in counts.most_common())


def runs_right_to_left(text: str) -> bool:
    """Tell whether some of a text is read from right to left."""
    return not text.isascii() and any(
        unicodedata.bidirectional(c) in {"R", "AL", "AN"} for c in set(text)
    )


def _written(text: str, escaped: Sequence[int]) -> Iterator[str]:
    """Write a text with an escape for each of these positions, and for runs of one character."""
    done = 0
    for _, together in groupby(enumerate(escaped), lambda e: (e[1] - e[0], text[e[1]])):
        run = [position for _, position in together]
        yield text[done : run[0]]
        yield _escape(text[run[0]], len(run))
        done = run[-1] + 1
    yield text[done:]


def _escape(character: str, length: int) -> str:
    code = f"U+{ord(character):04X}"
    if length < _SHORTEST_RUN:
        return f"{OPENING}{code}{CLOSING}" * length
    return f"{OPENING}{code}×{length}{CLOSING}"


def _find_marks(text: str, tricks: list[Trick | None]) -> None:
    """Find the marks beyond ``MOST_MARKS`` in a row, and those that have no letter before them."""
    marks = {c for c in set(text) if is_mark(c)}
    if not marks:
        return
    run, has_base = 0, False
    for position, character in enumerate(text):
        if character not in marks or tricks[position] is not None:
            run, has_base = 0, tricks[position] is None and not character.isspace()
            continue
        run += 1
        if not has_base:
            tricks[position] = Trick.LOOSE_MARK
        elif run > MOST_MARKS:
            tricks[position] = Trick.STACKED


def _find_shaping(text: str, tricks: list[Trick | None]) -> None:
    """Find the joiners and the choices of a look that stand where scripts and emoji need them."""
    for found in _SHAPING.finditer(text):
        start, end = found.span()
        if start > 0 and _shapes(text[start - 1], found.group(), text[end : end + 1]):
            tricks[start:end] = [Trick.JOINER] * (end - start)


_EMOJI_LOOKS = frozenset("\ufe0e\ufe0f")
_SHAPING = re.compile("[\u200c\u200d]|\ufe0f\u20e3|[\ufe0e\ufe0f]")


def _shapes(before: str, shaping: str, after: str) -> bool:
    """Tell whether it shapes an emoji, or the letters of a word in a script that joins them."""
    if shaping[0] in _EMOJI_LOOKS:
        return _is_symbol(before) or before in "0123456789#*"
    if before in _EMOJI_LOOKS or _is_symbol(before):
        return after != "" and _is_symbol(after)
    # Arabic to Myanmar: the scripts whose letters change with what stands beside them.
    return after != "" and all(
        "\u0600" <= c <= "\u109f" and unicodedata.category(c)[0] in "LM" for c in (before, after)
    )


def _is_symbol(character: str) -> bool:
    return unicodedata.category(character) in {"So", "Sk", "Sm", "Po"} and not character.isascii()
