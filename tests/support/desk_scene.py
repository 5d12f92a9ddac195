"""The outside desks' doubles as scenes: tickets at the double, mails at a provider with keys that
never fails, so that whatever stays unknown is the desk's.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import cast

import asyncpg

from bot.sandbox.clock import VirtualClock
from bot.sandbox.desk_faults import READ, DeskFault, DeskFaults, PlannedDeskFault
from bot.sandbox.github_double import OWNER, REPOSITORY, GithubDouble
from bot.sandbox.github_double import TOKEN as GITHUB_TOKEN
from bot.sandbox.github_repository import OUR_LOGIN
from bot.sandbox.model import Json
from bot.sandbox.zendesk_account import OUR_AGENT, Triggers
from bot.sandbox.zendesk_double import EMAIL, ZendeskDouble
from bot.sandbox.zendesk_double import TOKEN as ZENDESK_TOKEN
from executor.adapters.tickets.github_issues import GithubIssues, GithubSettings
from executor.adapters.tickets.zendesk import Zendesk, ZendeskSettings
from executor.domain.declaration import Declaration
from executor.domain.effect import Capability, EffectKind, Outcome, OutcomeKind
from executor.domain.email import EmailContent
from executor.domain.frozen_email import freeze
from executor.domain.ids import OperationId, RunId
from executor.domain.stamp import DeskVersion
from executor.engine.desk_port import TicketDesk
from executor.engine.endings import cancel
from executor.engine.ports import OutgoingMail
from executor.engine.setup import activate_policy
from tests.support.fake_mail import FakeMail
from tests.support.office import RENE, TENANT, Office
from tests.support.outside import allowing
from tests.support.story import Scene

BOUND_SECONDS = 5.0
PAT = "pat@cust.example"


class KeyedMail:
    """A mail provider in memory that drops repeats, and asks at each mail whether it is time."""

    provider = "keyed:test"
    declaration = Declaration(
        "Keyed", EffectKind.EMAIL_SEND, Capability.KEYED, "nobody", key_window=timedelta(days=1)
    )
    capability = declaration.capability
    longest_request_seconds = 5.0

    def __init__(self) -> None:
        self.keys: set[str] = set()
        self.is_time: Callable[[], bool] = lambda: True

    def freeze(self, content: EmailContent, reference: str) -> bytes:
        """Make the MIME message."""
        return freeze(content)

    async def send(self, mail: OutgoingMail) -> Outcome:
        """Take it, once for each key."""
        assert self.is_time(), "a mail left before its ticket was closed"
        self.keys.add(mail.idempotency_key)
        return Outcome(OutcomeKind.APPLIED, {"provider": self.provider, "status": 200})


class DeskScene(Scene):
    """One outside desk."""

    outside_desk = True
    gives_up = 2 * BOUND_SECONDS

    def __init__(
        self,
        office: Office,
        raw: asyncpg.Connection[asyncpg.Record],
        time: VirtualClock,
        double: ZendeskDouble | GithubDouble,
        desk: TicketDesk,
    ) -> None:
        super().__init__(office, raw, time)
        self.double, self.desk, self.capability = double, desk, desk.capability
        self.mail = KeyedMail()
        self.mail.is_time = lambda: self.counted()[0] > 0
        office.desk = desk
        office.mail = cast("FakeMail", self.mail)
        self.number = 0
        self._hanging: list[PlannedDeskFault] = []

    @property
    def faults(self) -> DeskFaults:
        """What goes wrong at the double."""
        return self.double.faults

    async def make_tickets(self, numbers: Sequence[int]) -> None:
        """Let a customer ask and an agent answer a minute later; another minute passes."""
        for number in numbers:
            self.open_ticket(number)
        await self.pass_time(60.0)
        for number in numbers:
            self.answer(number)
        await self.pass_time(60.0)

    async def version(self, number: int) -> DeskVersion:
        """Read the ticket as a run does before it proposes."""
        seen = await self.desk.read(str(number))
        assert seen is not None
        return seen.stamp

    async def calm_down(self) -> None:
        """Forget every fault."""
        self.faults.clear()
        self._hanging.clear()

    def begin(self, number: int) -> None:
        """Count at this ticket."""
        self.number = number
        self.mail.keys.clear()

    async def taken(self) -> tuple[int, int, int]:
        """Count mails, and what the desk took from us."""
        return (len(self.mail.keys), *self.counted())

    async def hangs(self) -> None:
        """Wait until a request that hangs has come."""
        if not self._hanging:
            await asyncio.Event().wait()
        await self._hanging.pop().struck.wait()

    # --- What goes wrong ---------------------------------------------------------------------

    def fail(
        self,
        fault: DeskFault | None,
        change: int = 1,
        *,
        then: Callable[[], None] | None = None,
    ) -> None:
        """Let a change fail, counted from here; ``then`` happens in that moment, before it."""
        planned = self.faults.add(fault, change, first=then)
        if fault in (DeskFault.HANGS_BEFORE, DeskFault.HANGS_AFTER):
            self._hanging.append(planned)

    def fail_always(self, fault: DeskFault, change: int = 1) -> None:
        """Let every change fail from this one on."""
        for number in range(change, change + 10):
            self.fail(fault, number)

    def away(self, readings: int) -> None:
        """Let so many readings fail from now on."""
        for number in range(1, readings + 1):
            self.faults.add(DeskFault.ERROR_BEFORE, number, request=READ)

    def land_after(self, seconds: float) -> None:
        """Let what arrives late arrive so much later."""
        self.later(seconds, self._land)

    def _land(self) -> None:
        self.faults.land()

    def release_after(self, seconds: float) -> None:
        """Let what hangs go on so much later."""
        self.later(seconds, self.faults.release)

    def a_moment_later(self) -> None:
        """Let the desk's clock go on: its stamps tell seconds apart, and no less."""
        self.time.advance(2.0)

    async def cancel(self, operation: OperationId) -> None:
        """Cancel the run at a person's word."""
        run_id: RunId = await self.office.run_of(operation)
        [(number,)] = await self.office.rows("SELECT number FROM runs WHERE id = :r", r=run_id)
        await cancel(self.office.engine, TENANT, number, RENE)

    # --- What people do, and what is counted -------------------------------------------------

    def open_ticket(self, number: int) -> None:
        """Let a customer open a ticket."""
        raise NotImplementedError

    def answer(self, number: int) -> None:
        """Let an agent answer it."""
        raise NotImplementedError

    def somebody_writes(self) -> None:
        """Let the customer write; a closed Zendesk ticket opens again by that."""
        raise NotImplementedError

    def somebody_closes(self) -> None:
        """Let another agent close the ticket."""
        raise NotImplementedError

    def counted(self) -> tuple[int, int]:
        """Count the closes and the notes that are ours at this story's ticket."""
        raise NotImplementedError


class ZendeskScene(DeskScene):
    """An account of Zendesk's."""

    double: ZendeskDouble

    def open_ticket(self, number: int) -> None:
        self.double.account.open_ticket(
            number, "Invoice", "It is wrong.", name="Pat", email=PAT, tags=("vip",)
        )

    def answer(self, number: int) -> None:
        answer = {"body": "It is corrected now.", "public": True}
        self.double.account.agent_edits(number, comment=answer)

    def somebody_writes(self) -> None:
        self.a_moment_later()
        self.double.account.customer_replies(self.number, "still broken")

    def somebody_closes(self) -> None:
        self.a_moment_later()
        self.double.account.agent_edits(self.number, status="solved")

    def counted(self) -> tuple[int, int]:
        audits = self.double.account.tickets[self.number].audits
        ours = [e for audit in audits if audit["author_id"] == OUR_AGENT for e in audit["events"]]
        closes = [e for e in ours if e.get("field_name") == "status" and e["value"] == "solved"]
        return len(closes), sum(1 for e in ours if e["type"] == "Comment")


class GithubScene(DeskScene):
    """A repository at GitHub."""

    double: GithubDouble

    def __init__(
        self,
        office: Office,
        raw: asyncpg.Connection[asyncpg.Record],
        time: VirtualClock,
        double: GithubDouble,
        desk: TicketDesk,
    ) -> None:
        super().__init__(office, raw, time, double, desk)
        self._closes: Counter[int] = Counter()
        self._change = double.repository.change
        double.repository.change = self._counting  # type: ignore[method-assign]

    def _counting(self, number: int, login: str, changes: Json) -> None:
        self._change(number, login, changes)
        # One that finds the issue closed already changes nothing, and is taken all the same.
        self._closes[number] += login == OUR_LOGIN and changes.get("state") == "closed"

    def open_ticket(self, number: int) -> None:
        self.double.repository.open_issue(number, "Invoice", "It is wrong.", login="pat")

    def answer(self, number: int) -> None:
        self.double.repository.comment(number, "kim", "It is corrected now.")

    def somebody_writes(self) -> None:
        self.a_moment_later()
        self.double.repository.comment(self.number, "pat", "still broken")

    def somebody_closes(self) -> None:
        self.a_moment_later()
        self.double.repository.change(self.number, "kim", {"state": "closed"})

    def counted(self) -> tuple[int, int]:
        comments = self.double.repository.issues[self.number].comments
        notes = sum(1 for comment in comments if "signoff-" in comment["body"])
        return self._closes[self.number], notes


@asynccontextmanager
async def desk_scene(
    desk: str, office: Office, raw: asyncpg.Connection[asyncpg.Record]
) -> AsyncIterator[DeskScene]:
    """Open the scene of one desk; GitHub always mails, which the policy allows."""
    [(now,)] = await office.rows("SELECT extract(epoch FROM signoff_clock())")
    time = VirtualClock(float(now))
    if desk == "zendesk":
        async with ZendeskDouble(time, Triggers(on_solved=False)) as account:
            settings = ZendeskSettings(
                url=account.url, email=EMAIL, api_token=ZENDESK_TOKEN, notifies_on_close=False
            )
            adapter: TicketDesk = Zendesk(settings, longest_request_seconds=BOUND_SECONDS)
            yield ZendeskScene(office, raw, time, account, adapter)
        return
    await activate_policy(office.engine, allowing())
    async with GithubDouble(time, content_limit=10_000) as repository:
        place = GithubSettings(OWNER, REPOSITORY, token=GITHUB_TOKEN, url=repository.url)
        adapter = GithubIssues(place, longest_request_seconds=BOUND_SECONDS)
        yield GithubScene(office, raw, time, repository, adapter)
