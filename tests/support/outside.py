"""An office whose tickets are at an outside desk's double, and what people do there.

The double's clock begins at the database's, and ``Doubt.pass_time`` moves both.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol

from bot.sandbox.clock import VirtualClock
from bot.sandbox.desk_faults import DeskFaults
from bot.sandbox.github_double import OWNER, REPOSITORY, GithubDouble
from bot.sandbox.github_double import TOKEN as GITHUB_TOKEN
from bot.sandbox.zendesk_account import Triggers
from bot.sandbox.zendesk_double import EMAIL, ZendeskDouble
from bot.sandbox.zendesk_double import TOKEN as ZENDESK_TOKEN
from executor.adapters.tickets.github_issues import GithubIssues, GithubSettings
from executor.adapters.tickets.zendesk import Zendesk, ZendeskSettings
from executor.domain.closing import ProposeClosing
from executor.domain.ids import OperationId, RunId
from executor.domain.policy import Policy
from executor.domain.stamp import DeskVersion
from executor.engine.converging import Accepted, AcceptResult
from executor.engine.desk_port import TicketDesk
from executor.engine.setup import activate_policy
from tests.support.doubt import Doubt
from tests.support.fake_mail import FakeMail
from tests.support.office import Office, closing, policy

TICKET = "4101"
PAT = "pat@cust.example"
BOUND_SECONDS = 5.0


class There(Protocol):
    """What tests see and do at a desk, whichever it is."""

    @property
    def faults(self) -> DeskFaults: ...

    @property
    def is_closed(self) -> bool: ...

    @property
    def closes(self) -> int: ...

    @property
    def notes(self) -> list[str]: ...

    def customer_writes(self) -> None: ...

    def customer_reopens(self) -> None: ...

    def somebody_closes(self) -> None: ...


@dataclass
class ZendeskThere:
    """Ticket 4101 at Zendesk: asked, and answered a minute later."""

    double: ZendeskDouble

    @property
    def faults(self) -> DeskFaults:
        return self.double.faults

    @property
    def is_closed(self) -> bool:
        return bool(self.double.account.tickets[4101].record["status"] == "solved")

    @property
    def closes(self) -> int:
        return self.double.applied

    @property
    def notes(self) -> list[str]:
        return [
            event["body"]
            for audit in self.double.account.tickets[4101].audits
            for event in audit["events"]
            if event["type"] == "Comment" and not event["public"]
        ]

    def customer_writes(self) -> None:
        self.double.account.customer_replies(4101, "still broken")

    def customer_reopens(self) -> None:
        self.double.account.customer_replies(4101, "it came back")

    def somebody_closes(self) -> None:
        self.double.account.agent_edits(4101, status="solved")


@dataclass
class GithubThere:
    """Issue 4101 at GitHub: asked, and answered a minute later."""

    double: GithubDouble

    @property
    def faults(self) -> DeskFaults:
        return self.double.faults

    @property
    def is_closed(self) -> bool:
        return bool(self.double.repository.issues[4101].record["state"] == "closed")

    @property
    def closes(self) -> int:
        return self.double.state_changes

    @property
    def notes(self) -> list[str]:
        comments = self.double.repository.issues[4101].comments
        return [comment["body"] for comment in comments if "signoff-" in comment["body"]]

    def customer_writes(self) -> None:
        self.double.repository.comment(4101, "pat", "still broken")

    def customer_reopens(self) -> None:
        self.double.repository.change(4101, "pat", {"state": "open"})

    def somebody_closes(self) -> None:
        self.double.repository.change(4101, "kim", {"state": "closed"})


@dataclass
class Outside:
    """One office, one outside desk with one ticket, and mail that always arrives."""

    office: Office
    there: There
    clock: VirtualClock
    mail: FakeMail
    doubt: Doubt = field(init=False)

    def __post_init__(self) -> None:
        """Let recovery use the same mail."""
        self.doubt = Doubt(self.office, self.mail, self.clock)

    @property
    def desk(self) -> TicketDesk:
        """The adapter that the office uses."""
        assert self.office.desk is not None
        return self.office.desk

    async def version(self) -> DeskVersion:
        """Read the ticket as a run does before it proposes."""
        seen = await self.desk.read(TICKET)
        assert seen is not None
        return seen.stamp

    async def ask(
        self, version: DeskVersion | None, *proposals: ProposeClosing, run_id: RunId | None = None
    ) -> list[AcceptResult]:
        """Propose in a run of its own; GitHub tells no address, so the proposal names it."""
        run_id = run_id or await self.office.start_run()
        claimed = await self.office.claim_run(run_id)
        asked = proposals or (closing(TICKET, to=[PAT]),)
        return await self.office.ask(run_id, claimed, *asked, version=version)

    async def proposed(self) -> OperationId:
        """Walk to a proposal whose card is shown; a minute passes."""
        [result] = await self.ask(await self.version())
        assert isinstance(result, Accepted), result
        await self.office.show()
        await self.doubt.pass_time(60)
        return result.operation_id

    async def approved(self) -> OperationId:
        """Walk to an approved operation."""
        operation = await self.proposed()
        await self.office.click(operation)
        return operation

    async def finish(self) -> int:
        """Let all machines do all that they will ever do."""
        return await self.doubt.until_nothing_is_due()

    async def until_closed(self, operation: OperationId) -> None:
        """Do one part after the other until the ticket is closed, and nothing after that."""
        for _ in range(5):
            if await self.is_applied(operation, "ticket.close"):
                return
            [claimed] = await self.office.claim_operations()
            await self.doubt.execute(claimed)
        raise AssertionError("the ticket was not closed")

    async def is_applied(self, operation: OperationId, kind: str) -> bool:
        """Say whether one part is done."""
        return (kind, "applied") in await self.parts(operation)

    async def parts(self, operation: OperationId) -> list[tuple[str, str]]:
        """List the parts with where each stands."""
        rows = await self.office.rows(
            "SELECT kind, status FROM effects WHERE operation_id = :o ORDER BY position",
            o=operation,
        )
        return [(kind, status) for kind, status in rows]

    async def detail(self, operation: OperationId) -> dict[str, object]:
        """Read what the record tells beside the reason."""
        [(detail,)] = await self.office.rows(
            "SELECT detail FROM operations WHERE id = :o", o=operation
        )
        return dict(detail)


def allowing() -> Policy:
    """A policy under which a desk may mail the customer as well."""
    return policy(tickets={"allow_desk_notification": True})


@asynccontextmanager
async def at_zendesk(
    office: Office,
    *,
    notifies: bool = False,
    closing_tag: str | None = None,
    kind: type[Zendesk] = Zendesk,
) -> AsyncIterator[Outside]:
    """Put the office's tickets into Zendesk."""
    clock = await _clock_of(office)
    triggers = Triggers(on_solved=notifies, silent_tag="silent")
    async with ZendeskDouble(clock, triggers) as double:
        account = double.account
        account.open_ticket(4101, "Invoice", "It is wrong.", name="Pat", email=PAT, tags=("vip",))
        clock.advance(60)
        account.agent_edits(4101, comment={"body": "It is corrected now.", "public": True})
        account.mails.clear()
        clock.advance(60)
        settings = ZendeskSettings(
            url=double.url,
            email=EMAIL,
            api_token=ZENDESK_TOKEN,
            notifies_on_close=notifies,
            closing_tag=closing_tag,
        )
        office.desk = kind(settings, longest_request_seconds=BOUND_SECONDS)
        yield Outside(office, ZendeskThere(double), clock, FakeMail())


@asynccontextmanager
async def at_github(
    office: Office, *, kind: type[GithubIssues] = GithubIssues
) -> AsyncIterator[Outside]:
    """Put the office's tickets into GitHub Issues; it always mails, which the policy allows."""
    clock = await _clock_of(office)
    await activate_policy(office.engine, allowing())
    async with GithubDouble(clock) as double:
        double.repository.open_issue(4101, "Invoice", "It is wrong.", login="pat")
        clock.advance(60)
        double.repository.comment(4101, "kim", "It is corrected now.")
        clock.advance(60)
        settings = GithubSettings(OWNER, REPOSITORY, token=GITHUB_TOKEN, url=double.url)
        office.desk = kind(settings, longest_request_seconds=BOUND_SECONDS)
        yield Outside(office, GithubThere(double), clock, FakeMail())


async def _clock_of(office: Office) -> VirtualClock:
    [(now,)] = await office.rows("SELECT extract(epoch FROM signoff_clock())")
    return VirtualClock(float(now))


def kinds(rows: object) -> Sequence[str]:
    """Name the kinds of the changes that a reason tells of."""
    assert isinstance(rows, list)
    return [row["kind"] for row in rows]
