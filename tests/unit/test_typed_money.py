"""Amounts are read exactly or not at all, and spelled so that nothing of them is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.typed_money import MOST_MICROUSD, amount_of, dollars
from tests.support.hostile import texts


@pytest.mark.parametrize(
    ("typed", "microusd"),
    [
        ("0.0123", 12_300),
        ("$0.01", 10_000),
        ("0", 0),
        ("$0.00", 0),
        (" 2 ", 2_000_000),
        ("$ 2.5", 2_500_000),
        ("0.000001", 1),
        ("0.10 USD", 100_000),
        ("0.1usd", 100_000),
        ("10000", MOST_MICROUSD),
        ("000.29", 290_000),
    ],
)
def test_an_amount_is_read_to_the_micro_dollar(typed: str, microusd: int) -> None:
    assert amount_of(typed) == microusd


@pytest.mark.parametrize(
    "typed",
    ["", "$", ".", "5.", ".5", "-1", "-0.01", "$-1", "+1", "1e3", "1E-2", "0x10", "1_000", "1,5",
     "1,000.00", "1 000", "0.0000001", "10000.000001", "99999999999999999999", "nan", "inf", "١",
     "１.５", "$$1", "1$", "€1", "0.01 EUR", "0.01\n0.02", "0.01 0.02", "1/2", "½"],
)  # fmt: skip
def test_what_could_mean_something_else_is_no_amount(typed: str) -> None:
    assert amount_of(typed) is None


@given(st.integers(0, MOST_MICROUSD))
def test_an_amount_is_read_back_as_it_is_spelled(microusd: int) -> None:
    assert amount_of(dollars(microusd).replace(",", "")) == microusd


@given(texts)
def test_no_text_breaks_the_reading(text: str) -> None:
    found = amount_of(text)
    assert found is None or 0 <= found <= MOST_MICROUSD


@pytest.mark.parametrize(
    ("microusd", "told"),
    [
        (0, "$0.00"),
        (2_000_000, "$2.00"),
        (100_000, "$0.10"),
        (12_300, "$0.0123"),
        (1, "$0.000001"),
        (1_234_567_890, "$1,234.56789"),
        (-20_000, "-$0.02"),
    ],
)
def test_an_amount_has_cents_and_more_where_it_needs_them(microusd: int, told: str) -> None:
    assert dollars(microusd) == told
