"""What the scripted model knows: the goal, and what the tools have answered so far.

Everything is derived from the conversation of the request, nothing is remembered between calls; so
a resumed run gets the reply that an uninterrupted one would have got.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from executor.domain.others_words import OTHERS_WORDS
from executor.domain.payloads import JsonObject, JsonValue
from executor.domain.ticket import ChangeKind
from executor.engine.ports import ToolResult, Turn

MOST_TICKETS = 10

_TICKET_ID = re.compile(r"(?<![\w@.,/-])#?(\d{3,12})(?![\w@/-])")
_QUESTION_MARKS = frozenset("?\uff1f؟")
_THANKS = re.compile(
    r"thank|thanks|works now|all good|solved|dank|bedankt|werkt|merci|gracias|grazie|obrigad"
    r"|ありがとう|解決|شكر|dziękuj|funktioniert",
    re.IGNORECASE,
)
KEEP_OPEN = re.compile(
    r"\b(?:do not|don['’]t) (?:close|send)|(?:keep|leave) (?:it |this |the ticket )?open"
    r"|\bnot yet\b|\bniet (?:sluiten|versturen)\b|\bnicht (?:schließen|senden)\b|\bne pas fermer\b",
    re.IGNORECASE,
)
"""What a note or a rejection says when the ticket shall stay open."""


@dataclass(frozen=True, slots=True)
class Said:
    """One message of a conversation, as ``read_ticket`` returned it."""

    kind: str
    author: str
    body: str


@dataclass(frozen=True, slots=True)
class TicketRead:
    """A ticket as it was read last."""

    version: int
    status: str
    subject: str
    language: str
    has_address: bool
    conversation: tuple[Said, ...]

    def unanswered(self) -> str | None:
        """Return the customer's message that nobody has answered, unless it only says thanks."""
        for said in reversed(self.conversation):
            if said.kind == ChangeKind.AGENT_MESSAGE.value:
                return None
            if said.kind == ChangeKind.CUSTOMER_MESSAGE.value:
                asks = not _QUESTION_MARKS.isdisjoint(said.body)
                answered = any(
                    other.kind == ChangeKind.AGENT_MESSAGE.value for other in self.conversation
                )
                thanks = bool(_THANKS.search(said.body)) and not asks and answered
                return None if thanks else said.body
        return None

    def confirmed(self) -> bool:
        """Tell whether the customer had the last word, with thanks."""
        talk = [said for said in self.conversation if said.kind.endswith("_message")]
        return (
            bool(talk)
            and talk[-1].kind == ChangeKind.CUSTOMER_MESSAGE.value
            and self.unanswered() is None
        )

    def wish_to_keep_open(self) -> str | None:
        """Return the newest note, if it asks not to close."""
        notes = [said.body for said in self.conversation if said.kind == ChangeKind.NOTE.value]
        return notes[-1] if notes and KEEP_OPEN.search(notes[-1]) else None

    def answers(self) -> list[str]:
        """List what agents wrote to the customer, oldest first."""
        agent = ChangeKind.AGENT_MESSAGE.value
        return [said.body for said in self.conversation if said.kind == agent]


@dataclass(frozen=True, slots=True)
class ProposalMade:
    """One proposal and what came of it."""

    arguments: JsonObject
    result: JsonObject


@dataclass(slots=True)
class TicketKnown:
    """All that the conversation says about one ticket; ``read_is_old`` after something moved it."""

    id: str
    read: TicketRead | None = None
    read_error: str | None = None
    reads: int = 0
    read_is_old: bool = False
    proposals: list[ProposalMade] = field(default_factory=list)


@dataclass(slots=True)
class Known:
    """All that the conversation says; ``searches`` are the results of searches, oldest first."""

    tickets: dict[str, TicketKnown] = field(default_factory=dict)
    searches: list[JsonObject] = field(default_factory=list)


def ticket_ids(goal: str) -> list[str]:
    """List the ticket ids in a goal, in order, once each, at most ``MOST_TICKETS``."""
    return list(dict.fromkeys(_TICKET_ID.findall(goal)))[:MOST_TICKETS]


def gather(turns: Sequence[Turn]) -> Known:
    """Derive what is known from the turns so far."""
    known = Known()
    for turn in turns:
        news = (item for item in turn.afterwards if isinstance(item, ToolResult))
        for answer in (*turn.results, *news):
            arguments = answer.call.arguments
            if not isinstance(arguments, str):
                _take_in(known, answer.call.name, arguments, answer.result)
    return known


def _take_in(known: Known, tool: str, arguments: JsonObject, result: JsonObject) -> None:
    if tool == "search_tickets":
        known.searches.append(result)
        return
    ticket_id = str(arguments.get("ticket_id", ""))
    ticket = known.tickets.setdefault(ticket_id, TicketKnown(ticket_id))
    if tool == "read_ticket":
        ticket.reads += 1
        ticket.read_is_old = False
        ticket.read_error = text_of(result, "error") or None
        ticket.read = None if ticket.read_error else _read(result)
    elif tool == "propose_closing" and "awaiting" not in codes(result):
        ticket.proposals.append(ProposalMade(arguments, result))
        ticket.read_is_old = bool({"version_changed", "version_not_read"} & codes(result))


def codes(result: JsonObject) -> set[str]:
    """Return the codes that a result carries: its error alone, or else its status and reason."""
    if error := text_of(result, "error"):
        return {error}
    return {text_of(result, key) for key in ("status", "reason")} - {""}


def text_of(value: JsonObject, key: str) -> str:
    """Return a text of a JSON object, or nothing."""
    found = value.get(key)
    return found if isinstance(found, str) else ""


def objects_of(value: JsonObject, key: str) -> list[JsonObject]:
    """Return the objects of a list of a JSON object, or nothing."""
    found: JsonValue = value.get(key)
    if not isinstance(found, Sequence) or isinstance(found, str):
        return []
    return [item for item in found if isinstance(item, Mapping)]


def words_of(result: JsonObject) -> JsonObject:
    """Return what others wrote in a result, which stands apart from what the desk knows."""
    words = result.get(OTHERS_WORDS)
    return words if isinstance(words, Mapping) else {}


def _read(result: JsonObject) -> TicketRead:
    words, version = words_of(result), result.get("version")
    customer = words.get("customer")
    return TicketRead(
        version=version if isinstance(version, int) else 0,
        status=text_of(result, "status"),
        subject=text_of(words, "subject"),
        language=text_of(words, "language"),
        has_address=bool(isinstance(customer, Mapping) and text_of(customer, "email")),
        conversation=tuple(
            Said(text_of(item, "kind"), text_of(item, "author"), text_of(item, "body"))
            for item in objects_of(words, "conversation")
        ),
    )
