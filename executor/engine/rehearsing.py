"""What a policy would ask for an operation, found out without making one.

The same pure rules decide here as where an operation is accepted and voted on. What only the
database knows, who was written to before and who has a role by a grant, is read where there is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from executor.domain.address import parse_mailbox
from executor.domain.authority import Authority
from executor.domain.closing import ProposeClosing, build_closing_email
from executor.domain.errors import InvalidContent
from executor.domain.grant import Grant, Resource
from executor.domain.ids import PrincipalId, slack_principal
from executor.domain.policy import Permission, Policy, RuleSection
from executor.domain.risk import NO_EMAIL, Risk, RiskFacts, assess
from executor.domain.terms import Requirement, Terms, terms_for, why_matching
from executor.domain.ticket import Ticket
from executor.domain.transition import Refused
from executor.engine.closure_email import ClosureEmails
from executor.engine.engine import Engine
from executor.store import clock, effects, grants

MOST_GRANTS = 10_000
EVERYONE = "everyone"


@dataclass(frozen=True, slots=True)
class Supposed:
    """An operation that somebody might ask for; reopenings have no ``proposal``."""

    kind: str
    ticket: Ticket
    proposal: ProposeClosing | None
    requester: PrincipalId | None = None

    @property
    def resource(self) -> Resource:
        """What the right to it is asked for."""
        return Resource(self.kind, self.ticket.desk, self.ticket.id)

    def addresses(self) -> Iterator[str]:
        """Name every address that it would write to, as envelopes have it."""
        proposal = self.proposal
        if proposal is None:
            return
        for text in (*(proposal.to or (self.ticket.customer_email,)), *proposal.cc):
            with suppress(InvalidContent):
                yield parse_mailbox(text, field="to").ascii_address


@dataclass(frozen=True, slots=True)
class Known:
    """What the database knows; without one, nobody was written to and nothing was granted."""

    now: datetime
    contacts: frozenset[str] = frozenset()
    grants: Sequence[Grant] = ()


@dataclass(frozen=True, slots=True)
class Decider:
    """Somebody whose vote would count: a person, or all who are in a user group or everybody."""

    who: str
    on_behalf_of: PrincipalId | None = None

    @property
    def is_many(self) -> bool:
        """Whether nobody has counted them."""
        return self.who == EVERYONE or self.who.startswith("group:")


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What it would come to; ``matching`` are the rules that match, each with the risks it is for.

    ``deciders`` are in the order of the terms' requirements.
    """

    recipients: tuple[str, ...]
    facts: RiskFacts
    matching: tuple[tuple[RuleSection, tuple[Risk, ...]], ...]
    terms: Terms
    deciders: tuple[tuple[Decider, ...], ...]
    objection: Refused | None

    def out_of_reach(self) -> list[Requirement]:
        """Name the requirements that fewer people could meet than they ask for."""
        return [
            requirement
            for requirement, able in zip(self.terms.requirements, self.deciders, strict=True)
            if not any(one.is_many for one in able)
            and len({one.on_behalf_of or one.who for one in able}) < requirement.quorum
        ]


def rehearse(policy: Policy, supposed: Supposed, known: Known) -> Rehearsal:
    """Find out what a policy would ask for; raises ``InvalidContent`` for an email that it would
    refuse.
    """
    facts, recipients = NO_EMAIL, tuple[str, ...]()
    if supposed.proposal is not None:
        rendered = ClosureEmails().render(
            supposed.ticket, supposed.proposal, policy.email.signature
        )
        email = build_closing_email(
            policy,
            supposed.ticket,
            supposed.proposal,
            rendered,
            tenant=policy.tenant_id,
            key="",
        )
        recipients = email.recipients()
        facts = assess(
            email,
            supposed.ticket,
            supposed.proposal.language,
            own_domains=policy.email.domains,
            contacts=known.contacts,
        )
    terms = terms_for(policy, supposed.kind, facts)
    authority = Authority(policy, known.now, known.grants)
    besides = frozenset() if supposed.requester is None else frozenset({supposed.requester})
    matching = (
        (rule, why)
        for rule in policy.rules
        if (why := why_matching(rule, supposed.kind, facts)) is not None
    )
    return Rehearsal(
        recipients,
        facts,
        tuple(matching),
        terms,
        tuple(
            tuple(_deciders(authority, one, supposed.resource, besides))
            for one in terms.requirements
        ),
        None
        if supposed.requester is None
        else authority.objection(supposed.requester, Permission.REQUEST, supposed.resource),
    )


async def known_of(engine: Engine, policy: Policy, supposed: Supposed) -> Known:
    """Read what the database knows of a policy's tenant. Opens its own transaction."""
    tenant = policy.tenant_id
    async with engine.database.transaction() as conn:
        contacts = await effects.known_recipients(conn, tenant, supposed.addresses())
        lines = await grants.listed(conn, tenant, past=False, most=MOST_GRANTS)
        return Known(await clock.now(conn), contacts, [line.grant for line in lines])


def _deciders(
    authority: Authority,
    requirement: Requirement,
    resource: Resource,
    besides: frozenset[PrincipalId],
) -> Iterator[Decider]:
    """Name whose vote would count: people by name, groups as groups."""
    team = authority.policy.slack.team
    named = [member for who in requirement.of for member in _members(authority.policy, who)]
    several = [who for who in named if who.startswith("group:") or who == EVERYONE]
    people = [slack_principal(team, who) for who in named if who not in several]
    people += [grant.principal for grant in authority.grants]
    for who in dict.fromkeys(people):
        standing = authority.standing(who, requirement.of, resource, besides)
        if standing is not None and who not in besides:
            yield Decider(who, standing.on_behalf_of)
    for group in dict.fromkeys(several):
        yield Decider(group)


def _members(policy: Policy, who: str) -> Sequence[str]:
    role = who.removeprefix("role:")
    members = (who,) if role == who else policy.members_of(role)
    return (EVERYONE,) if members == EVERYONE else members
