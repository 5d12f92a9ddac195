"""A COMMIT whose answer was lost where money is held or waited for: what is stored decides."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from executor.domain.errors import CommitUnknown
from executor.engine.engine import Engine
from executor.engine.failpoint import Commit, Side, point
from executor.engine.invoice import Invoiced, KnownBefore, SettledNow, settle_invoiced
from executor.engine.pausing import look_at_paused, resume
from executor.engine.setup import activate_policy
from executor.engine.sweeper import sweep
from tests.support.fake_model import FakeModel, says
from tests.support.money import lose
from tests.support.office import OTTO, TENANT, Office, policy
from tests.support.tcp_proxy import TcpProxy
from tests.support.working import Working

NEEDED = 1_000
OPERATORS = {
    "requesters": ["U0REQUESTER"],
    "approvers": ["U0REVIEWER"],
    "operators": ["U0OUTSIDER"],
}
Fault = Callable[[TcpProxy], None]
FAULTS: list[Fault] = [TcpProxy.lose_commit_answers, TcpProxy.stop_commits]


class _At:
    """Breaks one kind of COMMIT, once."""

    def __init__(self, commit: Commit, proxy: TcpProxy, fault: Fault) -> None:
        self._name, self._proxy, self._fault = point(commit, Side.BEFORE), proxy, fault
        self.broken = False

    async def reach(self, name: str) -> None:
        if name == self._name and not self.broken:
            self.broken = True
            self._fault(self._proxy)


def _breaking(far: Office, commit: Commit, proxy: TcpProxy, fault: Fault) -> Office:
    return far.colleague(failpoints=_At(commit, proxy, fault))


async def _spend(office: Office, run_microusd: int) -> None:
    await activate_policy(
        office.engine,
        policy(people=OPERATORS, budget={"run_microusd": run_microusd, "day_microusd": 100_000}),
    )


async def _drive_broken(working: Working, far: Office) -> None:
    with pytest.raises(CommitUnknown):
        await working.drive(far)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("commit", [Commit.RESERVE, Commit.RECORD_REPLY])
async def test_a_run_whose_call_is_in_doubt_goes_on_and_nothing_stays_uncounted(
    office: Office, far: Office, proxy: TcpProxy, fault: Fault, commit: Commit
) -> None:
    await _spend(office, 10 * NEEDED)
    model = FakeModel([says("All is well.")] * 2)
    working = await Working.start(office, model)
    await _drive_broken(working, _breaking(far, commit, proxy, fault))
    await office.later(seconds=1_000)
    await sweep(office.engine)
    await working.drive()
    assert await office.run_status(working.run_id) == "succeeded"
    charges = await office.rows("SELECT status FROM reservations ORDER BY reserved_at")
    calls_made = model.called
    assert len([1 for (status,) in charges if status in ("settled", "unknown")]) >= calls_made


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_run_whose_pause_is_in_doubt_is_paused_once_and_asks_once(
    office: Office, far: Office, proxy: TcpProxy, fault: Fault
) -> None:
    await _spend(office, NEEDED - 1)
    working = await Working.start(office, FakeModel([]))
    await _drive_broken(working, _breaking(far, Commit.PAUSE, proxy, fault))
    await office.later(seconds=61)
    if fault is TcpProxy.stop_commits:
        await working.drive()
    assert await office.run_status(working.run_id) == "paused"
    assert await office.rows("SELECT count(*) FROM operations WHERE kind = 'raise_budget'") == [
        (1,)
    ]


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_run_whose_waking_is_in_doubt_is_found_by_the_slow_look(
    office: Office, far: Office, proxy: TcpProxy, fault: Fault
) -> None:
    await _spend(office, NEEDED - 1)
    working = await Working.start(office, FakeModel([says("All is well.")]))
    await working.drive()
    await office.rows("UPDATE run_budgets SET limit_microusd = 5000 RETURNING 1")
    broken: Engine = _breaking(far, Commit.RESUME, proxy, fault).engine
    with pytest.raises(CommitUnknown):
        await resume(broken, TENANT)
    await office.later(seconds=61)
    await look_at_paused(office.engine)
    await working.drive()
    assert await office.run_status(working.run_id) == "succeeded"


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_settlement_in_doubt_is_made_once_when_it_is_said_again(
    office: Office, far: Office, proxy: TcpProxy, fault: Fault
) -> None:
    await _spend(office, 10 * NEEDED)
    run_id = await office.start_run()
    label = await lose(office.engine, await office.claim_run(run_id), NEEDED)
    said = Invoiced(label.removeprefix("ch_"), 300, "invoice 4711")
    broken = _breaking(far, Commit.SETTLE, proxy, fault).engine
    with pytest.raises(CommitUnknown):
        await settle_invoiced(broken, TENANT, OTTO, said)
    again = await settle_invoiced(office.engine, TENANT, OTTO, said)
    stored = fault is TcpProxy.lose_commit_answers
    assert isinstance(again, KnownBefore if stored else SettledNow), again
    assert await office.rows("SELECT spent_microusd, held_microusd FROM run_budgets") == [(300, 0)]
