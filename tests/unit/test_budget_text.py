"""What is told of money holds nothing that somebody else wrote, and no number too many."""

from __future__ import annotations

from datetime import UTC, date, datetime
from itertools import cycle
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given

from bot.budget_text import accounts_text, known_before, purpose, settled_text
from bot.grant_text import named
from executor.domain.budget import Account, ReservationStatus
from executor.domain.charge_name import charge_label, parse_charge
from executor.domain.ids import PrincipalId, ReservationId, RunId, operator_principal, uuid7
from executor.domain.raising import Scope
from executor.domain.run import RunStatus
from executor.engine.accounts import Accounts, DayAccount
from executor.engine.invoice import KnownBefore, SettledNow
from executor.store.budgets import UnknownCharge
from executor.store.charges import ChargeEnd, NamedCharge, ShortRun
from tests.support.hostile import texts

NOW = datetime(2026, 7, 1, 8, 30, tzinfo=UTC)
ZONE = ZoneInfo("Europe/Amsterdam")
ID = ReservationId(uuid7(1, 0x5F0C1B2B))
RUN = RunId(uuid7(2, 2))


def unknown(what: str = "model:test") -> UnknownCharge:
    return UnknownCharge(ID, RUN, 7, date(2026, 7, 1), what, 40_000, NOW, NOW, "test", None, None)


def accounts(count: int, what: str = "model:test") -> Accounts:
    day = DayAccount(date(2026, 7, 1), Account(10, 12, 0), datetime(2026, 7, 1, 22, tzinfo=UTC))
    runs = [
        ShortRun(RUN, n, RunStatus.PAUSED, Account(10, 10, 0), scope, 12_300)
        for n, scope in zip(range(count), cycle(Scope), strict=False)
    ]
    return Accounts(day, runs, [unknown(what)] * count, NOW, ZONE, True)


def charge(status: ReservationStatus, actual: int | None = None) -> NamedCharge:
    return NamedCharge(ID, RUN, 7, date(2026, 6, 30), "model:test", status, 40_000, actual, NOW)


def test_a_long_list_is_cut_and_says_so() -> None:
    told = accounts_text(accounts(30))
    assert told.count(f"• {charge_label(ID)}") == 10
    assert told.count("(on hold)") == 10
    assert "There is more" in told
    assert "There is more" not in accounts_text(accounts(10))
    assert told.count("It is paused at its own limit: its next call needs $0.0123.") == 5
    assert told.count("It is paused at the day's limit: its next call needs $0.0123.") == 5


def test_the_day_renews_on_the_tenants_clock_and_never_has_less_than_nothing_left() -> None:
    told = accounts_text(accounts(0)).splitlines()[0]
    assert told == (
        "Today (2026-07-01): $0.000012 of $0.00001 spent, $0.00 left. "
        "It renews 2026-07-02 00:00 (Europe/Amsterdam)."
    )


@given(texts)
def test_what_a_call_was_for_cannot_break_its_line(text: str) -> None:
    spelt = purpose(text)
    assert len(spelt) <= 60
    assert not set(spelt) & set("`<>&*~\n\r\u2028\u202e|")
    assert len(accounts_text(accounts(1, text)).splitlines()) == 4


@pytest.mark.parametrize(
    ("status", "actual", "by", "told"),
    [
        (ReservationStatus.SETTLED, 12_300, "slack:T0TEAM1:U0SAM", "to $0.0123 by <@U0SAM>"),
        (
            ReservationStatus.SETTLED,
            0,
            operator_principal("O<b>"),
            "to $0.00 by an operator (O?b?)",
        ),
        (ReservationStatus.SETTLED, 1, "executor", "to $0.000001 by us when its answer came"),
        (ReservationStatus.VOIDED, None, "executor", "released, because nothing was spent, by us"),
    ],
)
def test_who_told_first_is_named_and_their_note_is_not(
    status: ReservationStatus, actual: int | None, by: str, told: str
) -> None:
    end = ChargeEnd(PrincipalId(by), NOW, "the *note* of somebody")
    said = known_before(KnownBefore(charge(status, actual), end), ZONE, named)
    assert told in said
    assert "2026-07-01 10:30" in said
    assert "note" not in said


@pytest.mark.parametrize(("actual", "minds"), [(0, False), (40_000, False), (40_001, True)])
def test_only_more_than_was_held_is_minded(actual: int, minds: bool) -> None:
    told = settled_text(SettledNow(charge(ReservationStatus.UNKNOWN), actual))
    assert ("Mind that this is $0.000001 more" in told) is minds
    assert "charged to 2026-06-30. $0.04 had been held for it." in told


@pytest.mark.parametrize("typed", [charge_label(ID), str(ID), ID.hex, ID.hex[-12:].upper()])
def test_a_charge_is_found_by_its_label_and_by_more_of_its_id(typed: str) -> None:
    found = parse_charge(typed)
    assert found is not None
    assert ID.hex.endswith(found)


@pytest.mark.parametrize(
    "typed", ["", "ch_", "ch_123", "ch_5f0c1b2g", "%", "ch_5f0c1b2a%", "run_7"]
)
def test_what_names_no_charge_is_none(typed: str) -> None:
    assert parse_charge(typed) is None
