"""How runs end: ways to bring one to where it ends, and to read what is told of it."""

from __future__ import annotations

from executor.domain.ids import RunId
from executor.domain.payloads import JsonObject
from executor.engine.card_record import RunRecord
from executor.engine.last_account import Standing, last_account
from executor.engine.records import read_run
from executor.engine.setup import activate_policy
from tests.support.fake_model import FakeModel, calls, says
from tests.support.office import TENANT, Office, closing, policy
from tests.support.working import Working

READ = says("", calls("read_ticket", {"ticket_id": "4101"}))
PROPOSAL: JsonObject = {
    "ticket_id": "4101",
    "language": "en",
    "subject": "Ticket 4101 closed",
    "message": "Your invoice is corrected.",
}
PROPOSE = says("", calls("propose_closing", PROPOSAL))


async def ended(office: Office, run_id: RunId) -> tuple[str, str | None]:
    """How a run stands, and why."""
    [(status, reason)] = await office.rows(
        "SELECT status, reason FROM runs WHERE id = :r", r=run_id
    )
    return status, reason


async def card_of(office: Office, run_id: RunId) -> RunRecord:
    """What a run's own card is drawn from."""
    async with office.database.transaction() as conn:
        return await read_run(conn, TENANT, run_id)


async def account_of(office: Office, run_id: RunId) -> dict[Standing, list[int]]:
    """The numbers of what a run has asked for, by what has become of it."""
    record = await card_of(office, run_id)
    account = last_account(record.accounted, record.progress.steps)
    return {
        standing: [operation.number for operation in told]
        for standing, told in account.operations.items()
    }


async def limited(office: Office, **limits: int) -> None:
    """Make a policy with these limits of runs the active one."""
    await activate_policy(office.engine, policy(run=limits))


async def waiting(office: Office) -> Working:
    """A run whose proposal is shown and waits for people."""
    working = await Working.propose(office, closing())
    await working.drive()
    await office.show()
    return working


async def paused(office: Office, **limits: int) -> Working:
    """A run that has no money for its second call, and asks people for more."""
    money = {"run_microusd": 1_000, "day_microusd": 100_000}
    await activate_policy(office.engine, policy(budget=money, run=limits))
    working = await Working.start(office, FakeModel([READ, says("All is well.")]))
    await working.drive()
    assert await ended(office, working.run_id) == ("paused", "budget_limit")
    return working


async def raises(office: Office) -> list[tuple[str, str | None]]:
    """How the raises that were asked for stand."""
    return [
        (status, reason)
        for status, reason in await office.rows(
            "SELECT status, reason FROM operations WHERE kind = 'raise_budget' ORDER BY number"
        )
    ]
