"""The demo's ticket desk when it is outside: a double of Zendesk or of GitHub's issues.

Each holds the sandbox's tickets under the numbers that the built-in desk gives them, finds them
again after a restart, and fails once as it is told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Protocol

from bot.sandbox.clock import WallClock
from bot.sandbox.demo_desk import CUSTOMER_REOPENS, DemoDesk, HeldTicket
from bot.sandbox.demo_faults import DemoFault, DeskKind
from bot.sandbox.desk_faults import DeskFault, DeskFaults, PlannedDeskFault
from bot.sandbox.github_double import OWNER, REPOSITORY, GithubDouble
from bot.sandbox.github_double import TOKEN as GITHUB_TOKEN
from bot.sandbox.github_repository import OUR_LOGIN, RepositoryIssue
from bot.sandbox.passing_fault import (
    GIVEN_UP_AFTER_SECONDS,
    LONGEST_REQUEST_SECONDS,
    RETRY_AFTER_SECONDS,
    PassingFault,
    Tried,
)
from bot.sandbox.provider_listener import Listener
from bot.sandbox.zendesk_account import OUR_AGENT, AccountTicket
from bot.sandbox.zendesk_double import EMAIL, ZendeskDouble
from bot.sandbox.zendesk_double import TOKEN as ZENDESK_TOKEN
from executor.domain.new_ticket import MessageKind, NewMessage, NewTicket
from executor.domain.ticket import TicketStatus

_FAULTS: Mapping[DemoFault, DeskFault] = {
    DemoFault.HANG_BEFORE: DeskFault.HANGS_BEFORE,
    DemoFault.HANG_AFTER: DeskFault.HANGS_AFTER,
    DemoFault.LOST_ANSWER: DeskFault.RESET_AFTER,
    DemoFault.ERROR_AFTER: DeskFault.ERROR_AFTER,
    DemoFault.CUT_BODY: DeskFault.CUT_BODY,
    DemoFault.REPEAT: DeskFault.REPEATED,
    DemoFault.CONFLICT: DeskFault.COLLISION,
    DemoFault.TOO_MANY: DeskFault.LIMITED_BARE,
    DemoFault.TOO_MANY_RETRY_AFTER: DeskFault.LIMITED,
    DemoFault.REJECT: DeskFault.REFUSED,
}
_GITHUB_LAG_SECONDS = 1


def outside_desk(kind: DeskKind, home: Path, port: int) -> DemoDesk:
    """Make the desk of that kind, which finds in ``home`` the tickets that it held before."""
    clock = _ImportClock()
    match kind:
        case DeskKind.BUILTIN:
            raise ValueError("the built-in desk is not outside")
        case DeskKind.ZENDESK:
            zendesk = ZendeskDouble(clock, port=port, spool=home / "zendesk.json")
            return ZendeskDesk(zendesk, clock)
        case DeskKind.GITHUB:
            github = GithubDouble(clock, port=port, spool=home / "github.json")
            return GithubDesk(github, clock)


class _ImportClock(WallClock):
    """Tells the time, or for a ticket that is put there the time when something was written."""

    at: datetime | None = None

    def now(self) -> float:
        return super().now() if self.at is None else self.at.timestamp()


class _Double(Protocol):
    """What both doubles have."""

    faults: DeskFaults
    listener: Listener

    @property
    def url(self) -> str: ...


class _OutsideDesk(PassingFault):
    """What is the same at every outside desk: where it listens, and how it fails."""

    def __init__(self, double: _Double) -> None:
        super().__init__()
        self._double = double

    @property
    def port(self) -> int | None:
        return int(self._double.url.rpartition(":")[2])

    async def fail(
        self, fault: DemoFault, is_approved: Callable[[], Awaitable[bool]], tried: Tried
    ) -> None:
        if fault is DemoFault.REFUSE:
            self._refuse_once(is_approved, tried)
            return
        planned = self._double.faults.add(_FAULTS[fault], retry_after=RETRY_AFTER_SECONDS)
        if planned.fault in (DeskFault.HANGS_BEFORE, DeskFault.HANGS_AFTER):
            self.end_later(_let_go(planned))

    def _refuse_once(self, is_approved: Callable[[], Awaitable[bool]], tried: Tried) -> None:
        faults, listener = self._double.faults, self._double.listener

        async def is_away() -> bool:
            away = await is_approved()
            if away:
                listener.refuse()
            return away

        async def come_back() -> None:
            await tried()
            faults.be_away(None)
            await listener.listen()

        faults.be_away(is_away)
        self.end_later(come_back())

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop_ending()
        self._double.faults.release()
        await self._double.listener.stop()


class ZendeskDesk(_OutsideDesk):
    """A double of Zendesk, none of whose triggers mails when a ticket is solved."""

    kind = DeskKind.ZENDESK

    def __init__(self, double: ZendeskDouble, clock: _ImportClock) -> None:
        super().__init__(double)
        self._account = double.account
        self._clock = clock

    @property
    def settings(self) -> Mapping[str, str]:
        return {
            "SIGNOFF_DESK": "zendesk",
            "ZENDESK_URL": self._double.url,
            "ZENDESK_EMAIL": EMAIL,
            "ZENDESK_API_TOKEN": ZENDESK_TOKEN,
            "ZENDESK_NOTIFIES_ON_CLOSE": "no",
            "SIGNOFF_DESK_LONGEST_REQUEST_SECONDS": str(LONGEST_REQUEST_SECONDS),
        }

    async def put(self, tickets: Iterable[NewTicket]) -> None:
        with self._account.kept.together():
            for ticket in tickets:
                if int(ticket.id) not in self._account.tickets:
                    self._put(ticket)
        self._clock.at = None

    def _put(self, ticket: NewTicket) -> None:
        number, account = int(ticket.id), self._account
        asked, *later = ticket.messages
        self._clock.at = asked.at
        account.open_ticket(
            number,
            ticket.subject,
            asked.body,
            name=ticket.customer.name,
            email=ticket.customer.email,
            locale=ticket.language,
        )
        customer = account.tickets[number].record["requester_id"]
        for message in later:
            self._clock.at = message.at
            by_customer = message.kind is MessageKind.CUSTOMER
            author = customer if by_customer else account.agent(message.author)
            public = message.kind is not MessageKind.NOTE
            account.update(number, author, {"comment": {"body": message.body, "public": public}})
        if ticket.status is TicketStatus.CLOSED:
            account.agent_edits(number, status="solved")

    async def tickets(self) -> list[HeldTicket]:
        return [_of_zendesk(ticket) for _, ticket in sorted(self._account.tickets.items())]

    async def ticket(self, number: str) -> HeldTicket | None:
        found = self._account.tickets.get(_number(number))
        return None if found is None else _of_zendesk(found)

    async def reply_as_customer(self, number: str, body: str) -> None:
        if _number(number) in self._account.tickets:
            self._account.customer_replies(_number(number), body)

    async def reopen(self, number: str) -> None:
        before = await self.ticket(number)
        if before is not None and before.status is TicketStatus.CLOSED:
            self._account.customer_replies(_number(number), CUSTOMER_REOPENS)

    def goal(self, number: str) -> str:
        return f"close {number}"

    async def __aenter__(self) -> ZendeskDesk:
        await self._double.listener.listen()
        return self


class GithubDesk(_OutsideDesk):
    """A double of GitHub's issues, which know a login of each customer, and no address."""

    kind = DeskKind.GITHUB

    def __init__(self, double: GithubDouble, clock: _ImportClock) -> None:
        super().__init__(double)
        self._repository = double.repository
        self._clock = clock
        self._addresses: dict[str, str] = {}

    @property
    def settings(self) -> Mapping[str, str]:
        return {
            "SIGNOFF_DESK": "github",
            "GITHUB_REPOSITORY": f"{OWNER}/{REPOSITORY}",
            "GITHUB_TOKEN": GITHUB_TOKEN,
            "GITHUB_API_URL": self._double.url,
            "SIGNOFF_GITHUB_LOOKUP_LAG_SECONDS": str(_GITHUB_LAG_SECONDS),
            "SIGNOFF_DESK_LONGEST_REQUEST_SECONDS": str(LONGEST_REQUEST_SECONDS),
        }

    async def put(self, tickets: Iterable[NewTicket]) -> None:
        with self._repository.kept.together():
            for ticket in tickets:
                self._addresses[ticket.id] = ticket.customer.email
                if int(ticket.id) not in self._repository.issues:
                    self._put(ticket)
        self._clock.at = None

    def _put(self, ticket: NewTicket) -> None:
        number, repository = int(ticket.id), self._repository
        customer = _login(ticket.customer.email.partition("@")[0])
        asked, *later = ticket.messages
        self._clock.at = asked.at
        repository.open_issue(number, ticket.subject, asked.body, login=customer)
        for message in _readable_by_everybody(later):
            self._clock.at = message.at
            by_customer = message.kind is MessageKind.CUSTOMER
            author = customer if by_customer else _login(message.author)
            repository.comment(number, author, message.body)
        if ticket.status is TicketStatus.CLOSED:
            repository.change(number, _login(ticket.messages[-1].author), {"state": "closed"})

    async def tickets(self) -> list[HeldTicket]:
        return [_of_github(issue) for _, issue in sorted(self._repository.issues.items())]

    async def ticket(self, number: str) -> HeldTicket | None:
        found = self._repository.issues.get(_number(number))
        return None if found is None else _of_github(found)

    async def reply_as_customer(self, number: str, body: str) -> None:
        issue = self._repository.issues.get(_number(number))
        if issue is not None:
            self._repository.comment(_number(number), issue.record["user"]["login"], body)

    async def reopen(self, number: str) -> None:
        issue = self._repository.issues.get(_number(number))
        if issue is not None:
            login = issue.record["user"]["login"]
            self._repository.change(_number(number), login, {"state": "open"})

    def goal(self, number: str) -> str:
        # Nobody else could tell the agent: an issue shows no address.
        return f"close {number} and write to {self._addresses[number]}"

    async def __aenter__(self) -> GithubDesk:
        await self._double.listener.listen()
        return self


def _of_zendesk(ticket: AccountTicket) -> HeldTicket:
    record = ticket.record
    ours = [audit for audit in ticket.audits if audit["author_id"] == OUR_AGENT]
    noted = [a for a in ours if any(e["type"] == "Comment" for e in a["events"])]
    closed = record["status"] in ("solved", "closed")
    return HeldTicket(
        str(record["id"]),
        len(ticket.audits),
        TicketStatus.CLOSED if closed else TicketStatus.OPEN,
        record["subject"],
        len(ours),
        len(noted),
    )


def _of_github(issue: RepositoryIssue) -> HeldTicket:
    record = issue.record
    notes = sum(comment["user"]["login"] == OUR_LOGIN for comment in issue.comments)
    moves = sum(event["actor"]["login"] == OUR_LOGIN for event in issue.events)
    return HeldTicket(
        str(record["number"]),
        1 + len(issue.comments),
        TicketStatus.CLOSED if record["state"] == "closed" else TicketStatus.OPEN,
        record["title"],
        notes + moves,
        notes,
    )


def _readable_by_everybody(messages: Iterable[NewMessage]) -> list[NewMessage]:
    """Leave out what only agents may see: an issue has no place for it."""
    return [message for message in messages if message.kind is not MessageKind.NOTE]


def _login(name: str) -> str:
    return "-".join("".join(c if c.isalnum() else " " for c in name.lower()).split())


def _number(text: str) -> int:
    """Read a ticket's number; one that is none is that of no ticket."""
    return int(text) if text.isascii() and text.isdigit() else -1


async def _let_go(planned: PlannedDeskFault) -> None:
    """Let what hangs go on once the executor has given up, and wait until it is through."""
    await planned.struck.wait()
    await asyncio.sleep(GIVEN_UP_AFTER_SECONDS)
    planned.released.set()
    await planned.over.wait()
