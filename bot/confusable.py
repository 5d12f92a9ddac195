"""Letters that pass for others: which ones, and how an address is really spelt.

In what looks like a domain or a mail address, every letter that could pass for another is found. In
prose only words are judged that mix Latin letters with their twins of other scripts; sentences may
mix scripts. Pure.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import idna

_LATIN = "LATIN"
# Written together in Japanese, Korean and Chinese, also with Latin (UTS 39, highly restrictive).
_EAST_ASIAN = frozenset(
    {"CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "HANGUL", "BOPOMOFO", "IDEOGRAPHIC"}
)
# Cyrillic, Greek and Armenian letters that most fonts draw like a Latin one.
_LATIN_TWINS = frozenset("аеорсухіјѕһԁԛԝӏвкмнтгԍүοναιρυτκνωօսոցհ")
# Those of them that nobody writes beside Latin letters within one word; Greek ones stand in
# formulas.
_TWINS_IN_PROSE = frozenset("аеорсухіјѕһԁԛԝӏвкмнтАЕОРСУХІЈЅҺԚԜӀВКМНТοΟօսհ")

_WORD = re.compile(r"\S+")
_LETTERS = re.compile(r"[^\W\d_]+")
# The wide forms of full stop and @ are read as the ordinary ones.
_DOTS = ".\uff0e\u2024"
_IDEOGRAPHIC_DOTS = "\u3002\uff61"
_AT = "@\uff20"
_JOINS = frozenset(_DOTS + _IDEOGRAPHIC_DOTS + _AT)
# Slashes, colons, dots and hyphens that are none.
_SIGN_TWINS = frozenset(
    "\u2044\u2215\u29f8\uff0f\u2236\ua789\uff1a\u2024\uff0e\u2010\u2011\u2212\u01c3"
)
_SIGNS = re.compile(rf"[{_DOTS}{_IDEOGRAPHIC_DOTS}{_AT}]|//")


@dataclass(frozen=True, slots=True)
class _Label:
    """One label of an address or domain, with the position where it starts in its word."""

    start: int
    text: str

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def posing_letters(text: str) -> Iterator[int]:
    """Yield the position of each letter that stands somewhere to look like another, in any order.

    In addresses these are the letters of other scripts in a label that mixes scripts, and in one
    that is made of nothing but twins of Latin letters beside a Latin label; and whatever browsers
    take for an ASCII letter. In other words they are the twins beside Latin letters. Signs that
    pass for those of an address count as well.
    """
    if text.isascii():
        return
    for word in _WORD.finditer(text):
        if not _SIGN_TWINS.isdisjoint(word.group()) and _is_in_address(word.group()):
            for offset, character in enumerate(word.group()):
                if character in _SIGN_TWINS:
                    yield word.start() + offset
    for start, labels in _addresses(text):
        has_latin = any(label.text.isascii() for label in labels)
        for label in labels:
            poses = _mixes_scripts(label.text) or (has_latin and _all_twins(label.text))
            for offset, character in enumerate(label.text):
                if not character.isascii() and (
                    (poses and character.isalpha()) or _passes_for_ascii(character)
                ):
                    yield start + label.start + offset
    for word in _LETTERS.finditer(text):
        if _poses_in_prose(word.group()):
            for offset, character in enumerate(word.group()):
                if not character.isascii():
                    yield word.start() + offset


def foreign_addresses(text: str) -> Iterator[str]:
    """Yield the host of each address that has a label which is not plain ASCII.

    A mail address is yielded with the part before its ``@``.
    """
    if text.isascii():
        return
    for start, labels in _addresses(text):
        if not all(label.text.isascii() for label in labels):
            yield text[start + labels[0].start : start + labels[-1].end]


def ascii_form(address: str) -> str:
    """Spell a host, or what follows the ``@``, as mail and browsers do (UTS 46, RFC 3492)."""
    local, at, host = address.replace("\uff20", "@").rpartition("@")
    try:
        spelt = idna.encode(idna.uts46_remap(host, std3_rules=False), strict=False).decode("ascii")
    except (idna.IDNAError, UnicodeError):
        # No host at all: what a program that does not ask would make of it.
        dotted = re.sub(f"[{_DOTS}{_IDEOGRAPHIC_DOTS}]", ".", host)
        spelt = ".".join(_punycode(label) for label in dotted.split("."))
    return f"{local}{at}{spelt}"


def scripts_of(address: str) -> tuple[str, ...]:
    """Name the scripts that the labels of an address mix: ``("Cyrillic", "Latin")``, or none."""
    labels = [text for text in re.split(rf"[{_DOTS}{_IDEOGRAPHIC_DOTS}{_AT}]", address) if text]
    mixing = [{_script(c) for c in label if c.isalpha()} for label in labels]
    found = set().union(*(s for s, label in zip(mixing, labels, strict=True) if _mixes(s)))
    return tuple(sorted(name.capitalize() for name in found))


def _addresses(text: str) -> Iterator[tuple[int, Sequence[_Label]]]:
    """Yield the labels of each address, and the position of the word that they are counted from.

    Those of a mail address include the part before its ``@``.
    """
    for word in _WORD.finditer(text):
        if not word.group().isascii() and _SIGNS.search(word.group()):
            for labels in _hosts(word.group()):
                yield word.start(), labels


def _is_in_address(word: str) -> bool:
    return "//" in word or any(True for _ in _hosts(word))


def _hosts(word: str) -> Iterator[Sequence[_Label]]:
    """Yield each run of labels with dots or an ``@`` between them that can be an address."""
    run: list[_Label] = []
    for label in _labels(word):
        if run and word[run[-1].end : label.start] not in _JOINS:
            if _is_address(word, run):
                yield run
            run = []
        run.append(label)
    if run and _is_address(word, run):
        yield run


def _is_address(word: str, labels: Sequence[_Label]) -> bool:
    start, end = labels[0].start, labels[-1].end
    after_scheme = word[max(0, start - 2) : start] == "//"
    return after_scheme or any(c in word[start:end] for c in _AT) or _is_domain(word, labels)


def _is_domain(word: str, labels: Sequence[_Label]) -> bool:
    """Tell a domain without a scheme from a full stop that no space follows."""
    if len(labels) < 2:
        return False
    top, dot = labels[-1].text, word[labels[-1].start - 1]
    if len(top) < 2 or not all(c.isalpha() or unicodedata.combining(c) for c in top):
        return False
    if top.isascii():
        return True
    # A top level mixes no scripts, and an ideographic full stop ends sentences without a space.
    return dot in _DOTS and not any(c.isascii() for c in top)


def _labels(word: str) -> Iterator[_Label]:
    begin: int | None = None
    for position, character in enumerate(word):
        if character.isalnum() or character in "-_" or unicodedata.category(character)[0] == "M":
            begin = position if begin is None else begin
        elif begin is not None:
            yield _Label(begin, word[begin:position])
            begin = None
    if begin is not None:
        yield _Label(begin, word[begin:])


def _poses_in_prose(word: str) -> bool:
    foreign = [c for c in word if not c.isascii()]
    return 0 < len(foreign) < len(word) and all(c in _TWINS_IN_PROSE for c in foreign)


def _mixes_scripts(label: str) -> bool:
    return _mixes({_script(c) for c in label if c.isalpha()})


def _mixes(scripts: set[str]) -> bool:
    if scripts & _EAST_ASIAN:
        return not scripts <= _EAST_ASIAN | {_LATIN}
    return len(scripts) > 1


def _all_twins(label: str) -> bool:
    letters = [c.casefold() for c in label if c.isalpha()]
    return bool(letters) and all(c in _LATIN_TWINS for c in letters)


def _passes_for_ascii(character: str) -> bool:
    """Tell what browsers map to ASCII, and the letters of phonetics that look like it."""
    if unicodedata.normalize("NFKC", character).isascii():
        return True
    return character in "ıȷ" or "\u0250" <= character <= "\u02af" or "ᴀ" <= character <= "ᶿ"


def _script(character: str) -> str:
    """Name a letter's script by the first word of its Unicode name."""
    return unicodedata.name(character, "UNNAMED").split(" ", 1)[0].split("-", 1)[0]


def _punycode(label: str) -> str:
    if label.isascii():
        return label
    return "xn--" + label.lower().encode("punycode", "replace").decode("ascii")
