"""The mail providers' doubles as scenes: tickets at the built-in desk, mails at the double."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import cast

import asyncpg
from pydantic import SecretStr

from bot.sandbox.clock import VirtualClock
from bot.sandbox.mailbox import Mailbox
from bot.sandbox.mailbox_faults import Close, Hang, Point, Reply
from bot.sandbox.mailbox_faults import Fault as MailboxFault
from bot.sandbox.postmark_double import PostmarkDouble
from bot.sandbox.provider_faults import PlannedFault
from bot.sandbox.resend_double import ResendDouble
from executor.adapters.mail.postmark import PostmarkMail
from executor.adapters.mail.resend import ResendMail
from executor.adapters.mail.smtp import SmtpMail
from executor.adapters.mail.smtp_url import parse_smtp_url
from executor.domain.ids import OperationId
from executor.domain.new_ticket import NewTicket
from executor.engine.ports import MailPort
from executor.store import clock, desk
from tests.support.fake_mail import FakeMail
from tests.support.office import TENANT, Office
from tests.support.story import Scene

Double = ResendDouble | PostmarkDouble | Mailbox
PATIENCE_SECONDS = 20.0
SEARCH_LAG_SECONDS = 200.0


class MailScene(Scene):
    """One mail provider."""

    gives_up = PATIENCE_SECONDS

    def __init__(
        self,
        office: Office,
        raw: asyncpg.Connection[asyncpg.Record],
        time: VirtualClock,
        double: Double,
        mail: MailPort,
    ) -> None:
        super().__init__(office, raw, time)
        self.double = double
        self.capability = mail.capability
        office.mail = cast("FakeMail", mail)
        self._number = 0
        self._before = 0
        self._hung = False

    @property
    def http(self) -> ResendDouble | PostmarkDouble:
        """The double of a JSON provider."""
        assert not isinstance(self.double, Mailbox)
        return self.double

    async def make_tickets(self, numbers: Sequence[int]) -> None:
        """Import them."""
        async with self.office.database.transaction() as conn:
            now = await clock.now(conn)
            for number in numbers:
                await desk.import_ticket(conn, TENANT, _ticket(number), now)

    async def version(self, number: int) -> int:
        """A ticket of two messages."""
        return 2

    async def calm_down(self) -> None:
        """Forget every fault, and listen."""
        self.double.faults.clear()
        if isinstance(self.double, PostmarkDouble):
            self.double.search_faults.clear()
        if not isinstance(self.double, Mailbox):
            await self.double.listen()

    def begin(self, number: int) -> None:
        """Count from here."""
        self._number, self._before, self._hung = number, self.double.accepted, False

    async def taken(self) -> tuple[int, int, int]:
        """The desk is our own: its close is what its record says."""
        [(status,)] = await self.office.rows(
            "SELECT status FROM desk_tickets WHERE id = :n", n=str(self._number)
        )
        return self._accepted(), int(status == "closed"), 0

    def _accepted(self) -> int:
        """Count the mails about this ticket: what an earlier story left hanging is not of it."""
        if isinstance(self.double, Mailbox):
            return self.double.accepted - self._before
        subject = self.proposal(self._number).subject
        field = "Subject" if isinstance(self.double, PostmarkDouble) else "subject"
        return sum(1 for mail in self.double.mails if mail.fields[field] == subject)

    async def hangs(self) -> None:
        """Wait for the double to hang."""
        if self._hung:
            return
        if isinstance(self.double, Mailbox):
            await self.double.wait_for_hang()
        else:
            await self.double.faults.wait_for_hang()
        self._hung = True

    def fail(self, fault: PlannedFault, *, call: int | None = 1) -> None:
        """Fail at a call counted from here, or at every one."""
        at = None if call is None else self.http.faults.calls + call
        self.http.fail(fault, call=at)

    def fail_search(self, fault: PlannedFault, *, call: int | None = 1) -> None:
        """Let a search fail, or every one."""
        assert isinstance(self.double, PostmarkDouble)
        faults = self.double.search_faults
        faults.plan(fault, call=None if call is None else faults.calls + call)

    def fail_at(self, point: Point, action: Close | Hang | Reply) -> None:
        """Fail at this point of the next conversation."""
        assert isinstance(self.double, Mailbox)
        self.double.fail(MailboxFault(point, action, conversation=self.double.conversations + 1))

    async def listen_again(self, operation: OperationId) -> None:
        """Let the provider be there again."""
        self.http.faults.clear()
        await self.http.listen()

    async def accept_late(self, operation: OperationId) -> None:
        """Let what hangs be accepted, if it has come so far."""
        if self._hung:
            before = self.double.accepted
            self.http.faults.release()
            await self.http.accepted_mails.wait_for(lambda mails: mails.accepted > before)

    async def cancel(self, operation: OperationId) -> None:
        """Cancel the run at a person's word."""
        await self.office.cancel(await self.office.run_of(operation))

    async def be_away(self, operation: OperationId) -> None:
        """Let no machine of ours work for a day."""
        await self.pass_time(86_400.0)


@asynccontextmanager
async def mail_scene(
    provider: str, office: Office, raw: asyncpg.Connection[asyncpg.Record]
) -> AsyncIterator[MailScene]:
    """Open the scene of one provider."""
    [(now,)] = await office.rows("SELECT extract(epoch FROM signoff_clock())")
    time = VirtualClock(float(now))
    bound = PATIENCE_SECONDS
    double: Double
    match provider:
        case "resend":
            double = ResendDouble(clock=time)
        case "postmark":
            double = PostmarkDouble(clock=time, search_lag_seconds=SEARCH_LAG_SECONDS)
        case _:
            double = Mailbox()
    async with double:
        yield MailScene(office, raw, time, double, _adapter(double, bound))
        if isinstance(double, Mailbox):
            double.release()
        else:
            double.faults.release()


def _adapter(double: Double, bound: float) -> MailPort:
    match double:
        case ResendDouble():
            return ResendMail(
                SecretStr("re_sandbox"), api_url=double.url, longest_request_seconds=bound
            )
        case PostmarkDouble():
            return PostmarkMail(
                SecretStr("sandbox-token"), api_url=double.url, longest_request_seconds=bound
            )
        case Mailbox():
            return SmtpMail(parse_smtp_url(double.url), longest_request_seconds=bound)


def _ticket(number: int) -> NewTicket:
    return NewTicket.model_validate(
        {
            "id": str(number),
            "subject": f"Invoice {number}",
            "language": "en",
            "customer": {"name": "Pat Doe", "email": "pat@cust.example"},
            "messages": [
                {"kind": "customer", "author": "Pat Doe", "body": "It is wrong."},
                {"kind": "agent", "author": "Ann", "body": "It is corrected now."},
            ],
        }
    )
