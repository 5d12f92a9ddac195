"""The port to a ticket desk outside: its tickets are observed, and changed by frozen requests only.

What an outside desk lets us conclude has an age and a resolution: an observation is as old as it
is, and a stamp counts seconds. A desk with compare-and-set (``conditional``) guards the rest; one
without is *checked, not guarded*, and says so. No call repeats a request, and none fetches a newer
stamp to try a change again: a conflict is an answer, and what follows it is the engine's decision.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol, runtime_checkable

from executor.domain.declaration import Declaration
from executor.domain.effect import Capability, Outcome
from executor.domain.stamp import Stamp
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


class TicketDesk(Protocol):
    """One account or project of an outside desk."""

    @property
    def name(self) -> str:
        """Name of the desk, as it stands in intents, e.g. ``zendesk:acme``."""

    @property
    def declaration(self) -> Declaration:
        """What can be promised of this desk; all that is told of it comes from here."""

    @property
    def capability(self) -> Capability:
        """What an attempt whose answer was lost lets us conclude, as it is declared."""

    @property
    def notifies_on_close(self) -> bool:
        """Whether the desk itself tells anybody outside about a close, besides our own email."""

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


@runtime_checkable
class NotedDesk(TicketDesk, Protocol):
    """A desk whose close carries neither note nor marker, so that a request of its own leaves them.

    The note comes first: a close is then never without the marker that it can be found by. The
    price is that a note may stand beside a ticket whose close was then refused.
    """

    async def leave_note(self, change: OutgoingChange) -> Outcome:
        """Look for the marker, and leave the note by one request only if it is not there yet."""
