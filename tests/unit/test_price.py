"""What a call of a model costs, and the dearest that it can be."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from executor.domain.price import CostBound, Rate, Rates, dearest

FLAT = Rates(Rate(Decimal(3)), Rate(Decimal(15)), Rate(Decimal("3.75")), Rate(Decimal("0.3")))
STEPPED = Rates(
    Rate(Decimal(3), ((200_000, Decimal(6)),)),
    Rate(Decimal(15), ((200_000, Decimal("22.5")),)),
    Rate(Decimal("3.75"), ((200_000, Decimal("7.5")),)),
    Rate(Decimal("0.3"), ((200_000, Decimal("0.6")),)),
)
AMOUNTS = st.decimals(min_value=0, max_value=100, places=3)
RATES = st.builds(
    Rate,
    AMOUNTS,
    st.lists(
        st.tuples(st.integers(1, 1_000_000), AMOUNTS), max_size=2, unique_by=lambda s: s[0]
    ).map(lambda steps: tuple(sorted(steps))),
)
SOME_RATES = st.builds(Rates, RATES, RATES, RATES, RATES)


def test_a_part_of_a_micro_dollar_counts_as_a_whole_one() -> None:
    assert FLAT.cost(1, 0, cache_read=1) == 1
    assert FLAT.cost(0, 0) == 0
    assert FLAT.cost(1_000_000, 1_000_000) == 18_000_000


def test_what_the_cache_holds_has_its_own_price() -> None:
    assert FLAT.cost(1_000, 40, cache_read=300, cache_write=100) == 1_800 + 90 + 375 + 600


def test_counts_that_do_not_add_up_are_priced_as_input() -> None:
    assert FLAT.cost(10, 0, cache_read=500, cache_write=500) == 3_000


def test_a_long_call_pays_the_dearer_rate_for_all_of_it() -> None:
    assert STEPPED.cost(200_000, 1_000) == 615_000
    assert STEPPED.cost(200_001, 1_000) == 1_200_006 + 22_500


def test_a_bound_counts_the_long_context_before_it_is_reached() -> None:
    assert STEPPED.bound(200_000) == CostBound(Decimal(750_000), Decimal(15))
    assert STEPPED.bound(200_001) == CostBound(Decimal("1500007.5"), Decimal("22.5"))


def test_a_bound_takes_the_dearest_way_to_read_something() -> None:
    dear_to_read = Rates(Rate(Decimal(1)), Rate(Decimal(1)), Rate(Decimal(0)), Rate(Decimal(9)))
    assert dear_to_read.bound(10).input_microusd == 90


@given(SOME_RATES, SOME_RATES, st.data())
def test_nothing_within_the_bound_costs_more_than_it(
    rates: Rates, other: Rates, data: st.DataObject
) -> None:
    most = data.draw(st.integers(0, 2_000_000))
    read = data.draw(st.integers(0, most))
    cached = data.draw(st.integers(0, read))
    written = data.draw(st.integers(0, read - cached))
    wrote = data.draw(st.integers(0, 100_000))
    allowed = wrote + data.draw(st.integers(0, 10))
    assert rates.cost(read, wrote, cached, written) <= rates.bound(most).of(allowed)
    assert rates.cost(read, wrote, cached, written) <= dearest([other, rates]).bound(most).of(
        allowed
    )
    assert dearest([rates, rates]) == rates or rates.input.steps or rates.output.steps


@given(st.integers(0, 10**9), st.integers(0, 10**5), AMOUNTS, AMOUNTS)
def test_what_fits_into_an_amount_costs_no_more_than_it(
    amount: int, wanted: int, read: Decimal, written: Decimal
) -> None:
    bound = CostBound(read * 1_000, written)
    fits = bound.most_output_within(amount, wanted)
    assert 0 <= fits <= wanted
    assert fits == 0 or bound.of(fits) <= amount
