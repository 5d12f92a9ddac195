"""The demo's ticket desk as the page and the people of the demo see it, and the built-in one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol

from bot.sandbox.demo_faults import DemoFault, DeskKind
from bot.sandbox.passing_fault import Tried
from executor.domain.ids import TenantId
from executor.domain.new_ticket import NewTicket
from executor.domain.ticket import ChangeKind, Ticket, TicketStatus
from executor.engine import desk
from executor.store.database import Database

CUSTOMER_REOPENS = "The customer opened the ticket again."


@dataclass(frozen=True, slots=True)
class HeldTicket:
    """A ticket as its desk holds it; ``version`` counts as on a card.

    ``changes`` are those that the desk took from Signoff, ``notes`` those of them that left a note.
    """

    id: str
    version: int
    status: TicketStatus
    subject: str
    changes: int
    notes: int


class DemoDesk(Protocol):
    """Wherever the demo's tickets are."""

    @property
    def kind(self) -> DeskKind:
        """Which desk it is."""

    @property
    def port(self) -> int | None:
        """Where it listens, if it does."""

    @property
    def settings(self) -> Mapping[str, str]:
        """The executor's settings for it."""

    async def put(self, tickets: Iterable[NewTicket]) -> None:
        """Put tickets there; one that is there already stays as it is."""

    async def tickets(self) -> list[HeldTicket]:
        """Read the newest tickets."""

    async def ticket(self, number: str) -> HeldTicket | None:
        """Read one ticket."""

    async def reply_as_customer(self, number: str, body: str) -> None:
        """Let the customer of a ticket write; nothing happens where there is none."""

    async def reopen(self, number: str) -> None:
        """Let the customer open a closed ticket again."""

    def goal(self, number: str) -> str:
        """Spell what a person asks for to have a ticket closed."""

    async def fail(
        self, fault: DemoFault, is_approved: Callable[[], Awaitable[bool]], tried: Tried
    ) -> None:
        """Let the next change meet a fault, once; see ``demo_faults`` for what is possible."""

    async def until_it_is_over(self) -> None:
        """Wait until the fault that was planned last does nothing any more."""

    async def __aenter__(self) -> DemoDesk: ...

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class BuiltInDesk:
    """The desk in the database."""

    kind = DeskKind.BUILTIN
    port = None
    settings: Mapping[str, str] = {"SIGNOFF_DESK": "builtin"}

    def __init__(self, database: Database, tenant: TenantId) -> None:
        self._database = database
        self._tenant = tenant

    async def put(self, tickets: Iterable[NewTicket]) -> None:
        await desk.import_tickets(self._database, self._tenant, tickets)

    async def tickets(self) -> list[HeldTicket]:
        found = await desk.find_tickets(self._database, self._tenant, limit=desk.MOST_FOUND)
        return [_held(ticket) for ticket in sorted(found, key=lambda t: t.id)]

    async def ticket(self, number: str) -> HeldTicket | None:
        found = await desk.show_ticket(self._database, self._tenant, number)
        return None if found is None else _held(found)

    async def reply_as_customer(self, number: str, body: str) -> None:
        await desk.write_as_customer(self._database, self._tenant, number, body)

    async def reopen(self, number: str) -> None:
        before = await desk.show_ticket(self._database, self._tenant, number)
        if before is not None:
            await desk.reopen_ticket(
                self._database,
                self._tenant,
                number,
                author=before.customer_name,
                body=CUSTOMER_REOPENS,
            )

    def goal(self, number: str) -> str:
        return f"close {number}"

    async def fail(
        self, fault: DemoFault, is_approved: Callable[[], Awaitable[bool]], tried: Tried
    ) -> None:
        raise AssertionError("nothing comes between a close here and the record of it")

    async def until_it_is_over(self) -> None:
        return

    async def __aenter__(self) -> BuiltInDesk:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return


def _held(ticket: Ticket) -> HeldTicket:
    closes = sum(change.kind is ChangeKind.CLOSED for change in ticket.changes)
    return HeldTicket(ticket.id, ticket.version, ticket.status, ticket.subject, closes, 0)
