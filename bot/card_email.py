"""The email of an operation, as its card shows it: every field, exact, in the order of a mail.

Each text here is revealed in full; what is too long for a card is shortened by the caller. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bot.card_links import links_of
from bot.card_parts import NOTHING
from bot.confusable import ascii_form, foreign_addresses, scripts_of
from bot.visible import EMPTY, END, Finding, merge, reveal, runs_right_to_left
from executor.domain.closing_html import html_matches_text
from executor.domain.email import EmailContent, Mailbox
from executor.domain.errors import Corrupt
from executor.domain.payloads import JsonObject, JsonValue

MOST_NAMED_ADDRESSES = 20
"""Foreign addresses in the texts whose other spelling is named."""

_RIGHT_TO_LEFT = re.compile(r"<html[^<>]* dir=\"?rtl\b", re.IGNORECASE)


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
    ``links`` are those of an HTML part that is shown, ``warnings`` what else may deceive.
    """

    fields: tuple[tuple[str, str], ...]
    text: Body
    has_html: bool
    html: Body | None
    html_from_the_right: bool
    recipients: int
    links: tuple[str, ...]
    warnings: tuple[str, ...]
    findings: tuple[Finding, ...]
    spellings: tuple[str, ...]
    runs_right_to_left: bool


def email_view(email: JsonObject) -> EmailView:
    """Reveal an email that stands in an intent (``EmailContent.as_json``)."""
    content = _read(email)
    findings: list[Finding] = []

    def line(text: str) -> str:
        revealed = reveal(text, one_line=True)
        findings.extend(revealed.findings)
        return revealed.text or EMPTY

    fields = tuple((name, line(value)) for name, value in _fields(content))
    text = _body(content.text, findings)
    html: Body | None = None
    if content.html is not None and not html_matches_text(content.text, content.html):
        html = _body(content.html, findings)
    shown_html = None if html is None else content.html
    links = links_of(shown_html, content.text)
    return EmailView(
        fields=fields,
        text=text,
        has_html=content.html is not None,
        html=html,
        html_from_the_right=bool(_RIGHT_TO_LEFT.search(content.html or "")),
        recipients=len(content.recipients()),
        links=links.listed,
        warnings=links.warned,
        # What a link holds stands in the HTML as well, and is counted there.
        findings=merge(tuple(findings)),
        spellings=_spellings(content, shown_html or ""),
        runs_right_to_left=any(
            map(runs_right_to_left, (*(value for _, value in fields), content.text))
        ),
    )


def _fields(content: EmailContent) -> list[tuple[str, str]]:
    """List the header fields in order; a field of several mailboxes has one row for each."""
    fields = [("From", _mailbox(content.sender))]
    for name, boxes in (("To", content.to), ("Cc", content.cc), ("Bcc", content.bcc)):
        fields += [(name, _mailbox(box)) for box in boxes] or [(name, NOTHING)]
    reply_to = NOTHING if content.reply_to is None else _mailbox(content.reply_to)
    fields += [("Reply-To", reply_to), ("Subject", content.subject)]
    fields.append(("Message-ID", content.message_id))
    return fields + [("Header", f"{_quoted(name)} {value}") for name, value in content.headers]


def _mailbox(box: Mailbox) -> str:
    """Spell a mailbox with its name and, where it has two, both forms of its address.

    What is written from right to left comes last, for it would reorder what stands behind it.
    """
    address, ascii_address = _bracketed(box.address), _bracketed(box.ascii_address)
    if address == ascii_address:
        both = address
    elif runs_right_to_left(box.address):
        both = f"{ascii_address} for {address}"
    else:
        both = f"{address} = {ascii_address}"
    if not box.name:
        return both
    name = _quoted(box.name)
    return f"{both} {name}" if runs_right_to_left(box.name) else f"{name} {both}"


def _bracketed(address: str) -> str:
    escaped = re.sub(r"([<>\\])", r"\\\1", address)
    return f"<{escaped}>"


def _quoted(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _body(text: str, findings: list[Finding]) -> Body:
    revealed = reveal(text)
    findings.extend(revealed.findings)
    lines = text.removesuffix("\n").count("\n") + 1 if text else 0
    return Body(revealed.text + END, len(text), lines)


def _spellings(content: EmailContent, html: str) -> tuple[str, ...]:
    texts = (content.subject, content.text, html)
    found = list(dict.fromkeys(host for text in texts for host in foreign_addresses(text)))
    lines = [_spelling(host) for host in found[:MOST_NAMED_ADDRESSES]]
    more = len(found) - len(lines)
    return (*lines, f"and {more} more") if more else tuple(lines)


def _spelling(address: str) -> str:
    shown = reveal(address, one_line=True).text
    spelt = reveal(ascii_form(address), one_line=True).text
    mixed = scripts_of(address)
    return f"{shown} = {spelt}" + (f", mixes {' and '.join(mixed)} letters" if mixed else "")


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
