"""What somebody typed after ``/signoff grants`` and ``/signoff delegate``. Pure.

A person is a mention that Slack made; times are left as they were typed, for their meaning depends
on the tenant's clock. Options may be written with dashes as at the command line, and clients make
one long dash of two.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from bot.typed_text import USER_MENTION, as_typed
from executor.domain.grant import EVERYTHING

QUOTES = "\"'`“”„‟«»‘’\u201a\u201b"
_DASHES = "-–—"
_WORDS = re.compile(r"<[^<>]*>|\S+")
_NUMBER = re.compile(r"(?:grant[_ -]?|#)?(\d{1,18})[.,;!]*", re.IGNORECASE)
_USER_ID = re.compile(r"@?([UW](?=[A-Z]*\d)[A-Z0-9]{5,20})")


class Unclear(Enum):
    """What could not be understood."""

    GIVE = "give"
    DELEGATE = "delegate"
    REVOKE = "revoke"
    PERSON = "person"
    WORDS = "words"


@dataclass(frozen=True, slots=True)
class ListGrants:
    """List grants; ``past``: those that are over as well."""

    past: bool = False


@dataclass(frozen=True, slots=True)
class GiveRole:
    """Give a role; times are as they were typed, people are Slack user ids.

    ``is_own``: the role is one's own, and is passed on.
    """

    user: str
    role: str
    resource: str = EVERYTHING
    begins: str | None = None
    ends: str | None = None
    lasts: str | None = None
    behalf: str | None = None
    is_own: bool = False


@dataclass(frozen=True, slots=True)
class RevokeGrant:
    """Take a grant back."""

    number: int


@dataclass(frozen=True, slots=True)
class UnclearGrant:
    """It could not be understood; nothing of it is repeated."""

    what: Unclear


GrantCommand = ListGrants | GiveRole | RevokeGrant | UnclearGrant


def parse_grants(rest: str) -> GrantCommand:
    """Read what follows ``grants``."""
    words = _words(rest)
    verb = _plain(words[0]) if words else "list"
    match verb:
        case "list" | "show" | "mine" | "all" | "past":
            return ListGrants(past=any(_plain(w.lstrip(_DASHES)) == "past" for w in words))
        case "give" | "add":
            return _role_given(words[1:], Unclear.GIVE)
        case "revoke" | "remove":
            number = _NUMBER.fullmatch(_unquoted(" ".join(words[1:])))
            return RevokeGrant(int(number[1])) if number else UnclearGrant(Unclear.REVOKE)
        case _ if _user(words[0]) is not None:
            return _role_given(words, Unclear.GIVE)
        case _:
            return UnclearGrant(Unclear.GIVE)


def parse_delegation(rest: str) -> GrantCommand:
    """Read what follows ``delegate``."""
    return _role_given(_words(rest), Unclear.DELEGATE)


def _role_given(words: Sequence[str], unclear: Unclear) -> GrantCommand:
    """Read whom, which role, and then its options in any order."""
    if len(words) < 2:
        return UnclearGrant(unclear)
    user, role = _user(words[0]), _plain(words[1])
    if user is None:
        return UnclearGrant(Unclear.PERSON)
    options = _options(words[2:])
    if options is None:
        return UnclearGrant(Unclear.WORDS)
    behalf = options.get("behalf")
    giver = None if behalf is None else _user(behalf)
    if behalf is not None and giver is None:
        return UnclearGrant(Unclear.PERSON)
    is_own = unclear is Unclear.DELEGATE
    if (is_own and giver) or ("ends" in options and "lasts" in options):
        return UnclearGrant(Unclear.WORDS)
    return GiveRole(
        user,
        role,
        options.get("resource", EVERYTHING),
        options.get("begins"),
        options.get("ends"),
        options.get("lasts"),
        giver,
        is_own,
    )


def _options(words: Sequence[str]) -> dict[str, str] | None:
    """Part words into options, each from its own word to the next; ``None``: some are left over."""
    found: dict[str, list[str]] = {}
    current: list[str] | None = None
    left = list(words)
    while left:
        name, used = _option(left)
        if name is not None:
            if name in found:
                return None
            current = found[name] = []
        elif current is None:
            return None
        else:
            current.append(left[0])
        del left[:used]
    options = {name: " ".join(said) for name, said in found.items()}
    options |= {n: _unquoted(as_typed(said)) for n, said in options.items() if n != "behalf"}
    return options if all(options.values()) else None


def _option(words: Sequence[str]) -> tuple[str | None, int]:
    """Say which option begins here, and how many words name it."""
    plain = [_plain(word.lstrip(_DASHES)) for word in words[:3]]
    if plain in (["on", "behalf", "of"], ["in", "behalf", "of"]):
        return "behalf", 3
    match plain[0]:
        case "on":
            return "resource", 1
        case "on-behalf-of":
            return "behalf", 1
        case "from" | "starting":
            return "begins", 1
        case "until" | "till":
            return "ends", 1
        case "for":
            return "lasts", 1
        case _:
            return None, 1


def _words(text: str) -> list[str]:
    return [word for found in _WORDS.findall(text) if (word := found.strip(QUOTES))]


def _plain(word: str) -> str:
    return _unquoted(as_typed(word)).casefold()


def _unquoted(text: str) -> str:
    return text.strip().strip(QUOTES).strip()


def _user(word: str) -> str | None:
    """Read a mention, or a user id that was typed out; a bare name could be anybody's."""
    found = USER_MENTION.fullmatch(word) or _USER_ID.fullmatch(word)
    return None if found is None else found[1]
