"""The bytes of an email: made once when it is proposed, and compared with what was delivered.

The same content gives the same bytes, in any process and under any Python version. They are the
whole message but its ``Date``, which is put in front at the first attempt. Blind copies are in the
envelope only. ``freeze`` reads its own bytes back and refuses content that they would not carry
unchanged, so whatever was frozen can be proved to be what was approved.
"""

from __future__ import annotations

import re
from binascii import Error as BinasciiError
from dataclasses import dataclass
from datetime import UTC, datetime
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message
from email.parser import BytesParser
from email.policy import compat32
from email.utils import format_datetime, getaddresses

from executor.domain.email import EmailContent, Mailbox
from executor.domain.errors import InvalidContent
from executor.domain.mail_encoding import (
    fold,
    phrase_words,
    transfer_encode,
    unstructured_words,
)
from executor.domain.mail_text import validate_body, validate_header, validate_subject
from executor.domain.payloads import digest

LONGEST_FROZEN_BODY = 1_000_000
"""Characters of the longest body that is frozen; the policy's own limit is far lower."""

_MESSAGE_ID = re.compile(r"<[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]+@[A-Za-z0-9.-]+>")
_LONGEST_MESSAGE_ID = 250
# What our bytes hold beside the approved fields, and what servers on the way add.
_STRUCTURE = frozenset({"mime-version", "content-type", "content-transfer-encoding", "date"})
_ADDED_ON_THE_WAY = frozenset(
    {"received", "return-path", "delivered-to", "authentication-results", "dkim-signature"}
)
_FIELDS = frozenset({"from", "to", "cc", "reply-to", "subject", "message-id"})

NamedAddress = tuple[str, str]
"""A display name and an address, as they stand in a header."""


@dataclass(frozen=True, slots=True)
class DeliveredEmail:
    """What a recipient's software reads from delivered bytes; line ends of bodies are LF.

    ``parts`` are the content types in order, ``headers`` everything beside the named fields and
    what carries the structure, ``repeated`` names that occur more than once and may not.
    """

    sender: tuple[NamedAddress, ...]
    to: tuple[NamedAddress, ...]
    cc: tuple[NamedAddress, ...]
    reply_to: tuple[NamedAddress, ...]
    subject: str
    text: str | None
    html: str | None
    message_id: str
    headers: tuple[tuple[str, str], ...]
    parts: tuple[str, ...]
    repeated: tuple[str, ...]


def freeze(content: EmailContent) -> bytes:
    """Make the whole MIME message of an email but its ``Date``, with CR LF line ends.

    Raises ``InvalidContent`` when a field could not be read back unchanged.
    """
    _validate(content)
    frozen = b"".join(_header_lines(content)) + _body(content)
    lost = differences(content, parse_delivered(frozen))
    if lost:
        raise InvalidContent(
            "email", f"it would not arrive as written ({'; '.join(lost)})", "Use plainer text."
        )
    return frozen


def with_date(frozen: bytes, date: datetime) -> bytes:
    """Put the ``Date`` of the first attempt in front of frozen bytes; ``date`` must be aware."""
    if date.tzinfo is None:
        raise ValueError("the date of an email needs a time zone")
    stamp = format_datetime(date.astimezone(UTC))
    return f"Date: {stamp}\r\n".encode("ascii") + frozen


def parse_delivered(mime: bytes) -> DeliveredEmail:
    """Read delivered bytes as a recipient's software would; never raises for what it reads."""
    message = BytesParser(policy=compat32).parsebytes(mime)
    headers = [(name, _unfold(value)) for name, value in message.raw_items()]
    names = [name.lower() for name, _ in headers]
    single = _FIELDS | _STRUCTURE | {"bcc", "sender"}
    bodies = {kind: _body_of(message, kind) for kind in ("text/plain", "text/html")}
    return DeliveredEmail(
        sender=_addresses(headers, "from"),
        to=_addresses(headers, "to"),
        cc=_addresses(headers, "cc"),
        reply_to=_addresses(headers, "reply-to"),
        subject=_decode(_first(headers, "subject")),
        text=bodies["text/plain"],
        html=bodies["text/html"],
        message_id=_first(headers, "message-id"),
        headers=tuple(
            (name, value) for name, value in headers if name.lower() not in _FIELDS | _STRUCTURE
        ),
        parts=tuple(part.get_content_type() for part in message.walk()),
        repeated=tuple(
            sorted({name for name in names if name in single and names.count(name) > 1})
        ),
    )


def differences(content: EmailContent, delivered: DeliveredEmail) -> list[str]:
    """Say field by field where delivered mail differs from what was approved; empty when nowhere.

    Bodies are compared under the line-end rule of ``mail_text``. Headers that servers add on the
    way are no difference; any other header that was not approved is one.
    """
    approved_parts: tuple[str, ...] = ("text/plain",)
    if content.html is not None:
        approved_parts = ("multipart/alternative", "text/plain", "text/html")
    reply_to = (content.reply_to,) if content.reply_to else ()
    compared: list[tuple[str, object, object]] = [
        ("from", _named((content.sender,)), delivered.sender),
        ("to", _named(content.to), delivered.to),
        ("cc", _named(content.cc), delivered.cc),
        ("reply-to", _named(reply_to), delivered.reply_to),
        ("subject", content.subject, delivered.subject),
        ("text", _unix(content.text), delivered.text),
        ("html", None if content.html is None else _unix(content.html), delivered.html),
        ("message-id", content.message_id, delivered.message_id),
        ("parts", approved_parts, delivered.parts),
    ]
    found = [
        f"{name}: approved {_short(approved)}, delivered {_short(arrived)}"
        for name, approved, arrived in compared
        if approved != arrived
    ]
    return (
        found
        + _header_differences(content, delivered)
        + [f"{name}: delivered more than once" for name in delivered.repeated]
    )


def _validate(content: EmailContent) -> None:
    validate_subject(content.subject)
    validate_body(content.text, limit=LONGEST_FROZEN_BODY)
    if content.html is not None:
        validate_body(content.html, limit=LONGEST_FROZEN_BODY, field="html")
    for name, value in content.headers:
        validate_header(name, value)
    if (
        not _MESSAGE_ID.fullmatch(content.message_id)
        or len(content.message_id) > _LONGEST_MESSAGE_ID
    ):
        raise InvalidContent(
            "message_id", "it is not the id of a message", "Use <letters-and-digits@domain>."
        )
    if not content.to:
        raise InvalidContent("to", "nobody is named", "Name at least one recipient.")


def _header_lines(content: EmailContent) -> list[bytes]:
    lines = [_address_header("From", (content.sender,)), _address_header("To", content.to)]
    if content.cc:
        lines.append(_address_header("Cc", content.cc))
    if content.reply_to:
        lines.append(_address_header("Reply-To", (content.reply_to,)))
    lines.append(fold("Subject", unstructured_words(content.subject)))
    lines.append(fold("Message-ID", [content.message_id]))
    lines.extend(fold(name, value.split(" ")) for name, value in content.headers)
    lines.append(b"MIME-Version: 1.0\r\n")
    return lines


def _address_header(name: str, mailboxes: tuple[Mailbox, ...]) -> bytes:
    """Write one address header; an address is one word and therefore never folded.

    Addresses stand in the form of the envelope: only a local part beyond ASCII stays raw UTF-8
    (RFC 6532), and such mail goes to servers with SMTPUTF8 alone.
    """
    words: list[str] = []
    for mailbox in mailboxes:
        if words:
            words[-1] += ","
        if mailbox.name:
            words.extend([*phrase_words(mailbox.name), f"<{mailbox.ascii_address}>"])
        else:
            words.append(mailbox.ascii_address)
    return fold(name, words)


def _body(content: EmailContent) -> bytes:
    text = _part("plain", content.text)
    if content.html is None:
        return text
    # "=_" occurs in neither encoding (RFC 2045, 6.7), so no body can hold the boundary.
    boundary = f"=_{digest(content.as_json()).hex()[:40]}"
    mark = b"--" + boundary.encode("ascii")
    kind = f'Content-Type: multipart/alternative;\r\n boundary="{boundary}"\r\n'
    html = _part("html", content.html)
    return b"".join(
        [
            kind.encode("ascii"),
            b"\r\n" + mark + b"\r\n",
            text,
            b"\r\n" + mark + b"\r\n",
            html,
            b"\r\n" + mark + b"--\r\n",
        ]
    )


def _part(subtype: str, text: str) -> bytes:
    encoding, lines = transfer_encode(_unix(text))
    head = (
        f"Content-Type: text/{subtype}; charset=utf-8\r\n"
        f"Content-Transfer-Encoding: {encoding}\r\n\r\n"
    )
    return head.encode("ascii") + lines


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n")


def _named(mailboxes: tuple[Mailbox, ...]) -> tuple[NamedAddress, ...]:
    return tuple((mailbox.name, mailbox.ascii_address) for mailbox in mailboxes)


def _short(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 120 else f"{shown[:80]}… ({len(shown)} characters)"


def _header_differences(content: EmailContent, delivered: DeliveredEmail) -> list[str]:
    approved: dict[str, list[str]] = {}
    for name, value in content.headers:
        approved.setdefault(name.lower(), []).append(value)
    arrived: dict[str, list[str]] = {}
    for name, value in delivered.headers:
        arrived.setdefault(name.lower(), []).append(value)
    found: list[str] = []
    for name in dict.fromkeys([*approved, *arrived]):
        if name not in approved and (name in _ADDED_ON_THE_WAY or name.startswith(("x-", "arc-"))):
            continue
        if approved.get(name, []) != arrived.get(name, []):
            found.append(
                f"{name}: approved {_short(approved.get(name, []))}, "
                f"delivered {_short(arrived.get(name, []))}"
            )
    return found


def _unfold(value: str) -> str:
    """Undo folding, and read octets beyond ASCII as UTF-8."""
    octets = value.encode("ascii", "surrogateescape")
    return re.sub(r"\r?\n(?=[ \t])", "", octets.decode("utf-8", "replace")).strip()


def _first(headers: list[tuple[str, str]], wanted: str) -> str:
    return next((value for name, value in headers if name.lower() == wanted), "")


def _addresses(headers: list[tuple[str, str]], wanted: str) -> tuple[NamedAddress, ...]:
    # Addresses are taken apart before names are decoded: what an encoded word hides is a name.
    values = [value for name, value in headers if name.lower() == wanted]
    return tuple((_decode(name), address) for name, address in getaddresses(values))


def _decode(value: str) -> str:
    try:
        pieces = decode_header(value)
    except (HeaderParseError, BinasciiError):
        return value
    return "".join(
        piece if isinstance(piece, str) else _text_of(piece, charset) for piece, charset in pieces
    )


def _text_of(octets: bytes, charset: str | None) -> str:
    try:
        return octets.decode(charset or "utf-8", "replace")
    except LookupError:
        return octets.decode("utf-8", "replace")


def _body_of(message: Message[str, str], kind: str) -> str | None:
    for part in message.walk():
        if part.get_content_type() == kind and not part.is_multipart():
            octets = part.get_payload(decode=True)
            if isinstance(octets, bytes):
                return _unix(_text_of(octets, part.get_content_charset()))
    return None
