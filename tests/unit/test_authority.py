"""Whose votes count, whatever was given, passed on, ended and revoked."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executor.domain.authority import Authority
from executor.domain.grant import NO_SINGLE_THING, Grant, GrantId, GrantStatus, Resource, is_pattern
from executor.domain.ids import PrincipalId, slack_principal
from executor.domain.policy import Permission, Policy
from executor.domain.risk import RiskFacts
from executor.domain.terms import Requirement, terms_for
from executor.domain.transition import Reason, Refused
from tests.support.office import TEAM, policy

NOW = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
HOUR = timedelta(hours=1)
HERE = Resource("close_ticket", "builtin", "4101")
LEADS, STAFF = "S0LEADS", "S0STAFF"
PEOPLE = [slack_principal(TEAM, f"U0PERSON{n}") for n in range(4)]
ADMIN = slack_principal(TEAM, "U0ADMIN")
RULES = policy(
    people={"requesters": [], "approvers": ["U0PERSON0", f"group:{STAFF}"]},
    roles={"leads": {"members": ["U0PERSON1", f"group:{LEADS}"]}},
)

people = st.sampled_from(PEOPLE)
voters = st.lists(people, unique=True, min_size=1, max_size=4)
besides = st.frozensets(people, max_size=1)
# What counts is drawn more often than what does not, so that chains of grants come about.
patterns = st.sampled_from(
    ["*", "*", "*", "kind:close_ticket", "desk:builtin", "ticket:builtin:4101",
     "kind:reopen_ticket", "desk:zendesk:acme", "ticket:builtin:4102"]
)  # fmt: skip
periods = st.sampled_from([(-1, None), (-1, None), (-1, 1), (0, 1), (-2, -1), (-1, 0), (1, 2)])
statuses = st.sampled_from([GrantStatus.ACTIVE] * 4 + [GrantStatus.REVOKED])
requirements = st.lists(
    st.builds(
        Requirement,
        st.sampled_from(["a", "b"]),
        st.integers(1, 4),
        st.sampled_from([("role:approver",), ("role:approver",), ("role:leads", f"group:{STAFF}")]),
    ),
    min_size=1,
    max_size=3,
)


@st.composite
def grant(draw: st.DrawFn) -> Grant:
    principal = draw(people)
    starts, ends = draw(periods)
    return Grant(
        GrantId(UUID(int=draw(st.integers(1, 2**60)))),
        1,
        principal,
        draw(st.sampled_from(["approver", "approver", "leads"])),
        draw(patterns),
        NOW + starts * HOUR,
        None if ends is None else NOW + ends * HOUR,
        ADMIN,
        draw(st.none() | people.filter(lambda who: who != principal)),
        draw(statuses),
    )


grants = st.lists(grant(), min_size=1, max_size=6)
groups = st.none() | st.fixed_dictionaries(
    {}, optional={LEADS: st.frozensets(people), STAFF: st.frozensets(people)}
)


@st.composite
def authorities(draw: st.DrawFn) -> Authority:
    return Authority(RULES, NOW, draw(grants), draw(groups))


APPROVER = [Requirement("approval", 1, ("role:approver",))]
OWNER, OTHER = PEOPLE[0], PEOPLE[3]


def _is_live(one: Grant) -> bool:
    begun = one.status is GrantStatus.ACTIVE and one.starts_at <= NOW
    here = one.resource in ("*", "kind:close_ticket", "desk:builtin", "ticket:builtin:4101")
    return begun and (one.ends_at is None or one.ends_at > NOW) and here


@given(st.lists(grant(), min_size=1, max_size=3))
def test_a_grant_counts_exactly_while_it_holds_and_where_it_is_about(given: list[Grant]) -> None:
    """Revoked, over, to come, or about something else, it never does."""
    to_other = [replace(g, principal=OTHER, role="approver", on_behalf_of=None) for g in given]
    rights = Authority(RULES, NOW, to_other)
    assert bool(rights.counted(APPROVER[0], [OTHER], HERE)) is any(map(_is_live, to_other))


passed_on = st.lists(
    grant().filter(lambda g: g.on_behalf_of is not None).map(lambda g: replace(g, role="approver")),
    min_size=1,
    max_size=6,
)


@given(passed_on)
def test_a_role_that_was_passed_on_twice_never_counts(given: list[Grant]) -> None:
    """Only one of these people has the role of their own: all that counts is from that hand."""
    rights = Authority(RULES, NOW, given)
    first_hand = {g.principal for g in given if g.on_behalf_of == OWNER and _is_live(g)}
    for who in PEOPLE:
        counted = rights.counted(APPROVER[0], [who], HERE)
        assert counted == ({OWNER} if who in {OWNER, *first_hand} else frozenset())


@given(passed_on, voters)
def test_nobody_votes_for_whoever_asked(given: list[Grant], voting: list[PrincipalId]) -> None:
    rights = Authority(RULES, NOW, given)
    assert rights.counted(APPROVER[0], voting, HERE, {OWNER}) == frozenset()
    assert rights.behind(APPROVER, voting, HERE, {OWNER}) == ()
    for who in {*voting} - {OWNER}:
        refused = rights.objection_to_voting(who, APPROVER, HERE, {OWNER})
        assert isinstance(refused, Refused)


@given(authorities(), requirements, voters, besides)
def test_one_person_counts_once_whoever_votes_for_them(
    rights: Authority,
    wanted: list[Requirement],
    voting: list[PrincipalId],
    not_these: frozenset[PrincipalId],
) -> None:
    for one in wanted:
        counted = rights.counted(one, voting, HERE, not_these)
        assert rights.counted(one, [*voting, *voting], HERE, not_these) == counted
        able = {rights.standing(who, one.of, HERE, not_these) for who in {*voting} - not_these}
        behind = {standing.on_behalf_of for standing in able if standing is not None}
        # Whoever somebody else votes for counts as themselves, also if they vote as well.
        assert behind - {None} <= counted
        assert len(counted) <= len(voting)


@given(authorities(), requirements, voters, besides)
def test_who_is_beside_never_counts_and_nobody_counts_for_them(
    rights: Authority,
    wanted: list[Requirement],
    voting: list[PrincipalId],
    not_these: frozenset[PrincipalId],
) -> None:
    for one in wanted:
        assert not rights.counted(one, voting, HERE, not_these) & not_these
    without = [who for who in voting if who not in not_these]
    assert rights.still_needed(wanted, voting, HERE, not_these) == rights.still_needed(
        wanted, without, HERE, not_these
    )
    for who in voting:
        if rights.objection_to_voting(who, wanted, HERE, not_these) is None:
            standing = rights.standing(who, [w for r in wanted for w in r.of], HERE, not_these)
            assert standing is not None
            assert standing.on_behalf_of not in not_these


@given(authorities(), requirements, voters, st.lists(people, max_size=2))
def test_more_votes_never_lack_more(
    rights: Authority, wanted: list[Requirement], voting: list[PrincipalId], more: list[PrincipalId]
) -> None:
    fewer = rights.still_needed(wanted, voting, HERE)
    assert rights.still_needed(wanted, [*voting, *more], HERE) <= fewer


RULE = st.fixed_dictionaries(
    {"quorum": st.integers(1, 4)},
    optional={
        "tools": st.sampled_from([["close_ticket"], ["reopen_ticket"]]),
        "when": st.sampled_from([["external_link"], ["first_contact", "outside_recipient"]]),
        "text_above": st.integers(0, 100),
        "approvers": st.sampled_from([["role:leads"], ["role:approver", "group:S0STAFF"]]),
        "use_within_seconds": st.integers(1, 10_000),
        "decide_within_seconds": st.integers(1, 200_000),
        "step_up": st.just(True),
    },
)
FACTS = st.builds(
    RiskFacts,
    outside=st.sampled_from([(), ("a@b.test",)]),
    links=st.sampled_from([(), ("evil.test",)]),
    text_characters=st.integers(0, 200),
    language=st.just("en"),
)


def _with(rules: list[dict[str, object]]) -> Policy:
    named = [{"name": f"rule {n}", **rule} for n, rule in enumerate(rules)]
    return policy(
        rules=named, people={"requesters": [], "approvers": ["U0PERSON0", f"group:{STAFF}"]},
        roles={"leads": {"members": ["U0PERSON1", f"group:{LEADS}"]}},
    )  # fmt: skip


@given(st.lists(RULE, max_size=3), RULE, st.integers(0, 3), FACTS, authorities(), voters)
def test_a_rule_that_is_added_never_asks_for_less(
    rules: list[dict[str, object]],
    added: dict[str, object],
    at: int,
    facts: RiskFacts,
    rights: Authority,
    voting: list[PrincipalId],
) -> None:
    before = terms_for(_with(rules), "close_ticket", facts)
    after = terms_for(_with([*rules[:at], added, *rules[at:]]), "close_ticket", facts)
    assert rights.still_needed(after.requirements, voting, HERE) >= rights.still_needed(
        before.requirements, voting, HERE
    )
    assert after.decide_within <= before.decide_within
    assert after.use_within <= before.use_within
    assert after.step_up >= before.step_up


@given(st.lists(RULE, max_size=3), FACTS, authorities(), voters)
def test_a_rule_that_asks_for_nobody_counts_only_where_no_other_matches(
    rules: list[dict[str, object]], facts: RiskFacts, rights: Authority, voting: list[PrincipalId]
) -> None:
    nobody: dict[str, object] = {"quorum": 0}
    before = terms_for(_with(rules), "close_ticket", facts).requirements
    after = terms_for(_with([*rules, nobody]), "close_ticket", facts).requirements
    assert after == (() if len(before) == 1 else before)
    if len(before) > 1:
        assert rights.still_needed(after, voting, HERE) == rights.still_needed(before, voting, HERE)


def test_no_rule_lets_a_ticket_be_opened_again_without_asking() -> None:
    rules = _with([{"quorum": 0}])
    [usual] = terms_for(rules, "reopen_ticket", RiskFacts()).requirements
    assert usual.of == ("role:approver",)
    assert terms_for(rules, "close_ticket", RiskFacts()).asks_nobody


@given(authorities(), requirements, people)
def test_a_group_that_nobody_looked_at_is_never_a_yes_and_may_be_one_later(
    rights: Authority, wanted: list[Requirement], who: PrincipalId
) -> None:
    blind = replace(rights, groups=None)
    everybody = frozenset(PEOPLE)
    seeing = replace(rights, groups={LEADS: everybody, STAFF: everybody})
    refused = blind.objection_to_voting(who, wanted, HERE)
    if refused is None:
        assert seeing.objection_to_voting(who, wanted, HERE) is None
    elif seeing.objection_to_voting(who, wanted, HERE) is None:
        assert refused.reason is Reason.IDENTITY_UNKNOWN


@pytest.mark.parametrize("pattern", ["*", "desk:builtin", "ticket:builtin:4101"])
def test_only_a_grant_about_everything_is_about_the_whole_tenant(pattern: str) -> None:
    given = Grant(GrantId(UUID(int=1)), 1, PEOPLE[3], "operator", pattern, NOW, None, ADMIN)
    rights = Authority(RULES, NOW, [given])
    refused = rights.objection(PEOPLE[3], Permission.OPERATE, NO_SINGLE_THING)
    assert isinstance(refused, Refused) is (pattern != "*")


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("*", True),
        ("kind:close_ticket", True),
        ("kind:close_tickets", False),
        ("desk:zendesk:acme", True),
        ("desk:github:acme/support", True),
        ("ticket:github:acme/support:12", True),
        ("ticket:4101", False),
        ("ticket:builtin:", False),
        ("ticket:builtin:41 01", False),
        ("desk:<!channel>", False),
        ("everything", False),
        ("", False),
    ],
)
def test_a_resource_is_named_in_full(text: str, fits: bool) -> None:
    assert is_pattern(text) is fits
