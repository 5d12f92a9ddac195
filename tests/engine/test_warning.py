"""At a share of a limit people are told, once, and never again."""

from __future__ import annotations

from executor.engine.setup import activate_policy
from tests.support.fake_model import FakeModel, calls, says
from tests.support.office import Office, policy
from tests.support.working import Working

LOOK = says("", calls("read_ticket", {"ticket_id": "4101"}), cost_microusd=800)
CHEAP = says("", calls("read_ticket", {"ticket_id": "4102"}), cost_microusd=1)
LAST = says("All is well.", cost_microusd=1)


async def _warned(office: Office) -> list[tuple[object, ...]]:
    return await office.rows(
        "SELECT run_id IS NOT NULL, used_microusd, limit_microusd FROM budget_warnings "
        "ORDER BY made_at, 1 DESC"
    )


async def _drive(office: Office, **limits: object) -> None:
    await activate_policy(office.engine, policy(budget=limits))
    working = await Working.start(office, FakeModel([LOOK, CHEAP, LAST], worst_case_microusd=100))
    await working.drive()


async def test_people_are_told_once_that_a_run_is_near_its_limit(office: Office) -> None:
    await _drive(office, run_microusd=1_000)
    assert await _warned(office) == [(True, 800, 1_000)]


async def test_people_are_told_once_a_day_that_its_limit_is_near(office: Office) -> None:
    await _drive(office, day_microusd=1_000, run_microusd=90_000)
    await _drive(office, day_microusd=10_000, run_microusd=90_000, warn_at_percent=1)
    assert [row for row in await _warned(office) if not row[0]] == [(False, 800, 1_000)]


async def test_below_that_share_nobody_is_told(office: Office) -> None:
    await _drive(office, run_microusd=1_000, warn_at_percent=90)
    assert await _warned(office) == []
