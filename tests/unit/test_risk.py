"""What makes an operation risky is found in its email, whatever the language of the numbers."""

from __future__ import annotations

from decimal import Decimal

import pytest

from executor.domain.policy import Policy
from executor.domain.risk import NO_EMAIL, RiskFacts, external_hosts, largest_amount
from executor.domain.terms import Terms, terms_for
from tests.support.office import policy


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("We refund 900 EUR to you.", "900"),
        ("We refund €1.250,50 today, not €90", "1250.50"),
        ("USD 1,250.75", "1250.75"),
        ("$1,250", "1250"),
        ("CHF 1'250.-", "1250"),
        ("12 500 kr and 12 500 SEK", "12500"),
        ("¥٩٠٠", "900"),
        ("ticket 4101, 3 pages, 99 %", None),
        ("EUROPE 12 and 12 EURO", None),
        ("", None),
    ],
)
def test_the_largest_sum_beside_a_currency_is_found(text: str, amount: str | None) -> None:
    assert largest_amount(text) == (None if amount is None else Decimal(amount))


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("See https://help.acme.example/a?b=c.", ()),
        ("See https://acme.example.evil.test/x", ("acme.example.evil.test",)),
        ("HTTP://EVIL.TEST", ("evil.test",)),
        ("https://acme.example@evil.test/", ("evil.test",)),
        ("www.evil.test and evil.test/path, evil.test alone", ("www.evil.test", "evil.test")),
        ("https://evil.test:8443/x", ("evil.test",)),
        ("a/b and either/or, 24/7", ()),
    ],
)
def test_links_elsewhere_are_found_by_their_host(text: str, hosts: tuple[str, ...]) -> None:
    assert external_hosts(text, {"acme.example"}) == hosts


def _rules(*rules: dict[str, object]) -> Policy:
    return policy(rules=[{"name": f"rule {n}", **rule} for n, rule in enumerate(rules)])


@pytest.mark.parametrize(
    ("rule", "facts", "matches"),
    [
        ({"amount_above": 100}, RiskFacts(amount=Decimal("100.01")), True),
        ({"amount_above": 100}, RiskFacts(amount=Decimal(100)), False),
        ({"text_above": 10}, RiskFacts(text_characters=11), True),
        ({"text_above": 10}, RiskFacts(text_characters=10), False),
        ({"language_not_in": ["en", "nl"]}, RiskFacts(language="nl-BE"), False),
        ({"language_not_in": ["en", "nl"]}, RiskFacts(language="ja"), True),
        ({"when": ["external_link"]}, RiskFacts(links=("evil.test",)), True),
        ({"when": ["first_contact"]}, RiskFacts(outside=("a@b.test",)), False),
        ({"tools": ["reopen_ticket"]}, NO_EMAIL, False),
        ({"tools": ["close_ticket"]}, NO_EMAIL, True),
        ({}, NO_EMAIL, True),
    ],
)
def test_a_rule_matches_by_its_tools_and_any_of_its_conditions(
    rule: dict[str, object], facts: RiskFacts, matches: bool
) -> None:
    terms = terms_for(_rules({"quorum": 2, **rule}), "close_ticket", facts)
    assert [r.rule for r in terms.requirements] == ["approval", *(["rule 0"] if matches else [])]


def test_terms_join_the_shortest_times_and_the_strictest_form() -> None:
    rules = _rules(
        {"decide_within_seconds": 600, "quorum": 2},
        {"decide_within_seconds": 60, "use_within_seconds": 30, "step_up": True},
    )
    terms = terms_for(rules, "close_ticket", NO_EMAIL)
    assert (terms.decide_within, terms.use_within, terms.step_up) == (60, 30, True)
    assert terms.quorum == 2
    assert Terms.from_json(terms.as_json()) == terms


def test_facts_are_stored_as_they_are() -> None:
    facts = RiskFacts(("a@b.test",), (), ("evil.test",), 0, Decimal("12.50"), 7, "nl")
    assert RiskFacts.from_json(facts.as_json()) == facts
    assert RiskFacts.from_json(NO_EMAIL.as_json()) == NO_EMAIL
