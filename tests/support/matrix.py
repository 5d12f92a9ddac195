"""One fault at one provider, played through to its end, and what the record says of it then."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from pydantic import SecretStr

from bot.sandbox.clock import VirtualClock
from bot.sandbox.mailbox import Mailbox
from bot.sandbox.postmark_double import PostmarkDouble
from bot.sandbox.resend_double import ResendDouble
from executor.adapters.mail.postmark import PostmarkMail
from executor.adapters.mail.resend import ResendMail
from executor.adapters.mail.smtp import SmtpMail
from executor.adapters.mail.smtp_url import parse_smtp_url
from executor.domain.effect import Capability
from executor.domain.ids import OperationId
from executor.engine.ports import MailPort
from tests.support.doubt import Doubt
from tests.support.failpoints import Crashed, Trap
from tests.support.office import Office

Double = ResendDouble | PostmarkDouble | Mailbox
PATIENT_SECONDS, HASTY_SECONDS = 20.0, 1.5


@dataclass
class Stage:
    """One provider, one office, one operation."""

    double: Double
    doubt: Doubt
    operation: OperationId | None = None

    @property
    def http(self) -> ResendDouble | PostmarkDouble:
        """The double of a JSON provider."""
        assert not isinstance(self.double, Mailbox)
        return self.double

    @property
    def postmark(self) -> PostmarkDouble:
        """The double that can be searched."""
        assert isinstance(self.double, PostmarkDouble)
        return self.double

    @property
    def mailbox(self) -> Mailbox:
        """The SMTP server."""
        assert isinstance(self.double, Mailbox)
        return self.double


async def _nothing(stage: Stage) -> None:
    return None


@dataclass(frozen=True)
class Scenario:
    """What goes wrong: planned before the first attempt, and what happens after it.

    ``killed_at`` is the failpoint at which the first worker dies. ``learnable`` is false where even
    a provider that could be asked tells nothing. ``hasty`` gives requests little time.
    """

    name: str
    plan: Callable[[Stage], None] = lambda stage: None
    after: Callable[[Stage], Awaitable[None]] = _nothing
    killed_at: str | None = None
    learnable: bool = True
    hasty: bool = False


@dataclass(frozen=True)
class Ending:
    """How it ended; ``row`` is its line of the matrix."""

    capability: Capability
    accepted: int
    status: str
    attempts: list[tuple[str, int]] = field(default_factory=list)
    asked: str | None = None

    def row(self, name: str) -> str:
        """Spell it as a line of the table."""
        searches = sum(lookups for _, lookups in self.attempts)
        cells = (
            name,
            str(self.accepted),
            self.status,
            str(len(self.attempts)),
            str(searches),
            self._learnt(searches),
        )
        return f"| {' | '.join(cells)} |"

    def _learnt(self, searches: int) -> str:
        if self.status == "unknown":
            return f"a person is asked: {self.asked or 'the provider tells nothing afterwards'}"
        if self.status != "succeeded":
            return "the provider's refusal"
        if searches:
            return "a search"
        if any(status == "unknown" for status, _ in self.attempts):
            return "the repeat under its key"
        return "the retry" if len(self.attempts) > 1 else "the answer"


@asynccontextmanager
async def _stage(provider: str, office: Office, *, hasty: bool) -> AsyncIterator[Stage]:
    bound = HASTY_SECONDS if hasty else PATIENT_SECONDS
    [(now,)] = await office.rows("SELECT extract(epoch FROM signoff_clock())")
    clock = VirtualClock(float(now))
    double: Double
    mail: MailPort
    match provider:
        case "resend":
            double = ResendDouble(clock=clock)
        case "postmark":
            double = PostmarkDouble(clock=clock, search_lag_seconds=200.0)
        case _:
            double = Mailbox()
    async with double:
        match double:
            case ResendDouble():
                mail = ResendMail(
                    SecretStr("re_sandbox"), api_url=double.url, longest_request_seconds=bound
                )
            case PostmarkDouble():
                mail = PostmarkMail(
                    SecretStr("sandbox-token"), api_url=double.url, longest_request_seconds=bound
                )
            case Mailbox():
                mail = SmtpMail(parse_smtp_url(double.url), longest_request_seconds=bound)
        try:
            yield Stage(double, Doubt(office, mail, clock))
        finally:
            if isinstance(double, Mailbox):
                double.release()
            else:
                double.faults.release()


async def play(provider: str, scenario: Scenario, office: Office, ticket: str) -> Ending:
    """Play one scenario until no machine has anything to do any more."""
    await office.import_ticket(ticket)
    async with _stage(provider, office, hasty=scenario.hasty) as stage:
        scenario.plan(stage)
        claimed = await stage.doubt.claimed(ticket)
        stage.operation = operation = claimed.claim.key[1]
        if scenario.killed_at is None:
            await stage.doubt.execute(claimed)
        else:
            trap = Trap(scenario.killed_at)
            with suppress(Crashed):
                await stage.doubt.execute(claimed, office.colleague(failpoints=trap))
            assert trap.sprung, scenario.name
        await scenario.after(stage)
        await stage.doubt.until_nothing_is_due()
        return Ending(
            stage.doubt.mail.capability,
            stage.double.accepted,
            await office.status(operation),
            await stage.doubt.sent(operation),
            await stage.doubt.asked(operation),
        )
