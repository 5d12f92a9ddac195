"""Whatever happens, in whatever order: no limit is passed, nothing is lost, nothing counts twice.

A ledger of the test's own says of every reservation what must be on record, and of every wish for
money whether it has to be granted. The database is a real one, and so are its locks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from executor.domain.budget import LoseSight, Settle, Void
from executor.domain.ids import ReservationId, operator_principal
from executor.engine.budget import reserve
from executor.engine.charging import charge_alone
from executor.engine.invoice import Invoiced, SettledNow, settle_invoiced
from executor.engine.purse import Held, ReserveResult
from executor.engine.sweeper import sweep
from executor.store import budgets
from executor.store.database import Database
from tests.support.clock import move_clock
from tests.support.database import TestServer
from tests.support.failpoints import Crashed, Trap
from tests.support.till import RUNS, SECONDS, Entry, Till

T = TypeVar("T")

# Five minutes before a midnight that a day of another length follows, or precedes.
AMSTERDAM = ZoneInfo("Europe/Amsterdam")
NEW_YORK = ZoneInfo("America/New_York")
AUCKLAND = ZoneInfo("Pacific/Auckland")
BEGINNINGS = [
    datetime(2027, 3, 27, 23, 55, tzinfo=AMSTERDAM),
    datetime(2027, 10, 30, 23, 55, tzinfo=AMSTERDAM),
    datetime(2027, 3, 13, 23, 55, tzinfo=NEW_YORK),
    datetime(2027, 11, 7, 23, 55, tzinfo=NEW_YORK),
    datetime(2027, 4, 3, 23, 55, tzinfo=AUCKLAND),
    datetime(2027, 9, 26, 23, 55, tzinfo=AUCKLAND),
]
AMOUNT = st.integers(0, 40)
WISHES = st.lists(st.tuples(st.integers(0, RUNS - 1), AMOUNT), min_size=1, max_size=4)
EVENTS = st.one_of(st.builds(Settle, st.integers(0, 60)), st.builds(Void), st.builds(LoseSight))
# What fails here is a race, or a long story: to shorten it would take longer than to read it.
SEARCH = settings(
    max_examples=25,
    stateful_step_count=30,
    phases=[Phase.generate],
    report_multiple_bugs=False,
)
OF_STATUS = {Settle: "settled", Void: "voided", LoseSight: "unknown"}


class Spending(RuleBasedStateMachine):
    """Everything that can happen to the money of one tenant."""

    runner: asyncio.Runner
    databases: tuple[Database, Database]

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    @initialize(
        beginning=st.sampled_from(BEGINNINGS), day=st.integers(0, 200), run=st.integers(0, 100)
    )
    def open(self, beginning: datetime, day: int, run: int) -> None:
        self.till = self.do(Till.open(self.databases, beginning, day_limit=day, run_limit=run))

    @invariant()
    def the_record_is_the_ledger(self) -> None:
        if hasattr(self, "till"):
            self.do(self.till.compare())

    @rule(wishes=WISHES, which=st.integers(0, 1))
    def several_ask_in_one_commit(self, wishes: list[tuple[int, int]], which: int) -> None:
        till = self.till
        asks = [till.ask(*wish) for wish in wishes]
        day = self.do(till.today())
        results = self.do(reserve(till.engine(which), asks))
        for (run, amount), result in zip(wishes, results, strict=True):
            assert isinstance(result, Held) is till.fits(run, day, amount)
            if isinstance(result, Held):
                till.entries[result.reservation_id] = Entry(run, day, amount)

    @rule(wishes=WISHES)
    def several_ask_at_once(self, wishes: list[tuple[int, int]]) -> None:
        till = self.till
        day = self.do(till.today())

        async def race() -> list[list[ReserveResult]]:
            return await asyncio.gather(
                *(reserve(till.engine(n % 2), [till.ask(*wish)]) for n, wish in enumerate(wishes))
            )

        refused = []
        for wish, [result] in zip(wishes, self.do(race()), strict=True):
            if not isinstance(result, Held):
                refused.append(wish)
                continue
            # In whatever order they came: each fits beside all others that were let through.
            assert till.fits(wish[0], day, wish[1])
            till.entries[result.reservation_id] = Entry(wish[0], day, wish[1])
        assert not [wish for wish in refused if till.fits(wish[0], day, wish[1])]

    @rule()
    def all_runs_ask_at_once_for_more_than_half_of_what_is_left(self) -> None:
        day = self.do(self.till.today())
        left = max(0, *(self.till.left(run, day) for run in range(RUNS)))
        self.several_ask_at_once([(run, left // 2 + 1) for run in range(RUNS)])

    @rule(run=st.integers(0, RUNS - 1), amount=AMOUNT, side=st.sampled_from(["before", "after"]))
    def whoever_asks_dies(self, run: int, amount: int, side: str) -> None:
        till = self.till
        day = self.do(till.today())
        dying = till.engine(0, Trap(f"reserve.{side}"))
        with pytest.raises(Crashed):
            self.do(reserve(dying, [till.ask(run, amount)]))
        if side == "after" and till.fits(run, day, amount):
            [new] = self.do(self._ids()) - set(till.entries)
            till.entries[new] = Entry(run, day, amount)

    async def _ids(self) -> set[ReservationId]:
        async with self.databases[0].transaction() as conn:
            found = await conn.exec_driver_sql(
                "SELECT id FROM reservations WHERE tenant_id = $1", (self.till.tenant,)
            )
            return {ReservationId(id_) for (id_,) in found}

    @precondition(lambda self: self.something_is_held())
    @rule(data=st.data(), event=EVENTS, times=st.integers(1, 2))
    def it_is_charged(self, data: st.DataObject, event: Any, times: int) -> None:
        key = self._some(data)

        async def told() -> None:
            engines = [self.till.engine(n) for n in range(times)]
            await asyncio.gather(*(charge_alone(engine, {key: event}) for engine in engines))

        self.do(told())
        self._note(key[1], event)

    @precondition(lambda self: self.something_is_held())
    @rule(data=st.data(), event=EVENTS, side=st.sampled_from(["before", "after"]))
    def whoever_charges_dies(self, data: st.DataObject, event: Any, side: str) -> None:
        key = self._some(data)
        with pytest.raises(Crashed):
            self.do(charge_alone(self.till.engine(1, Trap(f"expire.{side}")), {key: event}))
        if side == "after":
            self._note(key[1], event)

    @precondition(lambda self: self.something_is_held())
    @rule(data=st.data(), actual=st.integers(0, 60))
    def a_person_settles_it(self, data: st.DataObject, actual: int) -> None:
        _, id_ = self._some(data)
        unknown = self.till.entries[id_].status == "unknown"
        settled = self.do(
            settle_invoiced(
                self.till.engine(0),
                self.till.tenant,
                operator_principal("books"),
                Invoiced(id_.hex, actual, "invoice"),
            )
        )
        assert isinstance(settled, SettledNow) is unknown
        if unknown:
            self._note(id_, Settle(actual))

    @rule(minutes=st.sampled_from([0, 2, 6, 60, 23 * 60 + 50, 24 * 60]))
    def time_passes_and_somebody_sweeps(self, minutes: int) -> None:
        self.do(self._later(minutes))
        self.do(sweep(self.till.engine(1)))
        if minutes * 60 > SECONDS:
            for entry in self.till.entries.values():
                entry.status = "unknown" if entry.status == "held" else entry.status

    async def _later(self, minutes: int) -> None:
        async with self.databases[0].transaction() as conn:
            await move_clock(conn, timedelta(minutes=minutes))

    @rule(day_limit=st.integers(0, 300))
    def the_policy_changes(self, day_limit: int) -> None:
        self.do(self.till.let_spend(day_limit))

    @rule(by=st.integers(1, 50))
    def the_day_is_raised(self, by: int) -> None:
        till = self.till
        day = self.do(till.today())

        async def both() -> None:
            await asyncio.gather(*(raised(database) for database in self.databases))

        async def raised(database: Database) -> None:
            async with database.transaction() as conn:
                await budgets.raise_day(conn, till.tenant, day, by)

        self.do(both())
        till.raised[day] = till.raised.get(day, 0) + 2 * by

    @rule(run=st.integers(0, RUNS - 1), by=st.integers(1, 50))
    def a_run_is_raised(self, run: int, by: int) -> None:
        till = self.till
        before = till.run_limits[run]

        async def raised(database: Database) -> bool:
            async with database.transaction() as conn:
                key = till.runs[run]
                return await budgets.raise_run(conn, *key, from_limit=before, to_limit=before + by)

        async def both() -> list[bool]:
            return await asyncio.gather(*(raised(database) for database in self.databases))

        assert sorted(self.do(both())) == [False, True]
        till.run_limits[run] += by

    def something_is_held(self) -> bool:
        return hasattr(self, "till") and bool(self.till.entries)

    def _some(self, data: st.DataObject) -> budgets.ReservationKey:
        ids = list(self.till.entries)
        return self.till.tenant, ids[data.draw(st.integers(0, len(ids) - 1))]

    def _note(self, id_: ReservationId, event: Settle | Void | LoseSight) -> None:
        entry = self.till.entries[id_]
        target = OF_STATUS[type(event)]
        if entry.status in ("held", "unknown") and entry.status != target:
            entry.status = target
            entry.actual = event.actual_microusd if isinstance(event, Settle) else 0


@contextmanager
def _at_work(server: TestServer) -> Iterator[type[Spending]]:
    """Connect two processes to a database, on a loop of the machine's own."""
    with asyncio.Runner() as runner:
        opening = server.fresh_database()
        url = runner.run(opening.__aenter__())
        databases = (
            Database.connect(url, application_name="one"),
            Database.connect(url, application_name="two"),
        )
        try:
            yield type("SpendingHere", (Spending,), {"runner": runner, "databases": databases})
        finally:
            for database in databases:
                runner.run(database.dispose())
            runner.run(opening.__aexit__(None, None, None))


def test_no_history_passes_a_limit_or_loses_money(database_server: TestServer) -> None:
    with _at_work(database_server) as machine:
        run_state_machine_as_test(machine, settings=SEARCH)
