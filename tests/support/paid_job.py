"""The reference job with a model at a server, worked by real executors, and what it cost.

The server is the sandbox's double, which counts what it would charge. What the record says is
compared with that to the micro-dollar.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from bot.sandbox.mailbox import Mailbox
from bot.sandbox.model_double import ModelDouble
from bot.sandbox.model_reply import Billed, SaidReply
from executor.domain.charge_name import charge_label, parse_charge
from executor.domain.ids import ReservationId, RunId
from executor.domain.policy import Policy
from executor.domain.policy_money import PriceSection
from executor.engine.invoice import Invoiced, SettledNow, settle_invoiced
from executor.engine.status import history
from executor.store.database import Database
from tests.adapters.remote_models import MODEL, settings_for
from tests.support import invariants
from tests.support.nursery import Nursery
from tests.support.office import OTTO, RENE, TENANT, Office, policy
from tests.support.processes import Child
from tests.support.waiting import until_true

PATIENCE_SECONDS = 30.0
PRICE = PriceSection(
    input_usd_per_million=Decimal("1.1"), output_usd_per_million=Decimal(7)
).model_dump(mode="json", exclude_none=True)
_CALLS = """
SELECT c.status, v.id, v.status AS charge, v.amount_microusd AS amount,
       v.actual_microusd AS actual, c.input_tokens AS read, c.output_tokens AS written
FROM model_calls c JOIN reservations v ON v.tenant_id = c.tenant_id AND v.id = c.reservation_id
ORDER BY c.number
"""
_TOTALS = "SELECT sum(spent_microusd), sum(held_microusd), sum(unknown_microusd) FROM "


@dataclass(frozen=True)
class Way:
    """How a model is asked."""

    kind: str
    streamed: bool

    def __str__(self) -> str:
        return f"{self.kind}-{'streamed' if self.streamed else 'whole'}"


@dataclass(frozen=True)
class PaidCall:
    """One call of the model, as it is on record."""

    status: str
    id: ReservationId
    charge: str
    amount: int
    actual: int | None
    read: int | None
    written: int | None

    @property
    def came_to(self) -> tuple[str, str]:
        """How it ended, and what of its money."""
        return self.status, self.charge


def cost(billed: Billed) -> int:
    """Price a call in whole micro-dollars, rounded up, without the code that is tried."""
    return -(-(billed.input_tokens * 11 + billed.output_tokens * 70) // 10)


@dataclass
class PaidJob:
    """One run, its ticket, its mailbox, its model's server, and the executors that come and go."""

    office: Office
    database_url: str
    mailbox: Mailbox
    double: ModelDouble
    way: Way
    folder: Path
    nursery: Nursery
    active: Policy
    run_id: RunId = field(init=False)
    children: list[Child] = field(default_factory=list)

    async def start(self, **more: str) -> Child:
        """Start an executor."""
        child = Child(
            self.nursery,
            "executor",
            {
                "DATABASE_URL": self.database_url,
                "SIGNOFF_HOME": str(self.folder),
                "SIGNOFF_POLICY": str(self.folder / "policy.toml"),
                "SIGNOFF_SWEEP_SECONDS": "0.2",
                "SMTP_URL": f"{self.mailbox.url}?tls=none",
                **settings_for(self.way.kind, self.double.url, streamed=self.way.streamed),
                **more,
            },
            self.folder / f"executor-{len(self.children)}.log",
        )
        self.children.append(child)
        await child.start()
        return child

    async def approve(self) -> None:
        """Wait for what the model proposes, and approve it."""
        await self.until("SELECT count(*) = 1 FROM operations WHERE kind = 'close_ticket'")
        await self.office.show()
        [(operation,)] = await self.office.rows(
            "SELECT id FROM operations WHERE kind = 'close_ticket'"
        )
        await self.office.click(operation, RENE)

    async def approve_when_waiting(self, executor: Child) -> None:
        """Approve once that executor has nothing more to do, and is killed."""
        await self.until("SELECT bool_and(status = 'waiting') FROM runs")
        await executor.kill()
        await self.approve()

    async def until(self, query: str) -> None:
        """Wait until a query answers with true."""
        try:
            await until_true(self.office.database, query, timeout_seconds=PATIENCE_SECONDS)
        except TimeoutError:
            raise AssertionError("\n".join(c.tail() for c in self.children)) from None

    async def until_over(self) -> str:
        """Wait until the run has ended and no call is under way, and return how it ended."""
        await self.until("SELECT bool_and(ended_at IS NOT NULL) FROM runs")
        await self.until("SELECT count(*) = 0 FROM reservations WHERE status = 'held'")
        return await self.office.run_status(self.run_id)

    # What is true

    async def calls(self) -> list[PaidCall]:
        """Read the calls that are on record, in order."""
        return [PaidCall(*row) for row in await self.office.rows(_CALLS)]

    async def came_to(self) -> list[tuple[str, str]]:
        """Read how the calls ended, and what of their money."""
        return [call.came_to for call in await self.calls()]

    async def check_the_money(self) -> None:
        """Compare the record with what the server charged, to the micro-dollar."""
        calls, billed = await self.calls(), self.double.billed
        told = [c for c in calls if c.charge == "settled"]
        unknown = [c for c in calls if c.charge == "unknown"]
        read = [Billed(c.read, c.written) for c in told]  # type: ignore[arg-type]
        assert [c.actual for c in told] == [cost(b) for b in read]
        untold = Counter(billed) - Counter(read)
        assert sum(untold.values()) == len(billed) - len(told), "what was told was charged"
        assert sum(untold.values()) <= len(unknown), "what was charged and not told is held"
        charged = sum(cost(b) for b in billed)
        spent, held = sum(c.actual or 0 for c in told), sum(c.amount for c in unknown)
        assert charged <= spent + held
        dearest = max(map(cost, untold), default=0)
        assert all(dearest <= call.amount for call in unknown)
        await self.check_accounts(spent, held)

    async def check_accounts(self, spent: int, unknown: int) -> None:
        """Assert what the run's account and the days' say; nothing is held but what is unknown."""
        for account in ("run_budgets", "tenant_days"):
            [found] = await self.office.rows(_TOTALS + account)
            assert found == (spent, unknown, unknown), account

    async def settle_by_invoice(self, amounts: Iterable[int]) -> None:
        """Settle what is unknown, oldest first, as somebody would who reads it on the invoice."""
        unknown = [c for c in await self.calls() if c.charge == "unknown"]
        for call, amount in zip(unknown, amounts, strict=True):
            name = parse_charge(charge_label(call.id))
            assert name is not None
            said = Invoiced(name, amount, "stands on the invoice")
            result = await settle_invoiced(self.office.engine, TENANT, OTTO, said)
            assert isinstance(result, SettledNow), result

    async def check_the_rest(self, *, mails: int = 1) -> None:
        """Assert what holds of every job, whatever it cost."""
        assert self.mailbox.accepted == mails
        assert self.double.refused == [], "what was asked is what such a server takes"
        assert (await history(self.office.engine, TENANT, self.run_id)).broken is None
        await invariants.check(self.office.database)

    def asked_after(self) -> Counter[int]:
        """Count the requests by how many replies of the model each of them repeats."""
        return Counter(
            sum(message["role"] == "assistant" for message in asked.body["messages"])
            for asked in self.double.asked
        )


@asynccontextmanager
async def paid_job(
    database: Database,
    database_url: str,
    nursery: Nursery,
    folder: Path,
    way: Way,
    script: Iterable[SaidReply] = (),
    **sections: object,
) -> AsyncIterator[PaidJob]:
    """Queue the run; no executor of it outlives the block."""
    people = {
        "requesters": ["U0REQUESTER"],
        "approvers": ["U0REVIEWER"],
        "operators": ["U0OUTSIDER"],
    }
    active = policy(**{"people": people, "prices": {MODEL: PRICE}, **sections})
    document = active.model_dump(mode="json", by_alias=True, exclude_unset=True)
    (folder / "policy.toml").write_text("\n".join(_toml(document)))
    office = await Office.open(database, active=active)
    async with Mailbox() as mailbox, ModelDouble(script) as double:
        job = PaidJob(office, database_url, mailbox, double, way, folder, nursery, active)
        job.run_id = await office.start_run("close 4101")
        try:
            yield job
        finally:
            double.faults.release()
            for child in job.children:
                await child.kill()


def _toml(document: Mapping[str, Any], path: tuple[str, ...] = ()) -> list[str]:
    """Spell a policy's sections, the inner ones after what stands beside them."""
    lines = [f"[{'.'.join(path)}]"] if path else []
    inner = {name: value for name, value in document.items() if isinstance(value, dict)}
    for name, value in document.items():
        if name not in inner:
            lines.append(f"{name} = {json.dumps(value)}")
    for name, value in inner.items():
        lines += _toml(value, (*path, json.dumps(name)))
    return lines
