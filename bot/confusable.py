"""Letters that pass for others in addresses: which ones, and how an address is really spelt.

Only what looks like a domain or a mail address is judged; a word of prose may mix scripts. Pure.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

_LATIN = "LATIN"
# Written together in Japanese, Korean and Chinese, also with Latin (UTS 39, highly restrictive).
_EAST_ASIAN = frozenset(
    {"CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "HANGUL", "BOPOMOFO", "IDEOGRAPHIC"}
)
# Cyrillic, Greek and Armenian letters that most fonts draw like a Latin one.
_LATIN_TWINS = frozenset("аеорсухіјѕһԁԛԝӏвкмнтгԍүοναιρυτκνωօսոցհ")

_WORD = re.compile(r"\S+")
# The wide forms of full stop and @ are read as the ordinary ones.
_ADDRESS_LIKE = re.compile(r"\w[.@\u3002\uff0e\uff20\uff61]\w|//\w")
_LABEL = re.compile(r"[\w-]+")


def posing_letters(text: str) -> Iterator[int]:
    """Yield the position of each letter that stands in an address to look like another.

    These are the non-ASCII letters of a label that mixes scripts, and of a label that is made of
    nothing but twins of Latin letters.
    """
    for start, label in _labels(text):
        letters = [c for c in label if not c.isascii() and c.isalpha()]
        if letters and (_mixes_scripts(label) or _all_twins(label)):
            for offset, character in enumerate(label):
                if not character.isascii() and character.isalpha():
                    yield start + offset


def ascii_form(address: str) -> str:
    """Spell every label of an address or domain that is not ASCII in punycode (RFC 3492)."""
    return _LABEL.sub(lambda found: _punycode(found.group()), address)


def foreign_addresses(text: str) -> Iterator[str]:
    """Yield each word that looks like an address and has a label that is not plain ASCII."""
    for word in _WORD.finditer(text):
        if word.group().isascii() or not _ADDRESS_LIKE.search(word.group()):
            continue
        host = word.group().rsplit("@", 1)[-1]
        if any(not label.isascii() for label in _LABEL.findall(host)):
            yield word.group().strip(".,;:!?()[]<>\"'")


def _labels(text: str) -> Iterator[tuple[int, str]]:
    if text.isascii():
        return
    for word in _WORD.finditer(text):
        if word.group().isascii() or not _ADDRESS_LIKE.search(word.group()):
            continue
        for label in _LABEL.finditer(word.group()):
            if not label.group().isascii():
                yield word.start() + label.start(), label.group()


def _mixes_scripts(label: str) -> bool:
    scripts = {_script(c) for c in label if c.isalpha()}
    if scripts & _EAST_ASIAN:
        return not scripts <= _EAST_ASIAN | {_LATIN}
    return len(scripts) > 1


def _all_twins(label: str) -> bool:
    return all(c.casefold() in _LATIN_TWINS for c in label if c.isalpha())


def _script(character: str) -> str:
    """Name a letter's script by the first word of its Unicode name."""
    return unicodedata.name(character, "UNNAMED").split(" ", 1)[0].split("-", 1)[0]


def _punycode(label: str) -> str:
    if label.isascii():
        return label
    return "xn--" + label.lower().encode("punycode", "replace").decode("ascii")
