"""The few kinds of things that a card is made of, before they become Block Kit.

Whatever a model, a customer or a provider wrote is a ``Literal`` and nothing else: the templates
put it into ``rich_text_preformatted``, where no character means anything. ``Words`` are our own.
Lengths count UTF-16 code units, as Slack's SDKs do. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar

from bot.trick import CLOSING, OPENING, is_mark
from bot.visible import reveal
from executor.domain.ids import PrincipalId, TenantId, is_policy, slack_user

NOTHING = "–"
"""Stands where a field is empty."""

LEFT_OUT = f" {OPENING}… the middle is left out …{CLOSING} "
"""Stands where a line was cut. Untrusted text cannot spell it, since its bracket is escaped."""

LINES_LEFT_OUT = f"\n{OPENING}… the middle is left out …{CLOSING}\n"
"""Stands where a text of several lines was cut, in place of whole lines where they are short."""

GOES_ON = f"{OPENING}the line goes on{CLOSING}"
"""Stands at the end of a block where a long line was cut, for the next block takes a new line."""

_USER_ID = re.compile(r"[UW][A-Z0-9_]{1,30}")
_UNSAFE_IN_NAME = re.compile(r"[^A-Za-z0-9._:-]")
_LONGEST_PRINCIPAL = 80


@dataclass(frozen=True, slots=True)
class Words:
    """Our own words, with ids of our own making at most."""

    kind: ClassVar[str] = "words"
    text: str
    bold: bool = False


@dataclass(frozen=True, slots=True)
class Person:
    """A member of the card's own workspace, whom Slack shows by name."""

    kind: ClassVar[str] = "person"
    user_id: str


@dataclass(frozen=True, slots=True)
class UserGroup:
    """A user group of the workspace, whose members Slack tells of the message."""

    kind: ClassVar[str] = "group"
    group_id: str


@dataclass(frozen=True, slots=True)
class Moment:
    """A time of ours, which Slack shows in the reader's time zone."""

    kind: ClassVar[str] = "moment"
    timestamp: int
    fallback: str


@dataclass(frozen=True, slots=True)
class Link:
    """A link of ours: its address is made from settings and checked ids, its label is constant."""

    kind: ClassVar[str] = "link"
    url: str
    text: str


Piece = Words | Person | UserGroup | Moment | Link


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A run of pieces."""

    kind: ClassVar[str] = "paragraph"
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Literal:
    """Text that somebody else wrote, revealed; never empty."""

    kind: ClassVar[str] = "literal"
    text: str


Item = Paragraph | Literal


def paragraph(*pieces: Piece | str) -> Paragraph:
    """Put pieces together; a string is our own words, and an empty one is left out."""
    return Paragraph(tuple(Words(p) if isinstance(p, str) else p for p in pieces if p != ""))


def literal(text: str, limit: int) -> Literal:
    """Make an already revealed text of several lines fit into ``limit``."""
    return Literal(shorten(text, limit) or NOTHING)


def excerpt(text: str, limit: int) -> Literal:
    """Reveal as much of a text of several lines as fits into ``limit``."""
    return Literal(_excerpt(text, limit, one_line=False))


def is_cut(text: str) -> bool:
    """Tell whether something was left out of a text here."""
    return LEFT_OUT.strip() in text


def one_line(text: str, limit: int) -> str:
    """Reveal as much of a text as fits into ``limit``, as a single line; never empty."""
    return _excerpt(text, limit, one_line=True)


def person(principal: PrincipalId, tenant: TenantId) -> Piece:
    """Name a principal: a member of the tenant's workspace by a mention, all others by their id.

    The policy, which is the executor's own word, is called just that.
    """
    if is_policy(principal):
        return Words("the policy")
    user = slack_user(principal)
    if user is not None and user[0] == tenant and _USER_ID.fullmatch(user[1]):
        return Person(user[1])
    return Words(_UNSAFE_IN_NAME.sub("?", principal)[:_LONGEST_PRINCIPAL] or "somebody")


def people(principals: Sequence[PrincipalId], tenant: TenantId) -> tuple[Piece, ...]:
    """Name several principals, separated by commas."""
    pieces: list[Piece] = []
    for principal in principals:
        if pieces:
            pieces.append(Words(", "))
        pieces.append(person(principal, tenant))
    return tuple(pieces) or (Words("nobody"),)


def moment(at: datetime) -> Moment:
    """Show a time."""
    return Moment(max(0, int(at.timestamp())), stamp(at))


def stamp(at: datetime) -> str:
    """Spell a time where only text can stand."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def length(text: str) -> int:
    """Count UTF-16 code units."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def shorten(text: str, limit: int) -> str:
    """Keep the head and the tail of a revealed text, and say between that it is cut.

    No escape is cut, and a line only where it is long.
    """
    if length(text) <= limit:
        return text
    return _joined(text, text, limit, "\n" in text)


def _joined(head: str, tail: str, limit: int, lines: bool) -> str:
    """Join the head of one text and the tail of another, so that both fit into ``limit``."""
    left_out = LINES_LEFT_OUT if lines else LEFT_OUT
    room = max(0, limit - length(left_out))
    head, tail = _head(head, (room + 1) // 2), _tail(tail, room // 2)
    if lines:
        end, start = head.rfind("\n"), tail.find("\n") + 1
        head = head[:end] if end > len(head) // 2 else head
        tail = tail[start:] if 0 < start < len(tail) // 2 else tail
    return f"{head}{left_out}{tail}"


def chunks(text: str, limit: int) -> list[str]:
    """Cut a revealed text into pieces of at most ``limit``, at line ends where there are any.

    A piece that ends within a line says so with ``GOES_ON``.
    """
    pieces: list[str] = []
    while len(text) > limit or length(text) > limit:
        piece = _head(text, limit)
        line_end = piece.rfind("\n") + 1
        if line_end > limit // 2:
            piece = said = piece[:line_end]
        else:
            piece = _head(text, limit - length(GOES_ON))
            said = piece + GOES_ON
        pieces.append(said)
        text = text[len(piece) :]
    return [*pieces, text]


def _excerpt(text: str, limit: int, *, one_line: bool) -> str:
    if len(text) <= 4 * limit:
        return shorten(reveal(text, one_line=one_line).text, limit) or NOTHING
    # Of a long text, no more is looked at than can be shown.
    head = reveal(text[:limit], one_line=one_line).text
    tail = reveal(text[-limit:], one_line=one_line).text
    return _joined(head, tail, limit, "\n" in head + tail)


def _head(text: str, limit: int) -> str:
    head = text[:limit]
    while length(head) > limit:
        head = head[: len(head) - max(1, (length(head) - limit) // 2)]
    opening = head.rfind(OPENING)
    if opening > head.rfind(CLOSING):
        head = head[:opening]
    # A mark stays with its letter.
    end = len(head)
    while 0 < end < len(text) and is_mark(text[end]):
        end -= 1
    return head[:end] or head


def _tail(text: str, limit: int) -> str:
    tail = text[len(text) - limit :] if limit else ""
    while length(tail) > limit:
        tail = tail[max(1, (length(tail) - limit) // 2) :]
    start = len(text) - len(tail)
    opening = text.rfind(OPENING, 0, start)
    if opening > text.rfind(CLOSING, 0, start):
        tail = text[text.find(CLOSING, start) + 1 :]
    while tail and is_mark(tail[0]):
        tail = tail[1:]
    return tail
