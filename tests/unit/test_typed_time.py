"""Times are read on the tenant's clock, and spelled so that an end is never mistaken."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given

from bot.typed_time import end_spelt, moment_of, span_of, spelt
from executor.engine.grant_reading import LocalTime
from tests.support.hostile import texts

HERE = LocalTime(datetime(2026, 3, 27, 8, 30, tzinfo=UTC), ZoneInfo("Europe/Amsterdam"))


@pytest.mark.parametrize(
    ("typed", "start", "end"),
    [
        ("2026-12-24", "2026-12-24 00:00", "the end of 2026-12-24"),
        ("today", "2026-03-27 00:00", "the end of 2026-03-27"),
        (" Tomorrow", "2026-03-28 00:00", "the end of 2026-03-28"),
        ("17:00", "2026-03-27 17:00", "2026-03-27 17:00"),
        ("2026-12-24T17:00", "2026-12-24 17:00", "2026-12-24 17:00"),
        ("2026-12-24 17:00:30 Z", "2026-12-24 18:00", "2026-12-24 18:00"),
        ("2026-07-01T17:00+00:00", "2026-07-01 19:00", "2026-07-01 19:00"),
        ("8h", "2026-03-27 17:30", "2026-03-27 17:30"),
        ("in 2 days", "2026-03-29 10:30", "2026-03-29 10:30"),
    ],
)
def test_a_time_is_one_of_the_tenants_clock(typed: str, start: str, end: str) -> None:
    begins, ends = moment_of(typed, HERE), moment_of(typed, HERE, is_end=True)
    assert begins is not None
    assert ends is not None
    assert (spelt(begins, HERE), end_spelt(ends, HERE)) == (start, end)


@pytest.mark.parametrize(
    "typed",
    ["", "soon", "24-12-2026", "2026-13-01", "2026-02-30", "25:00", "2026", "0h", "9999999w",
     "9999-12-31", "8x", "-8h", "２０２６-12-24"],
)  # fmt: skip
def test_what_is_no_time_is_none(typed: str) -> None:
    assert moment_of(typed, HERE, is_end=True) is None


@pytest.mark.parametrize(
    ("typed", "hours"),
    [("8h", 8), ("1d", 24), ("1 day 12 hours", 36), ("1d12h", 36), ("90 min", 1.5), ("1W", 168)],
)
def test_how_long_is_read_in_the_units_that_people_use(typed: str, hours: float) -> None:
    assert span_of(typed) == timedelta(hours=hours)


def test_a_span_counts_hours_and_not_what_the_clock_shows() -> None:
    """Two days later the clocks have been put forward."""
    begins = moment_of("2026-03-29", HERE)
    assert begins is not None
    assert spelt(begins + timedelta(hours=8), HERE) == "2026-03-29 09:00"


@given(texts)
def test_every_text_is_a_time_or_none(typed: str) -> None:
    moment_of(typed, HERE)
    span_of(typed)
