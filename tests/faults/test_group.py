"""Callers that ask at once share one commit and nothing else: no bad item and no cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from sqlalchemy import text

from executor.domain.errors import CommitUnknown, Corrupt, DatabaseUnavailable, LostRace
from executor.domain.transition import NoChange, Reason
from executor.engine.click import Click, ClickResult, Recorded
from executor.engine.decisions import decide_clicks
from executor.engine.group import Group, together_or_apart
from tests.support.failpoints import Gate
from tests.support.office import RENE, Office
from tests.support.waiting import until_true


class _Apply:
    """Doubles numbers in groups; waits at a gate; fails for what a test says."""

    def __init__(self, bad: dict[int, Exception] | None = None) -> None:
        self.bad = bad or {}
        self.groups: list[list[int]] = []
        self.begun = asyncio.Event()
        self.gate = asyncio.Event()

    async def __call__(self, items: Sequence[int]) -> list[int]:
        self.groups.append(list(items))
        self.begun.set()
        await self.gate.wait()
        for item in items:
            if item in self.bad:
                raise self.bad[item]
        return [2 * item for item in items]


async def _submit_while_busy(
    apply: _Apply, *items: int
) -> tuple[Group[int, int], list[asyncio.Task[int]]]:
    """Begin a group with the first item and let the others gather behind it."""
    group = Group(apply)
    tasks = [asyncio.create_task(group.submit(items[0]))]
    await apply.begun.wait()
    tasks += [asyncio.create_task(group.submit(item)) for item in items[1:]]
    await asyncio.sleep(0)
    return group, tasks


async def test_who_comes_while_a_group_is_under_way_shares_the_next() -> None:
    apply = _Apply()
    _, tasks = await _submit_while_busy(apply, 1, 2, 3, 4)
    apply.gate.set()
    assert await asyncio.gather(*tasks) == [2, 4, 6, 8]
    assert apply.groups == [[1], [2, 3, 4]]


async def test_a_group_is_bounded() -> None:
    apply = _Apply()
    group = Group(apply, most=2)
    tasks = [asyncio.create_task(group.submit(item)) for item in range(5)]
    apply.gate.set()
    assert await asyncio.gather(*tasks) == [0, 2, 4, 6, 8]
    assert [len(items) for items in apply.groups] == [2, 2, 1]


@pytest.mark.parametrize(
    "error",
    [LostRace("x", 1), Corrupt("x"), AssertionError("x"), KeyError("x")],
    ids=lambda error: type(error).__name__,
)
async def test_one_bad_item_costs_only_itself(error: Exception) -> None:
    apply = _Apply({3: error})
    _, tasks = await _submit_while_busy(apply, 1, 2, 3, 4)
    apply.gate.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert results == [2, 4, error, 8]
    assert apply.groups == [[1], [2, 3, 4], [2], [3], [4]]


@pytest.mark.parametrize("error", [CommitUnknown("x"), DatabaseUnavailable("x")])
async def test_what_is_nobodys_fault_is_told_to_all_and_not_tried_again(error: Exception) -> None:
    apply = _Apply({3: error})
    _, tasks = await _submit_while_busy(apply, 1, 2, 3, 4)
    apply.gate.set()
    assert await asyncio.gather(*tasks, return_exceptions=True) == [2, error, error, error]
    assert len(apply.groups) == 2


async def test_a_cancelled_caller_cancels_neither_its_group_nor_its_own_item() -> None:
    apply = _Apply()
    group, tasks = await _submit_while_busy(apply, 1, 2, 3)
    tasks[0].cancel()
    tasks[1].cancel()
    apply.gate.set()
    assert await tasks[2] == 6
    await group.idle()
    assert tasks[0].cancelled()
    assert apply.groups == [[1], [2, 3]]


async def test_a_cancelled_clicker_does_not_undo_the_votes_of_the_group(office: Office) -> None:
    operations = await office.proposed_many(3)
    gate = Gate("decide.before")
    slow = office.colleague(failpoints=gate)
    group: Group[Click, ClickResult] = Group(lambda clicks: decide_clicks(slow.engine, clicks))
    clicks = [await office.click_for(operation) for operation in operations]
    tasks = [asyncio.create_task(group.submit(click)) for click in clicks]
    await gate.reached.wait()
    tasks[0].cancel()
    gate.open()
    assert isinstance(await tasks[2], Recorded)
    await group.idle()
    await until_true(office.database, "SELECT bool_and(status = 'approved') FROM operations")
    assert await office.decide(clicks[0]) == [NoChange(Reason.ALREADY_VOTED)]


async def test_one_corrupt_record_costs_its_own_click_alone(office: Office) -> None:
    operations = await office.proposed_many(3)
    run_id = await office.run_of(operations[1])
    shift = text("UPDATE journal_heads SET position = position + :by WHERE subject = :run")
    async with office.database.transaction() as conn:
        await conn.execute(shift, {"by": -1, "run": run_id})
    group: Group[Click, ClickResult] = Group(lambda clicks: decide_clicks(office.engine, clicks))
    clicks = [await office.click_for(operation, RENE) for operation in operations]
    results = await asyncio.gather(
        *(group.submit(click) for click in clicks), return_exceptions=True
    )
    assert [isinstance(result, Recorded) for result in results] == [True, False, True]
    async with office.database.transaction() as conn:
        await conn.execute(shift, {"by": 1, "run": run_id})
    assert isinstance((await office.decide(clicks[1]))[0], Recorded)


async def test_a_sweep_goes_past_what_fails_and_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    apply = _Apply({2: Corrupt("x")})
    apply.gate.set()
    await together_or_apart(apply, [1, 2, 3])
    assert apply.groups == [[1, 2, 3], [1], [2], [3]]
    assert "left as it is recorded: 2" in caplog.text
    apply.bad = {2: DatabaseUnavailable("away")}
    with pytest.raises(DatabaseUnavailable):
        await together_or_apart(apply, [1, 2, 3])
