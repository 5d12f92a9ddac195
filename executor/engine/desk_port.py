"""The port to a ticket desk outside: its tickets are observed, and changed by frozen requests only.

What an outside desk lets us conclude has an age and a resolution: an observation is as old as it
is, and a stamp counts seconds. A desk with compare-and-set (``conditional``) guards the rest; one
without is *checked, not guarded*, and says so. No call repeats a request, and none fetches a newer
stamp to try a change again: a conflict is an answer, and what follows it is the engine's decision.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Protocol

from executor.domain.effect import Capability, Outcome
from executor.domain.payloads import JsonObject
from executor.domain.ticket import Ticket


class DeskUnavailable(Exception):
    """A desk could not be read, or its answer is not one of its own; nothing was changed.

    ``problem`` is in our own words and holds no secret.
    """

    def __init__(self, problem: str, retry_after: timedelta | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class Stamp:
    """The version of an outside ticket: what its desk stamps, and the hash of what was approved.

    ``updated_at`` is kept as the desk spells it and has a resolution of one second; two changes of
    one second are told apart by ``fields_sha256`` (hex) alone, which only a reading can compare.
    """

    updated_at: str
    fields_sha256: str

    def as_json(self) -> JsonObject:
        """Spell the stamp as intents and evidence keep it."""
        return {"updated_at": self.updated_at, "fields_sha256": self.fields_sha256}


@dataclass(frozen=True, slots=True)
class Observation:
    """One ticket as it was read at its stamp.

    ``ticket.version`` counts the changes that the desk shows. It is for people to read and is never
    compared: ``stamp`` is. ``labels`` are its tags or labels, which some desks can only replace as
    a whole.
    """

    ticket: Ticket
    stamp: Stamp
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OutgoingChange:
    """One frozen close or reopening, ready to leave.

    ``payload`` is what ``freeze_close`` or ``freeze_reopen`` made of the observation with ``stamp``
    and of ``marker``, which names this effect in the desk for good.
    """

    ticket_id: str
    payload: bytes
    stamp: Stamp
    marker: str


class Finding(StrEnum):
    """What a reading found of an earlier change; stands in the evidence as ``finding``.

    Only where the capability is ``conditional`` does ``moved`` prove that the change was not made
    and never will be, and does ``unchanged`` allow the same request with the same stamp once more.
    """

    MARKER = "marker"
    MOVED = "moved"
    UNCHANGED = "unchanged"
    UNREAD = "unread"


class TicketDesk(Protocol):
    """One account or project of an outside desk."""

    @property
    def name(self) -> str:
        """Name of the desk, as it stands in intents, e.g. ``zendesk:acme``."""

    @property
    def capability(self) -> Capability:
        """What an attempt whose answer was lost lets us conclude."""

    @property
    def notifies_on_close(self) -> bool:
        """Whether the desk itself tells anybody outside about a close, besides our own email."""

    @property
    def guard(self) -> str:
        """One sentence for the card: what keeps a change of the last moment from being run over."""

    @property
    def promise(self) -> str:
        """One sentence for the card: what this desk lets us promise."""

    @property
    def longest_request_seconds(self) -> float:
        """Upper bound of ``close``, ``reopen`` and ``leave_note`` each, which they enforce."""

    async def read(self, ticket_id: str) -> Observation | None:
        """Read one ticket with its conversation; ``None`` when there is none of that id.

        Raises ``DeskUnavailable``.
        """

    def freeze_close(self, seen: Observation, marker: str, note: str) -> bytes:
        """Make the canonical JSON of the closing request, its precondition and marker included.

        Pure. ``note`` is what the desk will show beside the close. Raises ``InvalidContent``.
        """

    def freeze_reopen(self, seen: Observation, marker: str, note: str) -> bytes:
        """Make the request that opens the ticket again, as ``freeze_close`` does.

        ``seen`` must be the version that our own close made; the caller compares the stamps.
        """

    async def close(self, change: OutgoingChange) -> Outcome:
        """Close the ticket by exactly one request; every end but cancellation is an ``Outcome``.

        An ``applied`` close carries the new ``stamp`` in its evidence if the answer held it.
        """

    async def reopen(self, change: OutgoingChange) -> Outcome:
        """Open the ticket again by exactly one request, if it still is what ``stamp`` says."""

    async def read_back(self, change: OutgoingChange) -> Outcome:
        """Look by one or two readings for what became of a change whose answer proved nothing.

        The evidence names a ``Finding``. A desk that cannot be read is ``unknown`` as well.
        """


class NotedDesk(TicketDesk, Protocol):
    """A desk whose close carries neither note nor marker, so that a request of its own leaves them.

    The note comes first: a close is then never without the marker that it can be found by. The
    price is that a note may stand beside a ticket whose close was then refused.
    """

    async def leave_note(self, change: OutgoingChange) -> Outcome:
        """Look for the marker, and leave the note by one request only if it is not there yet."""
