"""Addresses: one string is one mailbox, normalised, and it says who it is.

A ``Mailbox`` made here survives every header and envelope: it holds no character that breaks a
line, hides or reorders text, its display name does not pose as another address, and its domain is
in the form that the envelope uses (IDNA 2008; UTS 46 maps case and width beforehand). The local
part is kept as written, since only its own host knows what it means (RFC 5321, 2.3.11).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

import idna

from executor.domain.email import Mailbox
from executor.domain.errors import InvalidContent

LONGEST_NAME = 200
"""Characters of the longest display name."""

LONGEST_LOCAL_PART = 64
"""Octets before the ``@`` (RFC 5321, 4.5.3.1.1)."""

LONGEST_ADDRESS = 254
"""Octets of a whole address: a path of 256 without its brackets (RFC 5321, 4.5.3.1.3)."""

MOST_MAILBOXES = 100
"""Mailboxes in one field; no server has to take more recipients (RFC 5321, 4.5.3.1.8)."""

_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~\u00a1-\U0010ffff-]+"
_DOT_ATOM = re.compile(rf"{_ATOM}(?:\.{_ATOM})*")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_WORD = r"[^\s@<>()\[\],;:\"]+"
_LOOKS_LIKE_ADDRESS = re.compile(rf"{_WORD}@{_WORD}|{_WORD}\s*@\s*{_WORD}\.{_WORD}")
_NOT_IN_PLAIN_NAME = frozenset('"<>@,;:\\()[]')

_HIDING_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
# Letters and marks that draw nothing: fillers, the grapheme joiner, the blank braille pattern.
_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")


def parse_mailbox(text: str, *, field: str) -> Mailbox:
    """Parse exactly one mailbox, ``pat@x.example`` or ``Pat <pat@x.example>``, and normalise it.

    Raises ``InvalidContent`` that names ``field`` for everything that is not exactly that; see the
    module docstring. Runs of spaces in a display name become one space.
    """
    _refuse_hidden(text, field)
    stripped = text.strip()
    if not stripped.endswith(">"):
        name, bare = "", stripped
        if "<" in stripped or ">" in stripped:
            raise _not_one(field, stripped)
    else:
        opening = stripped.rfind("<")
        if opening < 0:
            raise _not_one(field, stripped)
        name = _parse_name(stripped[:opening].strip(), field)
        bare = stripped[opening + 1 : -1]
    local, domain = _split(bare, field)
    ascii_domain, shown_domain = _normalise_domain(domain, field)
    mailbox = Mailbox(name, f"{local}@{shown_domain}", f"{local}@{ascii_domain}")
    if len(mailbox.ascii_address.encode()) > LONGEST_ADDRESS:
        raise InvalidContent(
            field,
            f"the address is longer than {LONGEST_ADDRESS} octets",
            "Use an address of ordinary length.",
        )
    _refuse_posing(mailbox, field)
    return mailbox


def parse_mailboxes(texts: Sequence[str], *, field: str) -> tuple[Mailbox, ...]:
    """Parse several mailboxes, one per string, and drop those whose address occurred before."""
    if len(texts) > MOST_MAILBOXES:
        raise InvalidContent(
            field,
            f"it names {len(texts)} mailboxes, the limit is {MOST_MAILBOXES}",
            "Name fewer recipients.",
        )
    parsed: dict[str, Mailbox] = {}
    for index, text in enumerate(texts):
        mailbox = parse_mailbox(text, field=f"{field}[{index}]")
        parsed.setdefault(mailbox.ascii_address, mailbox)
    return tuple(parsed.values())


def needs_smtputf8(mailbox: Mailbox) -> bool:
    """Tell whether only a server with SMTPUTF8 (RFC 6531) can take this mailbox."""
    return not mailbox.ascii_address.isascii()


def refuse_smtputf8(mailboxes: Sequence[tuple[str, Mailbox]]) -> None:
    """Refuse, by its field, the first mailbox that only a server with SMTPUTF8 can take."""
    for field, mailbox in mailboxes:
        if needs_smtputf8(mailbox):
            raise InvalidContent(
                field,
                f"{mailbox.address} has letters before the @ that this provider does not take",
                "Use an address in ASCII letters.",
            )


def _refuse_hidden(text: str, field: str) -> None:
    for position, character in enumerate(text):
        if unicodedata.category(character) in _HIDING_CATEGORIES or character in _INVISIBLE:
            raise InvalidContent(
                field,
                f"it holds a control or invisible character, U+{ord(character):04X} at {position}",
                "Write the address in visible characters on one line.",
            )


def _not_one(field: str, text: str) -> InvalidContent:
    return InvalidContent(
        field,
        f"{text[:80]!r} is not exactly one address",
        'Write one address per entry, as pat@x.example or "Pat" <pat@x.example>.',
    )


def _parse_name(phrase: str, field: str) -> str:
    """Read a display name that is either wholly quoted or plain words."""
    if not phrase:
        return ""
    quoted = _QUOTED.fullmatch(phrase)
    if quoted:
        name = re.sub(r"\\(.)", r"\1", quoted.group(1))
    elif _NOT_IN_PLAIN_NAME.isdisjoint(phrase):
        name = phrase
    else:
        raise InvalidContent(
            field,
            f"{phrase[:80]!r} before the address is not a name, or holds a second address",
            'Put a name with punctuation in quotes: "Neil, Pat" <pat@x.example>.',
        )
    name = " ".join(name.split())
    if "=?" in name and "?=" in name:
        raise InvalidContent(
            field, "the name is already encoded", "Write the name in plain characters."
        )
    if len(name) > LONGEST_NAME:
        raise InvalidContent(
            field, f"the name has more than {LONGEST_NAME} characters", "Shorten the name."
        )
    return name


def _split(bare: str, field: str) -> tuple[str, str]:
    """Split an address at its ``@`` and check the local part."""
    if bare.count("@") != 1:
        raise _not_one(field, bare)
    local, domain = bare.split("@")
    if not local:
        raise InvalidContent(field, "nothing stands before the @", "Write the whole address.")
    if not _DOT_ATOM.fullmatch(local) or not all(_may_be_in_local(c) for c in local):
        raise InvalidContent(
            field,
            f"{local[:80]!r} cannot stand before the @",
            "Use an address without spaces, quotes, commas or doubled dots.",
        )
    if not unicodedata.is_normalized("NFC", local):
        raise InvalidContent(
            field, "the part before the @ is not in normal form (NFC)", "Send it composed."
        )
    if len(local.encode()) > LONGEST_LOCAL_PART:
        raise InvalidContent(
            field,
            f"the part before the @ is longer than {LONGEST_LOCAL_PART} octets",
            "Use an address of ordinary length.",
        )
    return local, domain


def _may_be_in_local(character: str) -> bool:
    """Allow ASCII as the grammar does, and letters, marks and digits of other scripts."""
    return character.isascii() or unicodedata.category(character)[0] in "LMN"


def _normalise_domain(domain: str, field: str) -> tuple[str, str]:
    """Return a domain as the envelope uses it and as people read it."""
    try:
        ascii_domain = idna.encode(idna.uts46_remap(domain, std3_rules=True)).decode("ascii")
        shown = idna.decode(ascii_domain)
    except (idna.IDNAError, UnicodeError) as error:
        raise InvalidContent(
            field,
            f"{domain[:80]!r} is not the name of a domain ({error})",
            "Write a domain such as customer.example.",
        ) from error
    labels = ascii_domain.split(".")
    if len(labels) < 2 or not labels[-1] or labels[-1].isdigit():
        raise InvalidContent(
            field,
            f"{domain[:80]!r} is not a full domain name",
            "Write a domain with at least two parts, such as customer.example.",
        )
    return ascii_domain, shown


def _refuse_posing(mailbox: Mailbox, field: str) -> None:
    """Refuse a display name that shows an address other than the one that the mail goes to."""
    # NFKC turns the full-width and small @ into the one that readers take them for.
    shown = unicodedata.normalize("NFKC", mailbox.name)
    own = {mailbox.address.casefold(), mailbox.ascii_address.casefold()}
    for match in _LOOKS_LIKE_ADDRESS.finditer(shown):
        if "".join(match.group().split()).strip("'.`").casefold() not in own:
            raise InvalidContent(
                field,
                f"the name {mailbox.name[:80]!r} shows an address other than {mailbox.address}",
                "Use a name that is not an address.",
            )
