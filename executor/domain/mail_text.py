"""What may stand in an email's subject, its other headers and its bodies.

Whatever passes here reaches the recipient unchanged, character for character, and cannot become an
address or a header of its own. Nothing is stripped or repaired: content that cannot be shown,
approved and sent as it is, is refused. ``frozen_email.py`` keeps the pair of this promise.

The stated line-end rule of bodies: a line ends with LF, or with CR LF, which mean the same; what
was sent equals what was approved when both are read with LF. A CR of its own is refused.
"""

from __future__ import annotations

import re

from executor.domain.errors import InvalidContent

LONGEST_SUBJECT = 255
"""Characters of the longest subject."""

LONGEST_HEADER_VALUE = 900
"""Characters of the longest value of a further header (RFC 5322, 2.1.1: 998 octets in a line)."""

MOST_BLANK_LINES = 50
"""Blank lines in a row that a body may hold: more of them push content out of sight."""

_HEADER_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,75}")
# C0, DEL and C1, the line and paragraph separators, and lone surrogates.
_BREAKING = re.compile("[\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029\\ud800-\\udfff]")
_CONTROL = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\ud800-\\udfff]")
_OWN_HEADERS = frozenset(
    {
        "from",
        "sender",
        "to",
        "cc",
        "bcc",
        "reply-to",
        "subject",
        "date",
        "message-id",
        "mime-version",
        "return-path",
        "received",
        "delivered-to",
        "dkim-signature",
    }
)
_OWN_PREFIXES = ("content-", "resent-", "arc-")


def validate_subject(text: str, *, field: str = "subject") -> None:
    """Refuse a subject that is empty, too long, or holds what some software takes for a line end.

    Raises ``InvalidContent``.
    """
    _refuse_breaking(text, field)
    if not text.strip():
        raise InvalidContent(field, "it is empty", "Write a subject.")
    if text != text.strip():
        raise InvalidContent(
            field, "it begins or ends with a space", "Remove the space at its ends."
        )
    if len(text) > LONGEST_SUBJECT:
        raise InvalidContent(
            field,
            f"it has {len(text)} characters, the limit is {LONGEST_SUBJECT}",
            "Shorten the subject.",
        )


def validate_header(name: str, value: str, *, field: str = "headers") -> None:
    """Refuse a further header that Signoff sets itself or that would not arrive as written.

    Values are printable ASCII with single spaces, since structured headers know no encoding for
    anything else. Raises ``InvalidContent``.
    """
    if not _HEADER_NAME.fullmatch(name):
        raise InvalidContent(
            field, f"{name!r} is not the name of a header", "Use letters, digits and hyphens."
        )
    lower = name.lower()
    if lower in _OWN_HEADERS or lower.startswith(_OWN_PREFIXES):
        raise InvalidContent(
            field, f"{name} cannot be set here", "Use the field of the email that it stands for."
        )
    _refuse_breaking(value, f"{field}.{name}")
    if not value.isascii() or value != " ".join(value.split()) or not value or "=?" in value:
        raise InvalidContent(
            f"{field}.{name}",
            "its value would not arrive as written",
            "Use printable ASCII with single spaces, and no encoded words.",
        )
    if len(value) > LONGEST_HEADER_VALUE:
        raise InvalidContent(
            f"{field}.{name}",
            f"its value has {len(value)} characters, the limit is {LONGEST_HEADER_VALUE}",
            "Shorten the value.",
        )


def validate_body(text: str, *, limit: int, field: str = "text") -> None:
    """Refuse a body that is blank, longer than ``limit`` characters, or not plain text.

    See the line-end rule above. Raises ``InvalidContent``.
    """
    if not text.strip():
        raise InvalidContent(field, "it is empty", "Write what the recipient shall read.")
    if len(text) > limit:
        raise InvalidContent(
            field, f"it has {len(text)} characters, the limit is {limit}", "Shorten the text."
        )
    unix = text.replace("\r\n", "\n")
    if "\r" in unix:
        raise InvalidContent(
            field, "it holds a carriage return of its own", "End lines with \\n or \\r\\n."
        )
    control = _CONTROL.search(unix)
    if control:
        raise InvalidContent(
            field,
            f"it holds the control character U+{ord(control.group()):04X} at {control.start()}",
            "Remove the character.",
        )
    _refuse_blank_run(unix, field)


def _refuse_breaking(text: str, field: str) -> None:
    breaking = _BREAKING.search(text)
    if breaking:
        character = breaking.group()
        kind = "a line break" if character in "\r\n" else "a control character or separator"
        raise InvalidContent(
            field,
            f"it holds {kind}, U+{ord(character):04X} at {breaking.start()}",
            "Write it as one line of plain text.",
        )


def _refuse_blank_run(text: str, field: str) -> None:
    run = 0
    for line in text.split("\n"):
        run = 0 if line.strip() else run + 1
        if run > MOST_BLANK_LINES:
            raise InvalidContent(
                field,
                f"it holds more than {MOST_BLANK_LINES} blank lines in a row",
                "Remove the blank lines, they would push text out of sight.",
            )
