"""The email of an operation, as its card shows it: every field, exact, in the order of a mail.

Each text here is revealed in full; what is too long for a card is shortened by the caller. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bot.card_parts import NOTHING
from bot.confusable import ascii_form, foreign_addresses
from bot.visible import END, Finding, merge, reveal
from executor.domain.closing_html import html_matches_text
from executor.domain.email import EmailContent, Mailbox
from executor.domain.errors import Corrupt
from executor.domain.payloads import JsonObject, JsonValue

MOST_NAMED_ADDRESSES = 5
"""Foreign addresses in the texts whose other spelling the warning names."""


@dataclass(frozen=True, slots=True)
class Body:
    """One part of the email: revealed, with what a reviewer counts."""

    text: str
    characters: int
    lines: int


@dataclass(frozen=True, slots=True)
class EmailView:
    """An email to be read. ``html`` is ``None`` where it says the same as the text, or is absent.

    ``spellings`` are lines ``address = ASCII address`` for the texts; the fields show both anyway.
    """

    fields: tuple[tuple[str, str], ...]
    text: Body
    has_html: bool
    html: Body | None
    recipients: int
    findings: tuple[Finding, ...]
    spellings: tuple[str, ...]


def email_view(email: JsonObject) -> EmailView:
    """Reveal an email that stands in an intent (``EmailContent.as_json``)."""
    content = _read(email)
    findings: list[Finding] = []

    def line(text: str) -> str:
        revealed = reveal(text, one_line=True)
        findings.extend(revealed.warnings)
        return revealed.text

    fields = tuple((name, line(value)) for name, value in _fields(content))
    text = _body(content.text, findings)
    html: Body | None = None
    if content.html is not None and not html_matches_text(content.text, content.html):
        html = _body(content.html, findings)
    return EmailView(
        fields=fields,
        text=text,
        has_html=content.html is not None,
        html=html,
        recipients=len(content.recipients()),
        findings=merge(tuple(findings)),
        spellings=_spellings(content),
    )


def _fields(content: EmailContent) -> list[tuple[str, str]]:
    """List the header fields in order; a field of several mailboxes has one row for each."""
    fields = [("From", _mailbox(content.sender))]
    for name, boxes in (("To", content.to), ("Cc", content.cc), ("Bcc", content.bcc)):
        fields += [(name, _mailbox(box)) for box in boxes] or [(name, NOTHING)]
    reply_to = NOTHING if content.reply_to is None else _mailbox(content.reply_to)
    fields += [("Reply-To", reply_to), ("Subject", content.subject)]
    fields.append(("Message-ID", content.message_id))
    return fields + [(f"Header {name}", value) for name, value in content.headers]


def _mailbox(box: Mailbox) -> str:
    """Spell a mailbox with its name and, where it has two, both forms of its address."""
    address = f"<{box.address}>"
    if box.ascii_address != box.address:
        address += f" = <{box.ascii_address}>"
    if not box.name:
        return address
    quoted = box.name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{quoted}" {address}'


def _body(text: str, findings: list[Finding]) -> Body:
    revealed = reveal(text)
    findings.extend(revealed.warnings)
    return Body(revealed.text + END, len(text), len(text.splitlines()))


def _spellings(content: EmailContent) -> tuple[str, ...]:
    texts = (content.subject, content.text, content.html or "")
    found = dict.fromkeys(word for text in texts for word in foreign_addresses(text))
    return tuple(
        f"{reveal(word, one_line=True).text} = {reveal(ascii_form(word), one_line=True).text}"
        for word in list(found)[:MOST_NAMED_ADDRESSES]
    )


def _read(email: JsonObject) -> EmailContent:
    reply_to, html = email.get("reply_to"), email.get("html")
    return EmailContent(
        sender=_read_mailbox(email.get("from")),
        to=_read_mailboxes(email.get("to")),
        cc=_read_mailboxes(email.get("cc")),
        bcc=_read_mailboxes(email.get("bcc")),
        reply_to=None if reply_to is None else _read_mailbox(reply_to),
        subject=_read_text(email.get("subject")),
        text=_read_text(email.get("text")),
        html=None if html is None else _read_text(html),
        message_id=_read_text(email.get("message_id")),
        headers=tuple(_read_header(pair) for pair in _read_list(email.get("headers"))),
    )


def _read_text(value: JsonValue) -> str:
    if not isinstance(value, str):
        raise Corrupt("the stored email has no text where one must be")
    return value


def _read_list(value: JsonValue) -> Sequence[JsonValue]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise Corrupt("the stored email has no list where one must be")
    return value


def _read_mailbox(value: JsonValue) -> Mailbox:
    if not isinstance(value, Mapping):
        raise Corrupt("the stored email has no mailbox where one must be")
    return Mailbox(
        _read_text(value.get("name")),
        _read_text(value.get("address")),
        _read_text(value.get("ascii_address")),
    )


def _read_mailboxes(value: JsonValue) -> tuple[Mailbox, ...]:
    return tuple(_read_mailbox(box) for box in _read_list(value))


def _read_header(value: JsonValue) -> tuple[str, str]:
    name, text = _read_list(value)
    return _read_text(name), _read_text(text)
