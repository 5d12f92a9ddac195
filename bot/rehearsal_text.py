"""What a policy would ask for an operation, told for a terminal. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from bot.card_parts import one_line
from bot.policy_text import mail_not_sent_words
from bot.reason_text import sentence
from bot.terms_text import listing, people_words, times_words, who_words, whose_votes, why
from executor.domain.ids import slack_user
from executor.domain.policy import BASE, Policy, RuleSection
from executor.domain.risk import Risk, RiskFacts
from executor.domain.terms import Requirement
from executor.engine.rehearsing import EVERYONE, Decider, Rehearsal, Supposed

_LONGEST = 120


def rehearsal_lines(
    policy: Policy, supposed: Supposed, found: Rehearsal, *, with_database: bool
) -> Iterator[str]:
    """Tell what an operation would come to under a policy."""
    yield f"{_asked(supposed, found)}."
    if supposed.proposal is None:
        yield mail_not_sent_words(policy.tickets.when_mail_is_not_sent)
    yield from _facts(found.facts)
    if not with_database and supposed.proposal is not None:
        yield (
            "Without the database nobody is known to have been written to before, so that "
            "everybody is a first contact, and no grants are known: --with-database asks it."
        )
    yield ""
    matching = {rule.name: risks for rule, risks in found.matching}
    for rule in policy.rules:
        yield _rule(rule, matching.get(rule.name), found.facts)
    yield whose_votes(found.terms, found.facts)
    yield times_words(found.terms)
    yield f"Its card goes to channel {found.terms.channel or policy.slack.channel}."
    if supposed.requester is not None:
        yield _requester(supposed, found)
    if found.terms.requirements:
        yield ""
        yield "Who could approve it now:"
    for requirement, able in zip(found.terms.requirements, found.deciders, strict=True):
        yield f"  {_for(requirement)}: {', '.join(map(_decider, able)) or 'nobody'}"
    for requirement in found.out_of_reach():
        yield (
            f"As it stands it can never be approved: {_for(requirement)} asks for "
            f"{requirement.quorum}, and fewer could approve."
        )


def _asked(supposed: Supposed, found: Rehearsal) -> str:
    ticket = f"ticket {one_line(supposed.ticket.id, _LONGEST)} of desk {supposed.ticket.desk}"
    if supposed.proposal is None:
        return f"It would open {ticket} again"
    to = listing([one_line(address, _LONGEST) for address in found.recipients])
    return f"It would close {ticket} and send an email to {to}"


def _facts(facts: RiskFacts) -> Iterator[str]:
    for risk, there in (
        (Risk.OUTSIDE_RECIPIENT, facts.outside),
        (Risk.FIRST_CONTACT, facts.first_contacts),
        (Risk.EXTERNAL_LINK, facts.links),
        (Risk.AMOUNT, facts.amount is not None),
        (Risk.LONG_TEXT, facts.text_characters),
        (Risk.LANGUAGE, facts.language),
    ):
        if there:
            yield f"  {why(Requirement('', 1, (), (risk,)), facts)}"


def _rule(rule: RuleSection, risks: tuple[Risk, ...] | None, facts: RiskFacts) -> str:
    if risks is None:
        return f"Rule {rule.name!r} does not match."
    because = why(Requirement(rule.name, rule.quorum, (), risks), facts)
    told = f"Rule {rule.name!r} matches" + (f" because {because}" if because else "")
    return f"{told}; it asks for nobody." if rule.quorum == 0 else f"{told}."


def _requester(supposed: Supposed, found: Rehearsal) -> str:
    user = slack_user(supposed.requester) if supposed.requester is not None else None
    name = "Nobody" if user is None else user[1]
    if found.objection is None:
        return f"{name} may ask for it, and then does not approve it."
    return f"{name} may not ask for it: {sentence(found.objection.reason, found.objection.detail)}"


def _for(requirement: Requirement) -> str:
    of = people_words(requirement.of)
    return of if requirement.rule == BASE else f"{of}, for rule {requirement.rule!r}"


def _decider(one: Decider) -> str:
    if one.is_many:
        return "every full member" if one.who == EVERYONE else who_words(one.who)
    behalf = "" if one.on_behalf_of is None else f" on behalf of {_user(one.on_behalf_of)}"
    return f"{_user(one.who)}{behalf}"


def _user(principal: str) -> str:
    return principal.rpartition(":")[2]
