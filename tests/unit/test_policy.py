"""The policy: who may do what, and a version that changes with every word of it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from executor.domain.authority import Authority
from executor.domain.errors import InvalidContent
from executor.domain.ids import PrincipalId
from executor.domain.policy import Permission, policy_from
from executor.domain.transition import Reason, Refused
from tests.support.office import OTTO, RENE, RIKO, SAM, policy

NOW = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
NO = Reason.NOT_PERMITTED
MAY: dict[tuple[PrincipalId, Permission], Reason | None] = {
    (RIKO, Permission.REQUEST): None,
    (RIKO, Permission.APPROVE): None,
    (RENE, Permission.REQUEST): NO,
    (RENE, Permission.APPROVE): None,
    (SAM, Permission.REQUEST): None,
    (OTTO, Permission.REQUEST): NO,
    (OTTO, Permission.APPROVE): NO,
    (PrincipalId("slack:T0OTHER:U0REVIEWER"), Permission.APPROVE): Reason.OTHER_WORKSPACE,
    (PrincipalId("U0REVIEWER"), Permission.APPROVE): NO,
}


@pytest.mark.parametrize(("who", "permission"), MAY)
def test_permissions_are_exactly_those_named(who: PrincipalId, permission: Permission) -> None:
    refused = Authority(policy(), NOW).objection(who, permission)
    assert (refused.reason if isinstance(refused, Refused) else None) is MAY[who, permission]


@pytest.mark.parametrize(
    ("when", "asks", "consents"),
    [("ask", True, False), ("reopen", True, True), ("leave", False, False)],
)
def test_the_policy_itself_asks_and_consents_only_as_it_says(
    when: str, asks: bool, consents: bool
) -> None:
    rules = policy(tickets={"when_mail_is_not_sent": when})
    assert rules.consents_to_reopening(Permission.REQUEST) is asks
    assert rules.consents_to_reopening(Permission.APPROVE) is consents


def test_everyone_is_everyone_of_this_team_for_asking_only() -> None:
    rules = policy(people={"requesters": "everyone", "approvers": ["U0REVIEWER"]})
    open_policy = Authority(rules, NOW)
    assert open_policy.objection(OTTO, Permission.REQUEST) is None
    assert open_policy.objection(OTTO, Permission.APPROVE) is not None
    stranger = PrincipalId("slack:T0OTHER:U0OUTSIDER")
    assert open_policy.objection(stranger, Permission.REQUEST) is not None


def test_a_version_names_one_document() -> None:
    assert policy().version == policy().version
    assert policy().version != policy(approval={"quorum": 2}).version
    assert policy_from(policy().as_document()) == policy()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"people": {"requesters": [], "approvers": []}}, "at least one approver"),
        ({"people": {"requesters": [], "approvers": ["riko"]}}, "pattern"),
        ({"approval": {"quorum": 4}}, "names only 3"),
        ({"approval": {"quorum": 0}}, "greater than or equal to 1"),
        ({"tenant": {"timezone": "Mars/Olympus"}}, "IANA"),
        ({"run": {"max_stepz": 1}}, "Extra inputs"),
        ({"email": {"from": ""}}, "at least 3"),
    ],
)
def test_a_document_that_does_not_fit_is_refused_in_words(
    changes: dict[str, object], words: str
) -> None:
    document = {**policy().as_document(), **changes}
    with pytest.raises(InvalidContent, match=words):
        policy_from(document)


@pytest.mark.parametrize(
    "email",
    [
        {"from": "Acme Support"},
        {"from": "Acme <support@acme.example>\r\nBcc: thief@evil.example"},
        {"from": "support@acme.example", "reply_to": "a@b.example, c@d.example"},
        {"from": "support@acme.example", "signature": "Acme\x00"},
        {"from": "support@acme.example", "signature": "Acme\rSupport"},
    ],
)
def test_what_no_email_could_be_made_with_is_refused_with_the_policy(
    email: dict[str, str],
) -> None:
    with pytest.raises(ValidationError, match=r"email\.(from|reply_to|signature)"):
        policy(email=email)


def test_whoever_may_raise_a_limit_is_looked_at_and_has_a_role_that_there_is() -> None:
    asked = policy(budget={"approvers": ["group:S0MONEY", "role:operator"]})
    assert "S0MONEY" in asked.groups
    with pytest.raises(ValueError, match=r"roles\.money"):
        policy(budget={"approvers": ["role:money"]})


@pytest.mark.parametrize(
    "sections",
    [
        {"budget": {"run_microusd": 2**63}},
        {"budget": {"day_microusd": 2**63}},
        {"budget": {"most_run_microusd": 2**63}},
        {"budget": {"most_day_microusd": 2**63}},
        {"budget": {"run_microusd": -1}},
        {"costs": {"email.send": 2**63}},
        {"servers": {"shop": {"command": ["shop"], "costs": {"refund": 2**63}}}},
    ],
)
def test_an_amount_that_the_database_could_not_count_is_refused_with_the_policy(
    sections: dict[str, dict[str, object]],
) -> None:
    with pytest.raises(ValidationError, match="equal to"):
        policy(**sections)
