"""Calls come at their pace: never faster than it allows, and never slower than it could."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executor.domain.pace import Pace

START = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def calls(pace: Pace, waits: list[timedelta]) -> list[datetime]:
    """Make every call that may be made, looking again after each wait."""
    now = free_at = START
    made = []
    for wait in waits:
        now += wait
        room = pace.room(free_at, now)
        made += [now] * room
        free_at = pace.spent(free_at, now, room) if room else free_at
    return made


def test_after_a_rest_so_many_come_at_once_and_then_one_each_interval() -> None:
    pace = Pace(SECOND, at_once=3)
    made = calls(pace, [timedelta(), SECOND / 2, SECOND / 2, SECOND, 10 * SECOND])
    assert [(at - START) / SECOND for at in made] == [0, 0, 0, 1, 2, 12, 12, 12]


@given(
    st.integers(1, 5),
    st.lists(st.integers(0, 3_000).map(lambda ms: timedelta(milliseconds=ms)), max_size=60),
)
def test_no_stretch_of_time_holds_more_than_the_pace_allows(
    at_once: int, waits: list[timedelta]
) -> None:
    made = calls(Pace(SECOND, at_once), waits)
    for first in range(len(made)):
        for last in range(first, len(made)):
            allowed = at_once + (made[last] - made[first]) // SECOND
            assert last - first + 1 <= allowed


@given(st.lists(st.integers(1, 3_000), min_size=1, max_size=40))
def test_whoever_looks_when_it_opens_loses_no_time(steps: list[int]) -> None:
    pace = Pace(SECOND)
    free_at = START
    for number, _ in enumerate(steps):
        now = max(pace.opens_at(free_at), START)
        assert now == START + number * SECOND
        assert pace.room(free_at, now) == 1
        free_at = pace.spent(free_at, now, 1)


@pytest.mark.parametrize("at_once", [1, 4])
def test_a_hold_is_outlasted_by_no_burst(at_once: int) -> None:
    pace = Pace(SECOND, at_once)
    free_at = START + pace.hold_for(7 * SECOND)
    assert pace.room(free_at, START + 7 * SECOND - timedelta(microseconds=1)) == 0
    assert pace.room(free_at, START + 7 * SECOND) == 1
    assert pace.opens_at(free_at) == START + 7 * SECOND
