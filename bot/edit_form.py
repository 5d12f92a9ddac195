"""The form in which a person edits an email: its fields as text, and what was typed read back.

A long text stands in several inputs. It is cut where nothing can get lost if Slack drops the space
around what is typed: the line breaks at a cut are carried beside the form, and between two words of
one long line none is cut. What is submitted is taken as it is; the next card shows it. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote_plus

from bot.card_content import title_of
from bot.card_parts import length
from bot.edit_origin import LONGEST_JOIN, MOST_JOINS
from bot.ingress.requests import LARGEST_BODY_BYTES
from executor.domain.closing_draft import ClosingDraft, draft_of
from executor.domain.mail_text import LONGEST_SUBJECT
from executor.domain.payloads import JsonValue
from executor.engine.card_record import OperationRecord

LONGEST_INPUT = 3_000
"""Characters of one input (docs.slack.dev, plain-text input element, 2026)."""

MOST_PARTS = MOST_JOINS + 1

TO_BLOCK, CC_BLOCK, SUBJECT_BLOCK = "to", "cc", "subject"
INPUT = "text"

_ROOMY = 2_000
"""Characters that a part begins with where there are parts enough, so that more can be typed."""

_LARGEST_SUBMISSION = LARGEST_BODY_BYTES * 3 // 4
"""Bytes that the text may take in what Slack sends back, twice, with room to type."""

_LONGEST_ERROR = 300


@dataclass(frozen=True, slots=True)
class EditForm:
    """Everything that the template of the form puts into blocks; ``joins`` is as in the origin."""

    title: str
    number: int
    to: str
    cc: str
    subject: str
    parts: tuple[str, ...]
    joins: tuple[int, ...]
    longest_subject: int = LONGEST_SUBJECT
    longest: int = LONGEST_INPUT

    def label_of(self, part: int) -> str:
        """Name one part of the text."""
        several = len(self.parts) > 1
        return f"Text, part {part + 1} of {len(self.parts)}" if several else "Text"


def edit_form(record: OperationRecord) -> EditForm | None:
    """Make the form of an email that waits; ``None``: it is too long to be edited in Slack."""
    if record.email is None:
        return None
    draft = draft_of(record.email)
    to, cc = "\n".join(draft.to), "\n".join(draft.cc)
    cut = split_text(draft.text.removesuffix("\n"))
    fits = max(map(length, (to, cc, draft.subject))) <= LONGEST_INPUT
    if cut is None or not fits or _bytes_sent_back(draft.text) > _LARGEST_SUBMISSION:
        return None
    return EditForm(title_of(record), record.number, to, cc, draft.subject, *cut)


def text_block(part: int) -> str:
    """Name the block of one part of the text."""
    return f"text_{part}"


def read_draft(typed: Callable[[str], str], joins: Sequence[int]) -> ClosingDraft:
    """Read what was submitted; ``typed`` tells what stands in the input of a block."""
    text = typed(text_block(0))
    for part, breaks in enumerate(joins, start=1):
        text += "\n" * breaks + typed(text_block(part))
    return ClosingDraft(
        _addresses(typed(TO_BLOCK)), _addresses(typed(CC_BLOCK)), typed(SUBJECT_BLOCK), text
    )


def errors_of(problems: JsonValue) -> dict[str, str]:
    """Put each problem of an edit under the input that it is about; see ``editing.edit``."""
    errors: dict[str, str] = {}
    for problem in problems if isinstance(problems, Sequence) else ():
        if not isinstance(problem, dict):
            continue
        field, _, index = str(problem.get("field")).partition("[")
        block = field if field in (TO_BLOCK, CC_BLOCK, SUBJECT_BLOCK) else text_block(0)
        line = index.removesuffix("]")
        where = f"Address {int(line) + 1}: " if line.isdecimal() else ""
        said = f"{where}{problem.get('problem')}. {problem.get('remedy')}"
        errors.setdefault(block, said[:1].upper() + said[1:_LONGEST_ERROR])
    return errors


def split_text(text: str) -> tuple[tuple[str, ...], tuple[int, ...]] | None:
    """Cut a text into parts, with the number of line breaks between them; ``None``: too many."""
    for longest in (_ROOMY, LONGEST_INPUT):
        parts, joins = _split(text, longest)
        if len(parts) <= MOST_PARTS and all(n <= LONGEST_JOIN for n in joins):
            return parts, joins
    return None


def _split(text: str, longest: int) -> tuple[tuple[str, ...], tuple[int, ...]]:
    parts, joins = [], []
    while length(text) > longest:
        head = _head(text, longest)
        rest = text[len(head) :].lstrip("\n")
        joins.append(len(text) - len(head) - len(rest))
        parts.append(head)
        text = rest
    return (*parts, text), tuple(joins)


def _head(text: str, longest: int) -> str:
    """Take what fits, up to the end of a line or, of a long line, to within a word."""
    most = longest
    while length(text[:most]) > longest:
        most -= 1
    for cut in _line_ends(text, most):
        head, rest = text[:cut].rstrip("\n"), text[cut:].lstrip("\n")
        if head and not head[-1].isspace() and not rest[:1].isspace():
            return head
    for cut in range(most, most // 2, -1):
        if not text[cut - 1].isspace() and not text[cut].isspace():
            return text[:cut]
    return text[:most]


def _line_ends(text: str, most: int) -> Iterator[int]:
    """Find the ends of lines in the second half of what fits, the last one first."""
    cut = text.rfind("\n", most // 2, most + 1)
    while cut > 0:
        yield cut
        cut = text.rfind("\n", most // 2, cut)


def _addresses(written: str) -> tuple[str, ...]:
    """Read one address a line; bare ones may also stand in one line with commas between them."""
    found: list[str] = []
    for line in written.splitlines():
        bare = '"' not in line and "<" not in line
        pieces = line.replace(";", ",").split(",") if bare else [line]
        found += [piece.strip() for piece in pieces if piece.strip()]
    return tuple(found)


def _bytes_sent_back(text: str) -> int:
    """Estimate what Slack sends with a submission: the text as it was and as it is, escaped."""
    return 2 * len(quote_plus(json.dumps(text)))
