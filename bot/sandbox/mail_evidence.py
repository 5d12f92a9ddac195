"""Whether a delivered mail is what its card showed, and whether its bytes are those of the intent.

The card's side is read from the blocks that the reviewer clicked, the mail's side from the octets
that the mailbox received: nothing of the database stands between the two.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from email.utils import getaddresses

from bot.card_email import email_view
from bot.sandbox.accepted_mail import AcceptedMail
from bot.sandbox.mailbox_spool import ReceivedMail
from bot.sandbox.model import Json
from executor.domain.address import parse_mailbox
from executor.domain.email import EmailContent, Mailbox
from executor.domain.frozen_email import NamedAddress, parse_delivered


@dataclass(frozen=True, slots=True)
class MailEvidence:
    """What a provider took responsibility for; ``digest`` is of the octets that were frozen."""

    content: EmailContent
    digest: str


def evidence_of(mail: ReceivedMail) -> MailEvidence:
    """Read what a mail server received."""
    return MailEvidence(delivered(mail), digest_without_date(mail))


def evidence_of_request(named: Json, mail: AcceptedMail) -> MailEvidence:
    """Read what a provider accepted as JSON; ``named`` is its request with the parts' own names."""
    [sender] = _spelled(named["from"])
    reply_to = _spelled(named["reply_to"])
    headers = [*_headers(mail.fields)]
    [message_id] = [value for name, value in headers if name == "Message-ID"]
    content = EmailContent(
        sender=sender,
        to=_spelled(named["to"]),
        cc=_spelled(named["cc"]),
        bcc=_spelled(named["bcc"]),
        reply_to=reply_to[0] if reply_to else None,
        subject=named["subject"],
        text=named["text"],
        html=named["html"],
        message_id=message_id,
        headers=tuple(header for header in headers if header[0] != "Message-ID"),
    )
    return MailEvidence(content, hashlib.sha256(mail.raw).hexdigest())


def differences_from_card(mail: EmailContent, blocks: Sequence[Json]) -> list[str]:
    """Say in what the mail differs from the card; empty when in nothing."""
    shown = list(_literals(blocks))
    lines = [line for text in shown for line in text.split("\n")]
    view = email_view(mail.as_json())
    missing = [
        f"the card does not show {name}: {value}"
        for name, value in view.fields
        if not any(_says(line, name, value) for line in lines)
    ]
    if view.text.text not in shown:
        missing.append("the card does not show this text")
    if view.html is not None and view.html.text not in shown:
        missing.append("the card does not show this HTML part")
    return missing


def delivered(mail: ReceivedMail) -> EmailContent:
    """Read a received mail and its envelope as the content of an email."""
    read = parse_delivered(mail.raw)
    to, cc = _mailboxes(read.to), _mailboxes(read.cc)
    named = {box.ascii_address for box in (*to, *cc)}
    [sender] = _mailboxes(read.sender)
    reply_to = _mailboxes(read.reply_to)
    return EmailContent(
        sender=sender,
        to=to,
        cc=cc,
        bcc=tuple(
            parse_mailbox(address, field="bcc")
            for address in mail.envelope_to
            if address not in named
        ),
        reply_to=reply_to[0] if reply_to else None,
        subject=read.subject,
        text=read.text or "",
        html=read.html,
        message_id=read.message_id,
        headers=read.headers,
    )


def digest_without_date(mail: ReceivedMail) -> str:
    """Return the SHA-256 (hex) of the octets without the ``Date`` that was put in front of them."""
    date, _, frozen = mail.raw.partition(b"\r\n")
    if not date.startswith(b"Date: "):
        frozen = mail.raw
    return hashlib.sha256(frozen).hexdigest()


def _mailboxes(named: Sequence[NamedAddress]) -> tuple[Mailbox, ...]:
    boxes = []
    for name, address in named:
        escaped = name.replace("\\", "\\\\").replace('"', '\\"')
        spelled = f'"{escaped}" <{address}>' if name else address
        boxes.append(parse_mailbox(spelled, field="address"))
    return tuple(boxes)


def _spelled(boxes: str | Sequence[str] | None) -> tuple[Mailbox, ...]:
    """Read ``Name <address>``, one text or a list of it."""
    if not boxes:
        return ()
    return _mailboxes(getaddresses([boxes] if isinstance(boxes, str) else list(boxes)))


def _headers(fields: Json) -> Iterator[tuple[str, str]]:
    """Read the further headers, which one provider takes as an object and another as a list."""
    for name in ("headers", "Headers"):
        given = fields.get(name, {})
        if isinstance(given, dict):
            yield from given.items()
        else:
            yield from ((header["Name"], header["Value"]) for header in given)


def _says(line: str, name: str, value: str) -> bool:
    return line.startswith(f"{name} ") and line[len(name) :].lstrip(" ") == value


def _literals(node: object) -> Iterator[str]:
    """Yield the text of each literal part, in order."""
    if isinstance(node, dict) and node.get("type") == "rich_text_preformatted":
        yield "".join(str(part.get("text", "")) for part in node["elements"])
    elif isinstance(node, dict):
        yield from _literals([value for value in node.values() if isinstance(value, dict | list)])
    elif isinstance(node, Sequence) and not isinstance(node, str):
        for item in node:
            yield from _literals(item)
