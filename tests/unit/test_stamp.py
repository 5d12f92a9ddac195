"""Stamps are equal or not; only a ticket that came back asks which of two is later."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executor.domain.stamp import Stamp, moment, stamp_from

NINE = "2026-11-30T09:00:00Z"


@pytest.mark.parametrize(
    ("seen", "fields", "later"),
    [
        ("2026-11-30T09:00:01Z", "aa", True),
        ("2026-11-30T09:00:01Z", "bb", True),
        (NINE, "bb", True),
        (NINE, "aa", False),
        ("2026-11-30T10:00:00+01:00", "aa", False),
        ("2026-11-30T08:59:59Z", "bb", False),
    ],
)
def test_a_version_comes_after_another_by_its_time_or_as_another_one_of_that_second(
    seen: str, fields: str, later: bool
) -> None:
    assert Stamp(seen, fields).comes_after(Stamp(NINE, "aa")) is later


@given(st.datetimes(timezones=st.timezones()), st.text())
def test_a_stamp_is_read_as_it_was_spelled(at: object, fields: str) -> None:
    stamp = Stamp(str(at), fields)
    assert stamp_from(stamp.as_json()) == stamp
    assert not stamp.comes_after(stamp)


@pytest.mark.parametrize(
    "document",
    [
        None,
        7,
        "2026",
        {},
        {"updated_at": NINE},
        {"updated_at": 7, "fields_sha256": "aa"},
        {"updated_at": "yesterday", "fields_sha256": "aa"},
        {"updated_at": "2026-11-30T09:00:00", "fields_sha256": "aa"},
    ],
)
def test_what_is_no_stamp_is_read_as_none(document: object) -> None:
    assert stamp_from(document) is None


def test_a_time_without_an_offset_is_no_stamp() -> None:
    with pytest.raises(ValueError, match="offset"):
        moment("2026-11-30T09:00:00")
