"""HTML that says what the text says: one fixed shape, made from the text and checked against it.

The shape is a body of paragraphs and line breaks. It knows no link, image, style or hidden element,
so there is nothing in it that the text does not show.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser

BODY_STYLE = "font-family: sans-serif; font-size: 15px; line-height: 1.5; color: #1d1c1d;"
"""The one style that the shape allows, on its body."""

_ALLOWED: dict[str, dict[str, frozenset[str] | None]] = {
    # Tag → attribute → its allowed values; None allows a short word such as a language tag.
    "html": {"lang": None, "dir": frozenset({"ltr", "rtl"})},
    "head": {},
    "meta": {"charset": frozenset({"utf-8"})},
    "body": {"style": frozenset({BODY_STYLE})},
    "p": {},
    "br": {},
}
_VOID = frozenset({"meta", "br"})
_WORD = re.compile(r"[A-Za-z0-9-]{1,35}")


def paragraphs(text: str) -> list[list[str]]:
    """Split a text into paragraphs, at blank lines, of lines without the spaces at their ends."""
    found: list[list[str]] = []
    inside = False
    for line in text.split("\n"):
        stripped = line.strip()
        if stripped and inside:
            found[-1].append(stripped)
        elif stripped:
            found.append([stripped])
        inside = bool(stripped)
    return found


def html_matches_text(text: str, html: str) -> bool:
    """Tell whether ``html`` has the fixed shape and says, line by line, what ``text`` says.

    Runs of spaces and of blank lines are layout and do not count, as no browser shows them.
    """
    if html.count("<") != html.count(">"):
        # The shape has neither in its text, and the parser needs ages for tags without an end.
        return False
    reader = _ShapeReader()
    try:
        reader.feed(html)
        reader.close()
    except AssertionError:
        # Python's parser gives up on marked sections that it does not know.
        return False
    if reader.broken or reader.open_tags:
        return False
    return _words(reader.paragraphs) == _words(paragraphs(text))


def _words(shown: list[list[str]]) -> list[list[list[str]]]:
    return [[line.split() for line in paragraph] for paragraph in shown]


class _ShapeReader(HTMLParser):
    """Reads the fixed shape; anything else makes it ``broken``."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.broken = False
        self.open_tags: list[str] = []
        self.paragraphs: list[list[str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        allowed = _ALLOWED.get(tag)
        if allowed is None or (tag == "br" and self.open_tags[-1:] != ["p"]):
            self.broken = True
            return
        for name, value in attrs:
            values = allowed.get(name, frozenset())
            fits = _WORD.fullmatch(value or "") if values is None else value in values
            if not fits:
                self.broken = True
        if tag == "p":
            self.paragraphs.append([""])
        if tag == "br":
            self.paragraphs[-1].append("")
        if tag not in _VOID:
            self.open_tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.open_tags[-1:] == [tag]:
            self.open_tags.pop()
        else:
            self.broken = True

    def handle_data(self, data: str) -> None:
        if self.open_tags == ["html", "body", "p"]:
            self.paragraphs[-1][-1] += data
        elif data.strip():
            self.broken = True

    def handle_decl(self, decl: str) -> None:
        self.broken = self.broken or decl.lower() != "doctype html"

    def handle_comment(self, data: str) -> None:
        self.broken = True

    def handle_pi(self, data: str) -> None:
        self.broken = True

    def unknown_decl(self, data: str) -> None:
        self.broken = True
