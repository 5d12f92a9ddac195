"""Mails that the sandbox accepted, and the Maildir that keeps them over a restart.

Content is kept octet for octet. The envelope stands in front of it as a delivering server writes
it (``Return-Path``, ``Delivered-To``) and is taken off again when a mail is loaded.
"""

from __future__ import annotations

import email
from dataclasses import dataclass, replace
from datetime import datetime
from email.message import EmailMessage
from email.policy import default
from mailbox import Maildir
from pathlib import Path

_RECEIVED = "X-Sandbox-Received: "
_FROM = "Return-Path: "
_TO = "Delivered-To: "
_ENCRYPTED = "X-Sandbox-Encrypted: yes"
_END = "X-Sandbox-Envelope: end"


@dataclass(frozen=True, slots=True)
class ReceivedMail:
    """One accepted mail: envelope, octets as received, and when."""

    number: int
    envelope_from: str
    envelope_to: tuple[str, ...]
    raw: bytes
    received_at: datetime
    encrypted: bool

    @property
    def parsed(self) -> EmailMessage:
        """The mail as the standard library reads it."""
        return email.message_from_bytes(self.raw, policy=default)


class Spool:
    """A Maildir of accepted mails. Blocking: call it in a thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, mail: ReceivedMail) -> None:
        """Write one mail; it is on disk once this returns."""
        envelope = [
            _RECEIVED + mail.received_at.isoformat(),
            _FROM + mail.envelope_from,
            *(_TO + recipient for recipient in mail.envelope_to),
            *([_ENCRYPTED] if mail.encrypted else []),
            _END,
        ]
        head = "".join(f"{line}\r\n" for line in envelope).encode()
        Maildir(self._folder).add(head + mail.raw)

    def load(self, most: int) -> list[ReceivedMail]:
        """Read the mails that were kept, oldest first, at most the last ``most`` of them."""
        maildir = Maildir(self._folder)
        mails = [_read(maildir.get_bytes(key)) for key in maildir.keys()]  # noqa: SIM118
        mails.sort(key=lambda mail: mail.received_at)
        return [replace(mail, number=index) for index, mail in enumerate(mails[-most:], 1)]


def _read(stored: bytes) -> ReceivedMail:
    head, _, raw = stored.partition(f"{_END}\r\n".encode())
    lines = head.decode().split("\r\n")
    return ReceivedMail(
        number=0,
        envelope_from=next(line[len(_FROM) :] for line in lines if line.startswith(_FROM)),
        envelope_to=tuple(line[len(_TO) :] for line in lines if line.startswith(_TO)),
        raw=raw,
        received_at=datetime.fromisoformat(lines[0][len(_RECEIVED) :]),
        encrypted=_ENCRYPTED in lines,
    )
