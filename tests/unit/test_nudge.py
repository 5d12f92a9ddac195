"""Nudges are known beforehand, come once each, and in their order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from executor.domain.nudge import Nudge, NudgeKind, due, schedule
from executor.domain.terms import Terms

SHOWN = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
R, E = NudgeKind.REMINDER, NudgeKind.ESCALATION


def _terms(remind: tuple[int, ...] = (60, 600), escalate: int | None = 300) -> Terms:
    return Terms((), 3_600, 60, remind, escalate, ("U0LEAD",) if escalate else ())


def _at(seconds: float) -> datetime:
    return SHOWN + timedelta(seconds=seconds)


def test_nudges_are_listed_in_the_order_of_their_times() -> None:
    listed = schedule(_terms(), SHOWN)
    assert [(n.kind, n.due_at) for n in listed] == [(R, _at(60)), (E, _at(300)), (R, _at(600))]
    assert [n.kind for n in schedule(_terms((300,)), SHOWN)] == [R, E]
    assert schedule(_terms((), None), SHOWN) == ()


def test_what_is_due_is_said_with_what_comes_next() -> None:
    listed = schedule(_terms(), SHOWN)
    assert due(listed, 0, _at(59)) == ((), _at(60))
    assert due(listed, 0, _at(60)) == ((listed[0],), _at(300))
    assert due(listed, 1, _at(60)) == ((), _at(300))
    assert due(listed, 3, _at(9_999)) == ((), None)


def test_after_a_standstill_each_kind_is_told_once() -> None:
    listed = schedule(_terms(), SHOWN)
    ripe, next_at = due(listed, 0, _at(900))
    assert {n.kind: n.due_at for n in ripe} == {R: _at(600), E: _at(300)}
    assert len(ripe) == 2
    assert next_at is None


@given(
    st.lists(st.integers(1, 100), max_size=5, unique=True),
    st.lists(st.integers(0, 120), min_size=1, max_size=8),
)
def test_however_often_somebody_looks_no_nudge_is_made_twice(
    remind: list[int], looks: list[int]
) -> None:
    listed = schedule(_terms(tuple(remind), 50), SHOWN)
    made, told = 0, list[Nudge]()
    for look in sorted(looks):
        ripe, _ = due(listed, made, _at(look))
        told += ripe
        made = max(made, sum(1 for n in listed if n.due_at <= _at(look)))
    assert len(set(told)) == len(told)
    assert all(n.due_at <= _at(max(looks)) for n in told)
