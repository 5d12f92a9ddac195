"""Tickets on their way into the built-in desk: the import format, and what a second import means.

One line of a JSONL file is one ticket; its messages become its versions, in order. Importing the
same ticket again changes nothing, whatever has happened to it since; other content under an id that
exists is refused, never merged.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, field_validator

from executor.domain.address import parse_mailbox
from executor.domain.errors import InvalidContent
from executor.domain.payloads import storable_text
from executor.domain.ticket import ChangeKind, Ticket, TicketStatus

TICKET_ID = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
LANGUAGE = r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}$"
LONGEST_BODY = 100_000
"""Characters of the longest message that the desk takes."""

_LONGEST_LINE = 2_000_000
_MOST_MESSAGES = 1_000

OneLine = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]


class MessageKind(StrEnum):
    """Who a message of an imported ticket is from."""

    CUSTOMER = "customer"
    AGENT = "agent"
    NOTE = "note"

    @property
    def change(self) -> ChangeKind:
        """The kind of change that the message becomes."""
        return _CHANGE_OF[self]


_CHANGE_OF = {
    MessageKind.CUSTOMER: ChangeKind.CUSTOMER_MESSAGE,
    MessageKind.AGENT: ChangeKind.AGENT_MESSAGE,
    MessageKind.NOTE: ChangeKind.NOTE,
}


class _Imported(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class NewCustomer(_Imported):
    """Who asked: a name as they write it, and one email address."""

    name: OneLine
    email: OneLine

    @field_validator("email")
    @classmethod
    def _is_one_address(cls, value: str) -> str:
        try:
            mailbox = parse_mailbox(value, field="email")
        except InvalidContent as error:
            raise ValueError(f"{error.problem}. {error.remedy}") from error
        return mailbox.address


class NewMessage(_Imported):
    """One message: ``kind`` is ``customer``, ``agent`` or ``note`` (which customers never see).

    ``at`` is optional, ISO 8601 with an offset; without it the message is as old as its import.
    """

    kind: MessageKind
    author: OneLine
    body: str = Field(min_length=1, max_length=LONGEST_BODY)
    at: AwareDatetime | None = None

    @field_validator("body")
    @classmethod
    def _can_be_stored(cls, value: str) -> str:
        return storable_text(value)


class NewTicket(_Imported):
    """One ticket as it is imported: one JSON object on one line of a UTF-8 file.

    For example (on one line)::

        {"id": "4101", "subject": "Double charge", "language": "en",
         "customer": {"name": "Pat Neil", "email": "pat@cust.example"},
         "messages": [{"kind": "customer", "author": "Pat Neil", "body": "I was charged twice.",
                       "at": "2025-03-03T09:12:00+00:00"}],
         "status": "open"}

    ``id``: letters, digits, dots, hyphens. ``language``: a BCP 47 tag such as ``en`` or ``pt-BR``.
    ``messages``: at least one, oldest first; the first has version 1, the next one 2, ….
    ``status``: ``open`` (if left out) or ``closed``, which adds one more change by the last author.
    """

    id: str = Field(pattern=TICKET_ID)
    subject: OneLine
    customer: NewCustomer
    language: str = Field(pattern=LANGUAGE)
    messages: tuple[NewMessage, ...] = Field(min_length=1, max_length=_MOST_MESSAGES)
    status: TicketStatus = TicketStatus.OPEN

    def changes(self, now: datetime) -> list[NewChange]:
        """List the changes that the ticket is born with, in the order of their versions."""
        listed = [
            NewChange(message.kind.change, message.author, message.body, message.at or now)
            for message in self.messages
        ]
        if self.status is TicketStatus.CLOSED:
            last = listed[-1]
            listed.append(NewChange(ChangeKind.CLOSED, last.author, "", last.happened_at))
        return listed


@dataclass(frozen=True, slots=True)
class NewChange:
    """One change that an imported ticket is born with."""

    kind: ChangeKind
    author: str
    body: str
    happened_at: datetime


@dataclass(frozen=True, slots=True)
class Imported:
    """The ticket is new and stands at ``version``."""

    version: int


@dataclass(frozen=True, slots=True)
class AlreadyImported:
    """The same ticket was imported before; nothing was changed. It stands at ``version`` now."""

    version: int


@dataclass(frozen=True, slots=True)
class OtherContent:
    """The id is taken by a ticket that differs in ``field``; nothing was changed."""

    field: str


ImportResult = Imported | AlreadyImported | OtherContent


def compare(stored: Ticket, new: NewTicket) -> AlreadyImported | OtherContent:
    """Tell whether a stored ticket was born as ``new``; what happened to it since does not count.

    Times do not count either. ``stored`` carries its changes.
    """
    born = new.changes(stored.updated_at)
    for index, (was, change) in enumerate(zip(stored.changes, born, strict=False)):
        if (was.kind, was.author, was.body) != (change.kind, change.author, change.body):
            is_message = index < len(new.messages)
            return OtherContent(f"messages[{index}]" if is_message else "status")
    if len(stored.changes) < len(born):
        return OtherContent("messages")
    if any(change.kind is ChangeKind.EDITED for change in stored.changes):
        return AlreadyImported(stored.version)
    fields = {
        "subject": (stored.subject, new.subject),
        "customer.name": (stored.customer_name, new.customer.name),
        "customer.email": (stored.customer_email, new.customer.email),
        "language": (stored.language, new.language),
    }
    for field, (was_text, new_text) in fields.items():
        if was_text != new_text:
            return OtherContent(field)
    return AlreadyImported(stored.version)


def parse_tickets(lines: Iterable[str]) -> list[NewTicket]:
    """Read the lines of a JSONL file; empty lines are skipped.

    Raises ``InvalidContent`` for the first line that is wrong, or whose id an earlier line has; its
    ``field`` is for example ``line 3, customer.email``.
    """
    tickets: list[NewTicket] = []
    first_line: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        ticket = _parse_line(number, line)
        if ticket.id in first_line:
            raise InvalidContent(
                f"line {number}, id",
                f"{ticket.id} stands on line {first_line[ticket.id]} already",
                "Give every ticket one line.",
            )
        first_line[ticket.id] = number
        tickets.append(ticket)
    return tickets


def _parse_line(number: int, line: str) -> NewTicket:
    if len(line) > _LONGEST_LINE:
        raise InvalidContent(
            f"line {number}", f"it is longer than {_LONGEST_LINE} characters", "Split the ticket."
        )
    try:
        return NewTicket.model_validate_json(line)
    except (ValidationError, UnicodeEncodeError) as error:
        if not isinstance(error, ValidationError):
            raise InvalidContent(
                f"line {number}", "it is not text in UTF-8", "Save the file as UTF-8."
            ) from error
        first = error.errors(include_url=False, include_input=False)[0]
        where = _spell(first["loc"])
        raise InvalidContent(
            f"line {number}{', ' + where if where else ''}",
            first["msg"],
            "See the format of NewTicket.",
        ) from error


def _spell(location: tuple[int | str, ...]) -> str:
    spelled = ""
    for part in location:
        spelled += f"[{part}]" if isinstance(part, int) else f".{part}" if spelled else part
    return spelled
