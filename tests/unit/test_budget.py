"""Money: what is admitted, charged, released and kept, over any history."""

from __future__ import annotations

from datetime import UTC, date, datetime
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executor.domain.budget import (
    EDGES,
    Account,
    Admitted,
    Charge,
    Event,
    LoseSight,
    ReservationStatus,
    Settle,
    Void,
    budget_day,
    decide,
    reserve,
)
from executor.domain.transition import NoChange, Reason, Refused

S = ReservationStatus
EVENTS: dict[str, tuple[Event, ReservationStatus]] = {
    "settle": (Settle(7), S.SETTLED),
    "void": (Void(), S.VOIDED),
    "lose sight": (LoseSight(), S.UNKNOWN),
}


@pytest.mark.parametrize(("status", "name"), list(product(ReservationStatus, EVENTS)))
def test_every_status_answers_every_event(status: ReservationStatus, name: str) -> None:
    event, target = EVENTS[name]
    decision = decide(status, 10, event)
    if (status.value, target.value) in EDGES:
        assert isinstance(decision, Charge)
        expected = {"settle": (10, 7), "void": (10, 0), "lose sight": (0, 0)}[name]
        assert (decision.released_microusd, decision.spent_microusd) == expected
    else:
        assert decision == NoChange()


AMOUNT = st.integers(0, 50)


@given(
    st.integers(0, 100),
    st.integers(0, 100),
    st.lists(st.tuples(AMOUNT, st.sampled_from([Settle, Void, LoseSight]), AMOUNT), max_size=20),
)
def test_nothing_is_admitted_over_either_limit_and_accounts_add_up(
    run_limit: int, day_limit: int, calls: list[tuple[int, type, int]]
) -> None:
    run, day = Account(run_limit, 0, 0), Account(day_limit, 0, 0)
    for asked, kind, actual in calls:
        admitted = reserve(run, day, asked)
        fits = all(a.spent_microusd + a.held_microusd + asked <= a.limit_microusd
                   for a in (run, day))  # fmt: skip
        assert isinstance(admitted, Admitted) is fits
        if not isinstance(admitted, Admitted):
            assert admitted.reason is Reason.BUDGET_LIMIT
            continue
        event: Event = Settle(actual) if kind is Settle else kind()
        charge = decide(S.HELD, asked, event)
        assert isinstance(charge, Charge)
        run, day = (
            Account(
                a.limit_microusd,
                a.spent_microusd + charge.spent_microusd,
                a.held_microusd - charge.released_microusd,
            )
            for a in (admitted.run, admitted.day)
        )
        assert min(run.held_microusd, day.held_microusd, run.left_microusd) >= 0


def test_the_first_limit_that_refuses_is_named() -> None:
    refused = reserve(Account(10, 4, 4), Account(1, 0, 0), 3)
    assert isinstance(refused, Refused)
    assert (refused.detail["limit"], refused.detail["left_microusd"]) == ("run", 2)


@pytest.mark.parametrize(
    ("moment", "timezone", "day"),
    [
        (datetime(2026, 3, 2, 22, 59, tzinfo=UTC), "Europe/Amsterdam", date(2026, 3, 2)),
        (datetime(2026, 3, 2, 23, 0, tzinfo=UTC), "Europe/Amsterdam", date(2026, 3, 3)),
        (datetime(2026, 7, 2, 22, 0, tzinfo=UTC), "Europe/Amsterdam", date(2026, 7, 3)),
        (datetime(2026, 3, 2, 15, 0, tzinfo=UTC), "Asia/Tokyo", date(2026, 3, 3)),
        (datetime(2026, 3, 2, 23, 59, tzinfo=UTC), "UTC", date(2026, 3, 2)),
    ],
)
def test_a_day_is_the_tenants_own(moment: datetime, timezone: str, day: date) -> None:
    assert budget_day(moment, timezone) == day
