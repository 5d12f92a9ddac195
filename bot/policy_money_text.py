"""What a policy says about money, in sentences: limits, who raises them, and what things cost."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from bot.card_parts import one_line
from bot.terms_text import people_words
from bot.typed_money import dollars
from executor.domain.policy import APPROVER, OPERATOR, Policy
from executor.domain.policy_money import BudgetSection, Costed, PriceSection

_LONGEST_MODEL = 100
_EFFECTS: dict[Costed, str] = {
    "ticket.note": "a note on a ticket",
    "ticket.close": "closing a ticket",
    "ticket.reopen": "opening a ticket again",
    "email.send": "sending an email",
}


def money_sentences(policy: Policy) -> Iterator[str]:
    """Say what runs and days may cost, who lets them cost more, and what is counted."""
    budget = policy.budget
    yield (
        f"One run may cost {dollars(budget.run_microusd)}, all runs of a day in "
        f"{policy.tenant.timezone} {dollars(budget.day_microusd)}."
    )
    yield f"People are told once when {budget.warn_at_percent}% of either is used."
    whoever = OPERATOR if policy.people.operators else APPROVER
    asked = people_words(budget.approvers or (f"role:{whoever}",))
    votes = "one of them has" if budget.quorum == 1 else f"{budget.quorum} of them have"
    yield (
        f"At a limit a run pauses and asks {asked} for as much again, as often as its next call "
        f"needs; {votes} to approve."
    )
    yield _bounds(budget)
    yield (
        "What a call of a model may cost at most is held before it is made; where nobody knows "
        "what it did cost, that stays held until an operator settles it."
    )
    for model, price in policy.prices.items():
        yield _price(model, price)
    others = "other models" if policy.prices else "models"
    yield f"Prices of {others} are the published ones; a model without a price is refused."
    for effect, cost in policy.costs.items():
        yield _of_limits(_EFFECTS[effect], cost)


def _of_limits(what: str, cost: int) -> str:
    return f"{what[0].upper()}{what[1:]} costs {dollars(cost)} of the same limits."


def _bounds(budget: BudgetSection) -> str:
    run, day = budget.most_run_microusd, budget.most_day_microusd
    bounds = [
        f"{what} above {dollars(most)}"
        for what, most in (("one run", run), ("a day", day))
        if most is not None
    ]
    if bounds:
        told = f"Nobody can raise {' or '.join(bounds)}"
        free = "a day" if day is None else "one run" if run is None else ""
        return f"{told}; how far {free} can be raised is not bounded." if free else f"{told}."
    return "How far they can raise either is not bounded."


def _price(model: str, price: PriceSection) -> str:
    parts = [
        f"{_usd(price.input_usd_per_million)} for a million tokens that it reads",
        f"{_usd(price.output_usd_per_million)} for a million that it writes",
    ]
    if price.cache_write_usd_per_million is not None:
        parts.append(f"{_usd(price.cache_write_usd_per_million)} written to its cache")
    if price.cache_read_usd_per_million is not None:
        parts.append(f"{_usd(price.cache_read_usd_per_million)} read from it")
    return f"Model {one_line(model, _LONGEST_MODEL)!r} costs {', '.join(parts)}."


def _usd(amount: Decimal) -> str:
    """Spell a price as it stands in the policy, with cents at least."""
    text = f"{amount:,f}"
    whole, _, cents = text.partition(".")
    return f"${whole}.{cents.ljust(2, '0')}"
