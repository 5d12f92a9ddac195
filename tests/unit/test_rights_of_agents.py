"""An agent can be somebody who asks and nothing else, whatever the policy or a grant says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from executor.domain.authority import Authority
from executor.domain.grant import Grant, GrantId, Resource
from executor.domain.ids import PrincipalId, slack_principal
from executor.domain.policy import Permission, Policy
from executor.domain.terms import Requirement
from executor.domain.transition import Reason, Refused

NOW = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
AGENT, RENE = slack_principal("T0TEAM1", "U0AGENT"), slack_principal("T0TEAM1", "U0REVIEWER")
TICKET = Resource("close_ticket", "builtin", "4101")
DECIDING = [Permission.APPROVE, Permission.EDIT, Permission.OPERATE]


def authority(*grants: Grant, **people: Any) -> Authority:
    named = {"requesters": "everyone", "approvers": ["U0REVIEWER"], "agents": ["U0AGENT"]}
    document = {
        "slack": {"team": "T0TEAM1", "channel": "C0APPROVALS"},
        "people": {**named, **people},
        "roles": {"leads": {"members": ["U0AGENT"]}},
        "email": {"from": "support@acme.example"},
    }
    return Authority(Policy.model_validate(document), NOW, grants)


def grant(principal: PrincipalId, role: str, giver: PrincipalId | None = None) -> Grant:
    day = timedelta(days=1)
    return Grant(GrantId(UUID(int=1)), 1, principal, role, "*", NOW - day, NOW + day, RENE, giver)


def reason(refused: Refused | None) -> Reason | None:
    return None if refused is None else refused.reason


def test_everyone_is_no_agent_and_a_name_or_a_grant_lets_it_ask() -> None:
    everyone = authority().objection(AGENT, Permission.REQUEST, TICKET)
    assert reason(everyone) is Reason.NOT_PERMITTED
    named = authority(requesters=["U0AGENT"])
    assert named.objection(AGENT, Permission.REQUEST, TICKET) is None
    granted = authority(grant(AGENT, "requester"))
    assert granted.objection(AGENT, Permission.REQUEST, TICKET) is None


@pytest.mark.parametrize("permission", DECIDING)
def test_neither_the_policy_nor_a_grant_lets_it_decide(permission: Permission) -> None:
    everything = ["U0REVIEWER", "U0AGENT"]
    named = authority(approvers=everything, editors=everything, operators=everything)
    roles = [grant(AGENT, role) for role in ("approver", "editor", "operator")]
    passed_on = [grant(AGENT, role, RENE) for role in ("approver", "editor", "operator")]
    for one in (named, authority(*roles), authority(*passed_on)):
        assert reason(one.objection(AGENT, permission, TICKET)) is Reason.NOT_PERMITTED


@pytest.mark.parametrize("of", [("role:approver",), ("role:leads",), ("U0AGENT",)])
def test_its_vote_counts_for_no_requirement(of: tuple[str, ...]) -> None:
    one = authority(approvers=["U0REVIEWER", "U0AGENT"])
    requirement = Requirement("approval", 1, of)
    assert one.counted(requirement, [AGENT], TICKET) == frozenset()
    assert reason(one.objection_to_voting(AGENT, [requirement], TICKET)) is Reason.NOT_PERMITTED


def test_nobody_decides_on_behalf_of_an_agent() -> None:
    one = authority(grant(RENE, "editor", AGENT), approvers=["U0SECOND"], editors=["U0AGENT"])
    assert reason(one.objection(RENE, Permission.EDIT, TICKET)) is Reason.NOT_PERMITTED
