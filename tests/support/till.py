"""One tenant's money, as a test spends it: its limits, its runs, and what it should have on record.

The record is compared with a ledger that this file keeps by itself, reservation by reservation.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime

from sqlalchemy import text

from executor.adapters.host_clock import SystemClock, mint_id
from executor.domain.identity import Identity
from executor.domain.ids import ReservationId, RunId, TenantId, slack_principal
from executor.engine.claims import claim_runs
from executor.engine.engine import Engine
from executor.engine.failpoint import Failpoints, Inert
from executor.engine.purse import Ask
from executor.engine.setup import activate_policy
from executor.engine.start import Started, StartRequest, start
from executor.store import clock
from executor.store.database import Database
from executor.store.people import put_identity
from tests.support.clock import set_clock_offset
from tests.support.office import SHORT, policy

SECONDS = 60.0
"""How long each call may take."""

RUNS = 3


@dataclass
class Entry:
    """What one reservation should have on record."""

    run: int
    day: date
    amount: int
    status: str = "held"
    actual: int = 0

    @property
    def held(self) -> int:
        return self.amount if self.status in ("held", "unknown") else 0


@dataclass
class Till:
    """A tenant with a few claimed runs."""

    databases: tuple[Database, Database]
    tenant: TenantId
    timezone: str
    day_limit: int
    run_limits: list[int]
    runs: list[tuple[TenantId, RunId]] = field(default_factory=list)
    epochs: list[int] = field(default_factory=list)
    entries: dict[ReservationId, Entry] = field(default_factory=dict)
    raised: dict[date, int] = field(default_factory=dict)

    @classmethod
    async def open(
        cls,
        databases: tuple[Database, Database],
        moment: datetime,
        *,
        day_limit: int,
        run_limit: int,
    ) -> Till:
        """Open one at a moment of the database's clock and zone; each is another tenant's."""
        team = f"T{uuid.uuid4().hex[:10].upper()}"
        till = cls(databases, TenantId(team), str(moment.tzinfo), day_limit, [run_limit] * RUNS)
        async with databases[0].transaction() as conn:
            await set_clock_offset(conn, moment - datetime.now(moment.tzinfo))
        await till.let_spend(day_limit, run_limit)
        await till._start()
        return till

    async def _start(self) -> None:
        requester = slack_principal(self.tenant, "U0REQUESTER")
        async with self.databases[0].transaction() as conn:
            now = await clock.now(conn)
            await put_identity(
                conn, self.tenant, requester, Identity(self.tenant, False, False, False, False, now)
            )
        engine = self.engine(0)
        wishes = [
            StartRequest(self.tenant, requester, "g", f"{self.tenant}:{number}", {})
            for number in range(RUNS)
        ]
        started = [s for s in await start(engine, wishes) if isinstance(s, Started)]
        claimed = {c.key: c.lease.epoch for c in await claim_runs(engine, "w1", 10_000)}
        self.runs = [(self.tenant, s.run_id) for s in started]
        self.epochs = [claimed[key] for key in self.runs]

    def engine(self, which: int, failpoints: Failpoints | None = None) -> Engine:
        """One of two processes."""
        return Engine(self.databases[which], SystemClock(), mint_id, SHORT, failpoints or Inert())

    async def let_spend(self, day_limit: int, run_limit: int = 100) -> None:
        """Activate a policy; what runs may spend binds those that are started later."""
        self.day_limit = day_limit
        active = policy(
            slack={"team": self.tenant, "channel": "C0MONEY"},
            tenant={"name": "Acme", "timezone": self.timezone},
            budget={"day_microusd": day_limit, "run_microusd": run_limit},
        )
        await activate_policy(self.engine(0), active)

    def ask(self, run: int, amount: int) -> Ask:
        """Make a wish for money."""
        return Ask(self.runs[run], self.epochs[run], "model:test", amount, SECONDS)

    async def today(self) -> date:
        """The tenant's day, by PostgreSQL's own calendar."""
        async with self.databases[0].transaction() as conn:
            found = await conn.execute(
                text("SELECT CAST(signoff_clock() AT TIME ZONE :zone AS date)"),
                {"zone": self.timezone},
            )
            day: date = found.scalar_one()
            return day

    # What the ledger says.

    def left(self, run: int, day: date) -> int:
        """What may still be held; negative after an overrun, or where a limit was lowered."""
        of_run = [e for e in self.entries.values() if e.run == run]
        of_day = [e for e in self.entries.values() if e.day == day]
        return min(
            self.run_limits[run] - _used(of_run),
            self.day_limit + self.raised.get(day, 0) - _used(of_day),
        )

    def fits(self, run: int, day: date, amount: int) -> bool:
        """Whether this much may be held now."""
        return amount <= self.left(run, day)

    # What the record says.

    async def compare(self) -> None:
        """Assert that reservations, accounts and days are those of the ledger."""
        async with self.databases[0].transaction() as conn:
            rows = (await conn.execute(text(_RESERVATIONS), {"t": self.tenant})).all()
            accounts = (await conn.execute(text(_ACCOUNTS), {"t": self.tenant})).all()
            wrong = (
                await conn.execute(text(_ON_A_WRONG_DAY), {"t": self.tenant, "zone": self.timezone})
            ).all()
        assert wrong == []
        number = {key[1]: place for place, key in enumerate(self.runs)}
        assert {r.id: (number[r.run_id], r.day, r.amount, r.status, r.actual) for r in rows} == {
            id_: (e.run, e.day, e.amount, e.status, e.actual) for id_, e in self.entries.items()
        }
        stored = {a.what: (a.spent, a.held, a.unknown, a.allowed) for a in accounts}
        expected = dict(self._accounts())
        assert {what: stored.get(what) for what in expected} == expected
        assert all(used[:3] == (0, 0, 0) for what, used in stored.items() if what not in expected)

    def _accounts(self) -> Iterator[tuple[str, tuple[int, int, int, int]]]:
        for run, (_, run_id) in enumerate(self.runs):
            mine = [e for e in self.entries.values() if e.run == run]
            yield str(run_id), (*_sums(mine), self.run_limits[run])
        for day in {e.day for e in self.entries.values()} | set(self.raised):
            mine = [e for e in self.entries.values() if e.day == day]
            yield day.isoformat(), (*_sums(mine), self.raised.get(day, 0))


def _sums(entries: list[Entry]) -> tuple[int, int, int]:
    return (
        sum(e.actual for e in entries),
        sum(e.held for e in entries),
        sum(e.held for e in entries if e.status == "unknown"),
    )


def _used(entries: list[Entry]) -> int:
    spent, held, _ = _sums(entries)
    return spent + held


_RESERVATIONS = """
SELECT id, run_id, day, amount_microusd AS amount, status, COALESCE(actual_microusd, 0) AS actual
FROM reservations WHERE tenant_id = :t
"""
_ACCOUNTS = """
SELECT CAST(run_id AS text) AS what, spent_microusd AS spent, held_microusd AS held,
       unknown_microusd AS unknown, limit_microusd AS allowed
FROM run_budgets WHERE tenant_id = :t
UNION ALL
SELECT CAST(day AS text), spent_microusd, held_microusd, unknown_microusd, raised_microusd
FROM tenant_days WHERE tenant_id = :t
"""
_ON_A_WRONG_DAY = """
SELECT id FROM reservations
WHERE tenant_id = :t AND day <> CAST(reserved_at AT TIME ZONE CAST(:zone AS text) AS date)
"""
