"""What is typed about money is understood in full, or it settles nothing."""

from __future__ import annotations

import pytest
from hypothesis import given

from bot.listeners.budget_line import (
    SettleCharge,
    ShowBudget,
    UnclearBudget,
    UnclearMoney,
    parse_budget,
)
from tests.support.hostile import texts

ID = "0190f3a4-5b6c-7d8e-9f00-11225f0c1b2a"


@pytest.mark.parametrize(
    ("typed", "run"),
    [("", None), ("show", None), ("run_7", 7), ("run 7", 7), ("7", 7), ("run run_7.", 7)],
)
def test_the_day_or_one_run_is_shown(typed: str, run: int | None) -> None:
    assert parse_budget(typed) == ShowBudget(run)


@pytest.mark.parametrize(
    ("typed", "charge", "microusd", "note"),
    [
        ("settle ch_5f0c1b2a 0.0123 invoice 4711", "5f0c1b2a", 12_300, "invoice 4711"),
        ("settle `ch_5F0C1B2A` $0.01 “May, line 3”", "5f0c1b2a", 10_000, "May, line 3"),
        ("Settle 5f0c1b2a $ 2 May &amp; June", "5f0c1b2a", 2_000_000, "May & June"),
        (f"settle {ID} 0 nothing on invoice 9", ID.replace("-", ""), 0, "nothing on invoice 9"),
    ],
)
def test_a_settlement_names_a_charge_an_amount_and_where_it_stands(
    typed: str, charge: str, microusd: int, note: str
) -> None:
    assert parse_budget(typed) == SettleCharge(charge, microusd, note)


@pytest.mark.parametrize(
    ("typed", "what"),
    [
        ("settle", UnclearMoney.SETTLE),
        ("settle ch_5f0c1b2a", UnclearMoney.SETTLE),
        ("settle run_7 0.01 invoice", UnclearMoney.SETTLE),
        ("settle ch_5f0c 0.01 invoice", UnclearMoney.SETTLE),
        ("settle ch_5f0c1b2a invoice 4711", UnclearMoney.AMOUNT),
        ("settle ch_5f0c1b2a -0.01 invoice", UnclearMoney.AMOUNT),
        ("settle ch_5f0c1b2a 1e-2 invoice", UnclearMoney.AMOUNT),
        ("settle ch_5f0c1b2a 0,01 invoice", UnclearMoney.AMOUNT),
        ("settle ch_5f0c1b2a 99999 invoice", UnclearMoney.AMOUNT),
        ("settle ch_5f0c1b2a $ invoice", UnclearMoney.AMOUNT),
        ("settle ch_5f0c1b2a 0.01", UnclearMoney.NOTE),
        ("settle ch_5f0c1b2a 0.01 --", UnclearMoney.NOTE),
        (f"settle ch_5f0c1b2a 0.01 {'x' * 501}", UnclearMoney.LONG_NOTE),
        ("void ch_5f0c1b2a it cost nothing", UnclearMoney.VOID),
        ("release ch_5f0c1b2a", UnclearMoney.VOID),
        ("run seven", UnclearMoney.RUN),
        ("run 99999999999999999999", UnclearMoney.RUN),
        ("raise 10", UnclearMoney.WORDS),
        ("show me", UnclearMoney.WORDS),
        ("7 0.01", UnclearMoney.WORDS),
    ],
)
def test_what_is_not_understood_settles_nothing(typed: str, what: UnclearMoney) -> None:
    assert parse_budget(typed) == UnclearBudget(what)


@given(texts)
def test_no_text_breaks_the_reading(text: str) -> None:
    parse_budget(text)
    parse_budget(f"settle {text}")
