"""What an approval takes, in words: whose votes, because of what, and what a rule says. Pure.

Facts name addresses and hosts, which somebody else wrote: a sentence that was made with them stands
where no character means anything, or not at all. Without facts all words are our own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

from bot.card_parts import one_line
from bot.duration_text import duration
from executor.domain.intent import CALL_TOOL, CLOSE_TICKET, REOPEN_TICKET
from executor.domain.policy import (
    APPROVER,
    EDITOR,
    OPERATOR,
    REQUESTER,
    EmailSection,
    RuleSection,
)
from executor.domain.risk import NO_EMAIL, Risk, RiskFacts
from executor.domain.terms import Requirement, Terms

_ROLES = {
    REQUESTER: "those who may ask",
    APPROVER: "the approvers",
    EDITOR: "those who may edit",
    OPERATOR: "the operators",
}
_TOOLS = {
    CLOSE_TICKET: "closing a ticket",
    REOPEN_TICKET: "opening a ticket again",
    CALL_TOOL: "calling a tool of a server",
}
_MOST_NAMED = 3
_LONGEST_NAME = 120


def whose_votes(terms: Terms, facts: RiskFacts = NO_EMAIL) -> str:
    """Say whose approvals are needed, and because of what where a rule asks for them."""
    wanted = _joined(terms.requirements)
    if not wanted:
        return "No approval needed: the policy consents by itself."
    needed = _count(sum(one.quorum for one in wanted))
    told = f"{needed} needed: {', '.join(_part(one, facts) for one in wanted)}."
    if terms.step_up:
        told += " Each with a second factor."
    return f"{told} Whoever is of several of these counts for each." if len(wanted) > 1 else told


def why(requirement: Requirement, facts: RiskFacts = NO_EMAIL) -> str:
    """Say because of what a rule asks for its votes; empty where it always does."""
    return listing([_risk(risk, facts) for risk in requirement.because])


def who_words(who: str) -> str:
    """Name whose vote counts: a person, a user group, or everybody who has a role."""
    if who.startswith("group:"):
        return f"user group {who.removeprefix('group:')}"
    role = who.removeprefix("role:")
    return _ROLES.get(role, f"role {role}") if role != who else who


def people_words(named: Sequence[str], last: str = "or") -> str:
    """Name several of them."""
    return listing([who_words(who) for who in named], last) or "nobody"


def rule_words(rule: RuleSection, email: EmailSection) -> str:
    """Tell one rule of the policy in a sentence."""
    # No rule says that nobody is asked about opening a ticket again.
    about = rule.tools or ((CLOSE_TICKET,) if rule.quorum == 0 else ())
    tools = listing([_TOOLS[tool] for tool in about])
    told = f"Rule {rule.name!r}, " + (f"for {tools}" if tools else "for everything")
    if not rule.is_unconditional:
        told += f" where the email {listing(list(_conditions(rule, email)), 'or')}"
    if rule.quorum == 0:
        told += ": nobody is asked, unless another rule that matches asks for somebody"
    else:
        of = people_words(rule.approvers or (f"role:{APPROVER}",))
        told += f": {_count(rule.quorum)} of {of}, beside the usual"
    return "; ".join((told, *_extras(rule))) + "."


def times_words(terms: Terms) -> str:
    """Tell the times of an approval in a sentence."""
    told = (
        f"There is {duration(terms.decide_within)} to decide, from when the card is shown, and "
        f"{duration(terms.use_within)} to carry it out"
    )
    if terms.remind_after:
        told += f"; reminders after {listing([duration(s) for s in terms.remind_after])}"
    if terms.escalate_after is not None:
        whom = people_words(terms.escalate_to, "and")
        told += f"; after {duration(terms.escalate_after)} it is put to {whom} as well"
    return f"{told}."


def domains_of(email: EmailSection) -> list[str]:
    """Name whose links are not external, as people read a domain."""
    return sorted(domain for domain in email.domains if "xn--" not in domain)


def listing(parts: Sequence[str], last: str = "and") -> str:
    """Join words: ``a, b and c``."""
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} {last} {parts[-1]}"


def _joined(requirements: Iterable[Requirement]) -> list[Requirement]:
    """Keep of those that ask the same people the one that asks for most; the order stays."""
    kept: dict[tuple[str, ...], Requirement] = {}
    for one in requirements:
        before = kept.get(one.of)
        if before is None or before.quorum < one.quorum:
            kept[one.of] = one
    return list(kept.values())


def _part(requirement: Requirement, facts: RiskFacts) -> str:
    count = "one" if requirement.quorum == 1 else str(requirement.quorum)
    reason = why(requirement, facts)
    because = f" because {reason}" if reason else ""
    return f"{count} of {people_words(requirement.of)}{because}"


def _count(quorum: int) -> str:
    return "1 approval" if quorum == 1 else f"{quorum} approvals"


def _risk(risk: Risk, facts: RiskFacts) -> str:
    match risk:
        case Risk.OUTSIDE_RECIPIENT:
            return f"it goes to {_some(facts.outside) or 'somebody other than the customer'}"
        case Risk.FIRST_CONTACT:
            to = _some(facts.first_contacts)
            return f"nothing was sent before to {to or 'somebody to whom it goes'}"
        case Risk.EXTERNAL_LINK:
            return f"it links to {_some(facts.links) or 'another website'}"
        case Risk.ATTACHMENT:
            return "it has an attachment"
        case Risk.AMOUNT:
            named = "a large sum" if facts.amount is None else f"{facts.amount.normalize():f}"
            return f"it names {named}"
        case Risk.LONG_TEXT:
            return f"it has {facts.text_characters} characters" if facts.language else "it is long"
        case Risk.LANGUAGE:
            return f"its language is {facts.language}" if facts.language else "of its language"
        case _:
            assert_never(risk)


def _conditions(rule: RuleSection, email: EmailSection) -> Iterator[str]:
    """Tell on what a rule depends; any of it is enough."""
    for condition in rule.when:
        match condition:
            case "outside_recipient":
                yield "goes to somebody other than the ticket's customer"
            case "first_contact":
                yield "goes to somebody to whom nothing was sent before"
            case "external_link":
                yield f"links elsewhere than to {listing(domains_of(email), 'or')}"
            case "attachment":
                yield "has an attachment"
            case _:
                assert_never(condition)
    if rule.amount_above is not None:
        yield f"names a sum of more than {rule.amount_above:f}, of whatever currency"
    if rule.text_above is not None:
        yield f"has more than {rule.text_above} characters"
    if rule.language_not_in is not None:
        yield f"is not in {listing(rule.language_not_in, 'or')}"


def _extras(rule: RuleSection) -> Iterator[str]:
    if rule.decide_within_seconds is not None:
        yield f"at most {duration(rule.decide_within_seconds)} to decide"
    if rule.use_within_seconds is not None:
        yield f"at most {duration(rule.use_within_seconds)} to carry it out"
    if rule.step_up:
        yield "each approval with a second factor"
    if rule.channel is not None:
        yield f"its card goes to channel {rule.channel}"


def _some(names: Sequence[str]) -> str:
    """Name a few, so that nothing in them hides or breaks the line."""
    shown = [one_line(name, _LONGEST_NAME) for name in names[:_MOST_NAMED]]
    more = len(names) - len(shown)
    return listing([*shown, f"{more} more"] if more else shown)
