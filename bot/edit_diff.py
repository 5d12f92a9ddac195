"""What one revision of an email says otherwise than the one before, line by line.

Nothing is summed up: every line that went and every line that came is there, character for
character, with what cannot be told by its look made visible. Lines that stayed are there where they
show the place, and counted where they do not. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum

from bot.card_email import email_view
from bot.trick import CLOSING, OPENING
from bot.visible import EMPTY, reveal
from executor.domain.payloads import JsonObject

CONTEXT = 2
"""Lines that stayed, on either side of a change."""

_MOST_COMPARED = 2_000
"""Lines on either side between which pairs are looked for; beyond it all went and all came."""

_NOT_WRITTEN = frozenset({"Message-ID"})
"""Fields that nobody writes: they follow from the others."""


class Fate(StrEnum):
    """What became of a line; the value is what stands before it."""

    STAYED = " "
    WENT = "-"
    CAME = "+"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of either revision."""

    fate: Fate
    text: str


@dataclass(frozen=True, slots=True)
class EditDiff:
    """What changed, revealed: the fields of the header, and the lines of the text; ``""``: none."""

    fields: str
    text: str


def edit_diff(before: JsonObject, after: JsonObject) -> EditDiff:
    """Compare two emails that stand in intents (``EmailContent.as_json``)."""
    lines = line_diff(_text(before).split("\n"), _text(after).split("\n"))
    return EditDiff(
        "\n".join(_fields(before, after)),
        "\n".join(_shown(lines)) if any(line.fate is not Fate.STAYED for line in lines) else "",
    )


def line_diff(before: Sequence[str], after: Sequence[str]) -> list[Line]:
    """Tell which lines stayed, went and came, in an order that gives back both revisions."""
    start = _same_from_the_start(before, after)
    end = _same_from_the_start(before[start:][::-1], after[start:][::-1])
    went, came = before[start : len(before) - end], after[start : len(after) - end]
    found = [Line(Fate.STAYED, text) for text in before[:start]]
    if max(len(went), len(came)) > _MOST_COMPARED:
        found += [Line(Fate.WENT, text) for text in went]
        found += [Line(Fate.CAME, text) for text in came]
    else:
        # Frequent lines are not looked for in pairs, or a text of equal lines would take for ever.
        for tag, i, j, k, m in SequenceMatcher(None, went, came, autojunk=True).get_opcodes():
            if tag == "equal":
                found += [Line(Fate.STAYED, text) for text in went[i:j]]
                continue
            found += [Line(Fate.WENT, text) for text in went[i:j]]
            found += [Line(Fate.CAME, text) for text in came[k:m]]
    return found + [Line(Fate.STAYED, text) for text in before[len(before) - end :]]


def _same_from_the_start(one: Sequence[str], other: Sequence[str]) -> int:
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count


def _fields(before: JsonObject, after: JsonObject) -> list[str]:
    """List the rows of the header that changed, under the name of each field."""
    one, other = email_view(before).fields, email_view(after).fields
    names = [n for n in dict.fromkeys(name for name, _ in other) if n not in _NOT_WRITTEN]
    listed = []
    for name in names:
        rows = line_diff(
            [value for field, value in one if field == name],
            [value for field, value in other if field == name],
        )
        changed = [f"{row.fate.value} {row.text}" for row in rows if row.fate is not Fate.STAYED]
        listed += [f"{name}:", *changed] if changed else []
    return listed


def _shown(lines: Sequence[Line]) -> list[str]:
    """Write the lines near a change, and count the others."""
    near = {
        place + offset
        for place, line in enumerate(lines)
        if line.fate is not Fate.STAYED
        for offset in range(-CONTEXT, CONTEXT + 1)
    }
    shown: list[str] = []
    left_out = 0
    for place, line in enumerate([*lines, None]):
        if line is not None and place not in near:
            left_out += 1
            continue
        if left_out:
            plural = "" if left_out == 1 else "s"
            shown.append(f"{OPENING}{left_out} line{plural} as before{CLOSING}")
            left_out = 0
        if line is not None:
            shown.append(_written(line))
    return shown


def _written(line: Line) -> str:
    """Write a line; of one that changed, also the spaces that a reader would not see."""
    if line.fate is Fate.STAYED:
        return f"{line.fate.value} {reveal(line.text).text}".rstrip(" ")
    return f"{line.fate.value} {reveal(line.text, one_line=True).text or EMPTY}"


def _text(email: JsonObject) -> str:
    text = email.get("text")
    return text if isinstance(text, str) else ""
