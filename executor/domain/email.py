"""Emails as data: what an intent holds of one, before and after it is frozen into MIME bytes.

Everything that reaches the recipient is here. ``frozen_email.py`` makes the bytes; nothing is
rendered, appended or rewritten after that, except that ``Date`` is fixed at the first attempt.
"""

from __future__ import annotations

from dataclasses import dataclass

from executor.domain.payloads import JsonObject


@dataclass(frozen=True, slots=True)
class Mailbox:
    """One parsed and normalised address.

    ``address`` is as people read it (``anna@bücher.example``), ``ascii_address`` is what the
    envelope uses (``anna@xn--bcher-kva.example``); both are equal for plain addresses.
    """

    name: str
    address: str
    ascii_address: str

    def as_json(self) -> JsonObject:
        """Spell the mailbox as it stands in an intent."""
        return {
            "name": self.name,
            "address": self.address,
            "ascii_address": self.ascii_address,
        }


@dataclass(frozen=True, slots=True)
class EmailContent:
    """One email, field by field, as it was approved."""

    sender: Mailbox
    to: tuple[Mailbox, ...]
    cc: tuple[Mailbox, ...]
    bcc: tuple[Mailbox, ...]
    reply_to: Mailbox | None
    subject: str
    text: str
    html: str | None
    message_id: str
    headers: tuple[tuple[str, str], ...] = ()

    def recipients(self) -> tuple[str, ...]:
        """List the envelope's recipients once each, in order: to, cc, bcc."""
        boxes = (*self.to, *self.cc, *self.bcc)
        return tuple(dict.fromkeys(box.ascii_address for box in boxes))

    def mailboxes(self) -> tuple[tuple[str, Mailbox], ...]:
        """List every mailbox with the argument, or the policy's setting, that it comes from."""
        named = [("email.from", self.sender)]
        named += [("to", box) for box in self.to]
        named += [("cc", box) for box in self.cc]
        named += [("bcc", box) for box in self.bcc]
        named += [("email.reply_to", self.reply_to)] if self.reply_to else []
        return tuple(named)

    def as_json(self) -> JsonObject:
        """Spell the email as it stands in an intent."""
        return {
            "from": self.sender.as_json(),
            "to": [box.as_json() for box in self.to],
            "cc": [box.as_json() for box in self.cc],
            "bcc": [box.as_json() for box in self.bcc],
            "reply_to": self.reply_to.as_json() if self.reply_to else None,
            "subject": self.subject,
            "text": self.text,
            "html": self.html,
            "message_id": self.message_id,
            "headers": [[name, value] for name, value in self.headers],
        }
