"""Money: what is admitted, charged, released and kept, over any history."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
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
    output_within,
    renewal,
    reserve,
)
from executor.domain.price import CostBound
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
        grows = {("held", "unknown"): 10, ("unknown", "settled"): -10, ("unknown", "voided"): -10}
        assert decision.unknown_microusd == grows.get((status.value, target.value), 0)
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


@pytest.mark.parametrize(
    ("day", "timezone", "renews_at"),
    [
        (date(2026, 3, 2), "Europe/Amsterdam", "2026-03-02T23:00:00+00:00"),
        (date(2026, 3, 29), "Europe/Amsterdam", "2026-03-29T22:00:00+00:00"),
        # No midnight: at 24:00 the clocks of Cairo go to 01:00.
        (date(2026, 4, 23), "Africa/Cairo", "2026-04-23T22:00:00+00:00"),
        # Two midnights: at 01:00 the clocks of Havana go back to 00:00.
        (date(2026, 10, 31), "America/Havana", "2026-11-01T04:00:00+00:00"),
    ],
)
def test_a_day_ends_at_the_first_moment_of_the_next(
    day: date, timezone: str, renews_at: str
) -> None:
    assert renewal(day, timezone) == {"day": day.isoformat(), "renews_at": renews_at}
    moment = datetime.fromisoformat(renews_at)
    assert budget_day(moment, timezone) == day + timedelta(days=1)
    assert budget_day(moment - timedelta(microseconds=1), timezone) == day


@pytest.mark.parametrize(
    ("left", "wanted", "output"),
    [
        (10_000, 4_000, 4_000),
        (3_000, 4_000, 2_000),
        (1_256, 4_000, 256),
        (1_255, 4_000, 256),
        (0, 4_000, 256),
        (0, 100, 100),
    ],
)
@pytest.mark.parametrize("scope", ["run", "day"])
def test_a_call_may_write_what_the_tighter_limit_leaves_but_never_too_little(
    left: int, wanted: int, output: int, scope: str
) -> None:
    tight, ample = Account(left, 0, 0), Account(10**9, 0, 0)
    run, day = (tight, ample) if scope == "run" else (ample, tight)
    bound = CostBound(Decimal(1_000), Decimal(1))
    assert output_within(run, day, bound, wanted) == output
