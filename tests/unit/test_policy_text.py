"""A policy, its rules and the terms that it makes are told whole, in sentences."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.policy_example import policy_example
from bot.policy_text import sentences
from bot.terms_text import whose_votes, why
from executor.domain.policy import Policy
from executor.domain.risk import NO_EMAIL, Risk, RiskFacts
from executor.domain.terms import Requirement, Terms, terms_for
from tests.support.hostile import texts
from tests.support.office import policy

USUAL = Requirement("approval", 1, ("role:approver",))
STRANGERS = Requirement("to strangers", 1, ("role:leads",), (Risk.OUTSIDE_RECIPIENT,))
EVE = RiskFacts(outside=("eve@elsewhere.example",), language="en")


def _whole() -> Policy:
    """The example with all of its settings used."""
    source = re.sub(r"(?m)^# (?=\[|[a-z_]+ = )", "", policy_example())
    document = tomllib.loads(source)
    document["approval"] |= {"when_time_is_over": "stop_run", "step_up": True}
    document["email"]["signature"] = "Yours, Acme"
    document["slack"]["progress"] = "plan"
    return Policy.model_validate(document)


def _leaves(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for value in node.values():
            yield from _leaves(value)
    elif isinstance(node, list):
        for value in node:
            yield from _leaves(value)
    elif isinstance(node, str) and re.fullmatch(r"(?:[A-Z]|group:S)[A-Z0-9]{5,}", node):
        yield node.removeprefix("group:")


def test_every_person_group_and_channel_of_a_policy_is_told() -> None:
    whole = _whole()
    told = "\n".join(sentences(whole))
    assert set(_leaves(whole.as_document())) <= set(re.findall(r"[A-Z][A-Z0-9]{5,}", told))
    for words in (
        "and to C0456EFGH where a card's own cannot be used",
        "what it does, step by step, as a plan where Slack can show one.",
        "Bots that may ask and never decide: U0789IJKL.",
        "U0123ABCD may edit what is proposed, and then does not approve it.",
        "U0456EFGH may give and revoke roles in Slack.",
        "Role leads: U0456EFGH, user group S0123ABCD.",
        "Whoever may decide is reminded after 4 h and 12 h.",
        "After 18 h it is put to others as well: U0456EFGH.",
        "the run is stopped",
        "Every approval needs a second factor.",
        "Links to acme-status.example and acme.example are not external.",
        "Rule 'to strangers', for closing a ticket where the email goes to somebody other than",
        "1 approval of role leads, beside the usual; its card goes to channel C0456EFGH.",
        "names a sum of more than 500, of whatever currency: 2 approvals of the approvers",
        "at most 4 h to decide; at most 10 min to carry it out; each approval with a second",
        "has more than 5000 characters or is not in en or nl: 1 approval of the approvers",
        "Rule 'all that is left', for closing a ticket: nobody is asked, unless another rule",
        "They end with the signature 'Yours, Acme'.",
    ):
        assert words in told, words
    assert "No rule lets anything be done without an approval." not in told


def test_a_policy_without_rules_says_that_everything_needs_an_approval() -> None:
    told = sentences(policy())
    assert "No rule lets anything be done without an approval." in told
    assert "Whoever asked for a run sees there what it does, step by step." in told
    assert all(said.endswith(".") and said[0].isupper() for said in told)


def test_votes_are_told_with_the_reason_that_a_rule_has() -> None:
    terms = Terms((USUAL, STRANGERS), 60, 60)
    assert whose_votes(terms, EVE) == (
        "2 approvals needed: one of the approvers, one of role leads because it goes to "
        "eve@elsewhere.example. Whoever is of several of these counts for each."
    )
    assert "because it goes to somebody other than the customer." in whose_votes(terms)
    alone = Terms((USUAL,), 60, 60, step_up=True)
    assert whose_votes(alone) == (
        "1 approval needed: one of the approvers. Each with a second factor."
    )
    assert whose_votes(Terms((), 60, 60)).startswith("No approval needed")


def test_two_rules_that_ask_the_same_people_are_told_as_the_one_that_asks_for_more() -> None:
    more = Requirement("large sums", 2, ("role:approver",), (Risk.AMOUNT,))
    facts = RiskFacts(amount=NO_EMAIL.amount, language="en")
    assert whose_votes(Terms((USUAL, more), 60, 60), facts) == (
        "2 approvals needed: 2 of the approvers because it names a large sum."
    )


@pytest.mark.parametrize("risk", list(Risk))
def test_every_risk_has_words_of_ours_and_names_what_it_is_about(risk: Risk) -> None:
    one = Requirement("r", 1, ("U0SECOND",), (risk,))
    ours = why(one)
    assert ours
    full = RiskFacts(("a@b.test",), ("a@b.test",), ("evil.test",), 1, None, 7, "ja")
    assert why(one, full)
    assert not re.search(r"@|\.test", ours)


@given(st.lists(texts, max_size=5))
def test_facts_cannot_break_the_line_that_names_them(names: list[str]) -> None:
    facts = RiskFacts(outside=tuple(names), links=tuple(names), language="en")
    one = Requirement("r", 1, ("U0SECOND",), (Risk.OUTSIDE_RECIPIENT, Risk.EXTERNAL_LINK))
    told = why(one, facts)
    assert not any(c in told for c in "\n\r\u2028\u2029\u202e\x1b")
    assert len(told) < 1_500


def test_what_is_told_of_an_operation_follows_from_its_terms() -> None:
    rules = [{"name": "x", "when": ["external_link"], "approvers": ["group:S0LEADS", "U0SECOND"]}]
    facts = RiskFacts(links=("evil.test",), language="en")
    told = whose_votes(terms_for(policy(rules=rules), "close_ticket", facts), facts)
    assert "one of user group S0LEADS or U0SECOND because it links to evil.test" in told


def _told(**sections: object) -> str:
    return "\n".join(sentences(policy(**sections)))


def test_what_a_policy_says_of_money_is_told_whole() -> None:
    told = _told(
        budget={
            "run_microusd": 2_500_000,
            "day_microusd": 12_300,
            "warn_at_percent": 70,
            "approvers": ["role:leads", "U0BOSS"],
            "quorum": 2,
            "most_run_microusd": 10_000_000,
        },
        roles={"leads": {}},
        prices={
            "local": {
                "input_usd_per_million": "0.1",
                "output_usd_per_million": "0.405",
                "cache_write_usd_per_million": "1.25",
                "cache_read_usd_per_million": "0.01",
            }
        },
        costs={"email.send": 400},
        run={"max_tokens": 1_234_567, "max_parked_seconds": 7_200},
        admission={"max_active_runs": 3, "max_queued_runs": 1_500},
    )
    for words in (
        "One run may cost $2.50, all runs of a day in UTC $0.0123.",
        "People are told once when 70% of either is used.",
        "pauses and asks role leads or U0BOSS for as much again, as often as its next call needs; "
        "2 of them have to approve.",
        "Nobody can raise one run above $10.00; how far a day can be raised is not bounded.",
        "that stays held until an operator settles it.",
        "Model 'local' costs $0.10 for a million tokens that it reads, $0.405 for a million that",
        "$1.25 written to its cache, $0.01 read from it.",
        "Prices of other models are the published ones; a model without a price is refused.",
        "Sending an email costs $0.0004 of the same limits.",
        "read and written 1,234,567 tokens in it, or when it has waited 2 h in a row",
        "At most 3 runs are at work at once; 1,500 more may wait for a place",
    ):
        assert words in told, words


def test_without_bounds_and_prices_that_is_told_as_well() -> None:
    told = _told()
    assert "asks the approvers for as much again, as often as its next call needs; one of" in told
    assert "How far they can raise either is not bounded." in told
    assert "Prices of models are the published ones" in told
    assert "No tools of other servers are used." in told


def test_of_servers_their_tools_are_told_and_no_secret_that_stands_in_the_file() -> None:
    secret = "hunter2"
    told = _told(
        servers={
            "billing": {
                "command": ["/opt/bin/billing-mcp", f"--key={secret}"],
                "reads": ["find_invoice"],
                "tools": ["find_invoice", "refund"],
                "requesters": ["U0BOSS"],
                "environment": ["BILLING_API_KEY"],
                "costs": {"refund": 5_000},
                "timeout_seconds": 90,
            },
            "wiki": {
                "url": f"https://tools.example:8443/{secret}?key={secret}",
                "token_from": "WIKI_TOKEN",
            },
        }
    )
    for words in (
        "Server billing is started by the command 'billing-mcp'; a call of it may take 1 min 30 s.",
        "find_invoice and refund are used; find_invoice only reads and runs at once; everything",
        "Only runs of U0BOSS may use billing.",
        "Billing is given BILLING_API_KEY.",
        "Each call of refund of billing costs $0.005 of the same limits.",
        "Server wiki is at https://tools.example:8443 with the token in WIKI_TOKEN;",
        "Of wiki, all tools are used, and every one asks people.",
    ):
        assert words in told, words
    assert secret not in told
