"""An office whose mail goes to a provider double, and what a worker and a reconciler do there.

Time stands still but where ``pass_time`` moves it, on the database's clock and on the double's
together; ``until_nothing_is_due`` jumps from one due moment to the next.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from bot.sandbox.clock import VirtualClock
from executor.domain.ids import OperationId
from executor.engine.claims import ClaimedOperation
from executor.engine.executing import execute, openings
from executor.engine.leases import operation_keeper
from executor.engine.ports import MailPort
from executor.engine.reconciler import reconcile
from executor.engine.recovering import recover_due
from tests.support.fake_mail import FakeMail
from tests.support.office import Office

MOST_STEPS = 40
_NEXT = """
SELECT extract(epoch FROM min(at) - signoff_clock()) FROM (
    SELECT recover_at AS at FROM attempts
    UNION ALL SELECT conclude_at FROM attempts WHERE status = 'dispatched'
    UNION ALL SELECT due_at FROM operations WHERE status IN ('approved', 'executing')
) AS due"""


@dataclass
class Doubt:
    """One office, one provider; ``seconds`` counts how far time was moved."""

    office: Office
    mail: MailPort
    clock: VirtualClock = field(default_factory=VirtualClock)
    seconds: float = 0.0

    def __post_init__(self) -> None:
        """Let everything that the office does use this provider."""
        self.use(self.mail)

    def use(self, mail: MailPort) -> None:
        """Use another declaration of the provider from now on."""
        self.mail = mail
        # The office's own tests look into their fake; these look into the double.
        self.office.mail = cast("FakeMail", mail)

    async def pass_time(self, seconds: float) -> None:
        """Move both clocks, and look at everybody again."""
        await self.office.later(seconds=seconds)
        self.clock.advance(seconds)
        self.seconds += seconds

    async def claimed(self, ticket: str = "4101") -> ClaimedOperation:
        """Walk to an operation that a worker holds."""
        return await self.office.claimed(ticket)

    async def execute(self, claimed: ClaimedOperation, office: Office | None = None) -> None:
        """Open, call and report, as a worker does with what it holds."""
        engine = (office or self.office).engine
        keeper = operation_keeper(engine, claimed.claim.key, claimed.lease)
        providers = self.office.providers
        await execute(engine, providers, openings(engine, providers), claimed.claim, keeper)

    async def recover(self) -> int:
        """Take the steps of recovery that are due."""
        return await recover_due(self.office.engine, self.office.providers)

    async def work(self) -> None:
        """Do everything that is due now: conclude, recover, and drive what is claimed."""
        await reconcile(self.office.engine)
        await self.recover()
        for claimed in await self.office.claim_operations():
            await self.execute(claimed)

    async def next_due(self) -> float | None:
        """Say in how many seconds a machine has to do something, if ever."""
        [(seconds,)] = await self.office.rows(_NEXT)
        return None if seconds is None else float(seconds)

    async def until_nothing_is_due(self) -> int:
        """Let all machines do all that they will ever do; returns in how many steps."""
        for step in range(MOST_STEPS):
            await self.work()
            wait = await self.next_due()
            if wait is None:
                return step
            await self.pass_time(max(wait, 0.0) + 0.01)
        raise AssertionError(f"something is still due after {MOST_STEPS} steps")

    async def sent(self, operation: OperationId) -> list[tuple[str, int]]:
        """List the attempts at an operation with the searches made for each."""
        return [
            (status, lookups)
            for status, lookups in await self.office.rows(
                "SELECT status, lookups FROM attempts WHERE operation_id = :o ORDER BY number",
                o=operation,
            )
        ]

    async def asked(self, operation: OperationId) -> str | None:
        """Say why a person is asked, as the card shows it with an attempt that is in doubt."""
        [(why,)] = await self.office.rows(
            "SELECT max(evidence ->> 'a_person_is_asked') FROM attempts WHERE operation_id = :o "
            "AND status = 'unknown'",
            o=operation,
        )
        return None if why is None else str(why)
