"""Secrets in text: what looks like one, what is known to be one, and how it is hidden.

A net and no proof: a secret that is split, encoded, or like nothing below passes. Pure.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from urllib.parse import urlsplit

from executor.domain.payloads import JsonValue, storable_text

HIDDEN = "[secret hidden]"
"""Stands where a secret stood; content that holds it is refused, for it is not what was written."""

_SHORTEST_WITH_DIGIT, _SHORTEST = 8, 16

_DIGIT = r"(?=[A-Za-z._-]{0,80}\d)"
_KINDS: Mapping[str, str] = {
    # docs.slack.dev, tokens: every kind begins with xox and a letter, or xapp.
    "a Slack token": rf"\bx(?:ox[a-z]|app)-{_DIGIT}[A-Za-z0-9-]{{6,}}(?:\.[A-Za-z0-9-]+)*",
    "a Slack address that is a key": r"https://hooks\.slack\.com/\w+/[^\s'\"<>]+",
    "an API key": rf"\b(?:sk|rk)[-_]{_DIGIT}[A-Za-z0-9_-]{{12,}}"
    rf"|\bre_{_DIGIT}[A-Za-z0-9_]{{16,}}|\bwhsec_[A-Za-z0-9+/=]{{16,}}|\bAIza[A-Za-z0-9_-]{{30,}}",
    "a code host's token": r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}"
    r"|glpat-[A-Za-z0-9_-]{20,})",
    "an access key": r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    "a bearer token": rf"(?i:\bbearer)\s+{_DIGIT}[A-Za-z0-9._~+/-]{{16,}}=*",
    "a signed token": r"\beyJ[A-Za-z0-9_-]{8,1000}\.eyJ[A-Za-z0-9_-]{8,2000}\.[A-Za-z0-9_-]+",
    "a private key": r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----"
    r"(?:.*?-----END [A-Z ]{0,30}PRIVATE KEY-----|.*)",
    "an address with a password": r"\b[A-Za-z][A-Za-z0-9+.-]{0,20}://[^\s/:@]{0,200}:[^\s/@]{1,200}@",
}
_LOOKS = re.compile("|".join(f"(?:{pattern})" for pattern in _KINDS.values()), re.DOTALL)
_SECRET_NAME = re.compile(
    r"(?:^|_)(?:TOKENS?|SECRETS?|KEYS?|PASS(?:WORD|WD)?|PASSWORDS?|CREDENTIALS?|AUTHORIZATION)(?:_|$)",
    re.IGNORECASE,
)


class Secrets:
    """Finds and hides secrets: what looks like one, and the values that are ``known`` to be."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        values = {value for value in known if _is_no_word(value)}
        self._known = sorted(values, key=lambda value: (-len(value), value))

    def __repr__(self) -> str:
        """Say how many are known, and none of them."""
        return f"{type(self).__name__}({len(self._known)} known)"

    def hide(self, text: str) -> str:
        """Put ``HIDDEN`` in the place of every secret.

        Characters that take no space do not part a secret: it would be whole again when copied.
        """
        found = _merged(self._spans(text))
        for start, end in reversed(found):
            text = f"{text[:start]}{HIDDEN}{text[end:]}"
        return text

    def hide_in(self, value: JsonValue) -> JsonValue:
        """Apply ``hide`` to every string and key of a JSON value."""
        if isinstance(value, str):
            return self.hide(value)
        if isinstance(value, Mapping):
            return {self.hide(key): self.hide_in(item) for key, item in value.items()}
        if isinstance(value, Sequence):
            return [self.hide_in(item) for item in value]
        return value

    def _spans(self, text: str) -> list[tuple[int, int]]:
        places = None if text.isascii() else [i for i, c in enumerate(text) if not _unseen(c)]
        plain = text if places is None else "".join(text[i] for i in places)
        spans = [found.span() for found in _LOOKS.finditer(plain)]
        for value in self._known:
            start = plain.find(value)
            while start != -1:
                spans.append((start, start + len(value)))
                start = plain.find(value, start + len(value))
        if places is None:
            return spans
        return [(places[start], places[end - 1] + 1) for start, end in spans]


LOOKS_ALONE = Secrets()
"""Knows no values, only what secrets look like."""


def as_kept(text: str, most: int) -> str:
    """Spell what somebody typed as it is recorded: without secrets, and no longer than ``most``."""
    return LOOKS_ALONE.hide(storable_text(text))[:most]


def is_tainted(text: str) -> bool:
    """Say whether a text holds a secret, or the trace of one that was hidden."""
    return HIDDEN in text or LOOKS_ALONE.hide(text) != text


def secrets_among(settings: Mapping[str, str], confided: Collection[str] = ()) -> frozenset[str]:
    """Name the values of settings that are secrets, by their names, and passwords in addresses.

    Of a list, and of a user with a password, each part counts. What is ``confided`` to others, such
    as to servers of tools, counts by whatever name.
    """
    found: set[str] = set()
    for name, value in settings.items():
        if name in confided or _SECRET_NAME.search(name):
            found |= {value.strip(), *re.split(r"[\s,]+", value)}
            found |= {part.partition(":")[2] for part in re.split(r"[\s,]+", value)}
        try:
            password = urlsplit(value).password if "://" in value else None
        except ValueError:
            password = None
        if password:
            found.add(password)
    return frozenset(value for value in found if _is_no_word(value))


def _is_no_word(value: str) -> bool:
    """Tell a secret from what may stand in any text: ``postgres`` is many a password."""
    has_digit = any(c.isdigit() for c in value)
    return len(value) >= (_SHORTEST_WITH_DIGIT if has_digit else _SHORTEST)


def _unseen(character: str) -> bool:
    return unicodedata.category(character) == "Cf"


def _merged(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
