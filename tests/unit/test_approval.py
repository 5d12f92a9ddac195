"""The approval's machine: votes are folded one by one, and the order of equals does not matter."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executor.domain.approval import (
    EDGES,
    Approval,
    ApprovalStatus,
    Event,
    Moved,
    OperationEnded,
    PolicyConsents,
    Presented,
    TimePassed,
    Used,
    Vote,
    VoteCast,
    decide,
)
from executor.domain.ids import ApprovalId, OperationId, PrincipalId
from executor.domain.policy import BASE
from executor.domain.terms import Requirement, Terms
from executor.domain.transition import NoChange, Reason, Refused

NOW = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)
DIGEST = b"d" * 32
S = ApprovalStatus


def _approval(status: ApprovalStatus = S.OPEN, *, quorum: int = 1) -> Approval:
    return Approval(
        ApprovalId(UUID(int=1)),
        OperationId(UUID(int=2)),
        status,
        DIGEST,
        1,
        Terms((Requirement(BASE, quorum, ("role:approver",)),), 3_600, 600),
        presented_at=NOW,
        decide_by=NOW + timedelta(hours=1),
        use_by=None if status is S.OPEN else NOW + timedelta(minutes=10),
    )


def _vote(who: str = "p", vote: Vote = Vote.APPROVE, **changes: object) -> VoteCast:
    cast = VoteCast(PrincipalId(who), vote, DIGEST, 1, "", still_needed=0)
    return replace(cast, **changes)  # type: ignore[arg-type]


def _counted(approval: Approval, who: str, vote: Vote = Vote.APPROVE) -> VoteCast:
    """A vote with what is lacking when it is counted, as the caller works it out."""
    approving = {*approval.approving, PrincipalId(who)}
    return _vote(who, vote, still_needed=approval.quorum - len(approving))


EVENTS: dict[str, Event] = {
    "presented": Presented(),
    "approve": _vote(),
    "reject": _vote(vote=Vote.REJECT),
    "looked at the clock": TimePassed(),
    "withdrawn": OperationEnded(withdrawn=True),
    "ended": OperationEnded(withdrawn=False),
    "used": Used(),
    "the policy consents": PolicyConsents(PrincipalId("policy:1")),
}
MOVES = {
    (S.OPEN, "approve"): S.GRANTED,
    (S.OPEN, "the policy consents"): S.GRANTED,
    (S.OPEN, "reject"): S.DENIED,
    (S.OPEN, "withdrawn"): S.WITHDRAWN,
    (S.OPEN, "ended"): S.VOID,
    (S.GRANTED, "withdrawn"): S.WITHDRAWN,
    (S.GRANTED, "ended"): S.VOID,
    (S.GRANTED, "used"): S.CONSUMED,
}


@pytest.mark.parametrize(("status", "name"), list(product(ApprovalStatus, EVENTS)))
def test_every_status_answers_every_event(status: ApprovalStatus, name: str) -> None:
    decision = decide(_approval(status), EVENTS[name], now=NOW)
    target = MOVES.get((status, name))
    if target is None:
        assert isinstance(decision, NoChange | Refused)
    else:
        assert isinstance(decision, Moved)
        assert decision.transition is not None
        assert decision.approval.status is target
        assert (status.value, target.value) in EDGES


@pytest.mark.parametrize(
    ("status", "passed", "expires"),
    [
        (S.OPEN, timedelta(minutes=59, seconds=59), False),
        (S.OPEN, timedelta(hours=1), True),
        (S.GRANTED, timedelta(minutes=9, seconds=59), False),
        (S.GRANTED, timedelta(minutes=10), True),
        (S.CONSUMED, timedelta(days=1), False),
        (S.DENIED, timedelta(days=1), False),
    ],
)
def test_the_two_clocks_end_exactly_at_their_moment(
    status: ApprovalStatus, passed: timedelta, expires: bool
) -> None:
    decision = decide(_approval(status), TimePassed(), now=NOW + passed)
    assert isinstance(decision, Moved) is expires
    if status is S.OPEN:
        assert isinstance(decide(_approval(), _vote(), now=NOW + passed), Moved) is not expires
    if status is S.GRANTED:
        assert isinstance(decide(_approval(status), Used(), now=NOW + passed), Moved) is not expires


def test_the_time_to_decide_starts_when_it_is_shown_and_only_once() -> None:
    unseen = replace(_approval(), presented_at=None, decide_by=None)
    assert decide(unseen, _vote(), now=NOW) == Refused(Reason.NOT_SHOWN)
    assert decide(unseen, TimePassed(), now=NOW + timedelta(days=99)) == NoChange()
    shown = decide(unseen, Presented(), now=NOW)
    assert isinstance(shown, Moved)
    assert shown.approval.decide_by == NOW + timedelta(hours=1)
    assert decide(shown.approval, Presented(), now=NOW + timedelta(minutes=5)) == NoChange()


@pytest.mark.parametrize(
    ("cast", "reason"),
    [
        (_vote(digest=b"x" * 32), Reason.CONTENT_CHANGED),
        (_vote(content_revision=2), Reason.CONTENT_CHANGED),
        (_vote(objection=Refused(Reason.OWN_REQUEST)), Reason.OWN_REQUEST),
    ],
)
def test_a_vote_on_something_else_or_by_the_wrong_person_is_refused(
    cast: VoteCast, reason: Reason
) -> None:
    assert decide(_approval(), cast, now=NOW) == Refused(reason)


PEOPLE = st.sampled_from(["a", "b", "c", "d"])


@given(st.integers(1, 4), st.lists(st.tuples(PEOPLE, st.sampled_from(list(Vote))), max_size=12))
def test_folding_votes_grants_exactly_when_enough_people_agree_and_nobody_objects(
    quorum: int, votes: list[tuple[str, Vote]]
) -> None:
    approval, said = _approval(quorum=quorum), dict[str, Vote]()
    for who, vote in votes:
        before = approval
        decision = decide(approval, _counted(approval, who, vote), now=NOW)
        if isinstance(decision, Moved):
            approval = decision.approval
            said[who] = vote
        if before.status is not S.OPEN:
            assert approval == before
    yes = sum(vote is Vote.APPROVE for vote in said.values())
    if approval.status is S.GRANTED:
        assert yes == quorum
        assert Vote.REJECT not in said.values()
    elif approval.status is S.DENIED:
        assert list(said.values()).count(Vote.REJECT) == 1
    else:
        assert approval.status is S.OPEN
        assert yes < quorum
    assert {str(who): vote for who, vote in approval.votes} == said


@given(st.permutations(["a", "b", "c"]), st.integers(1, 3))
def test_the_order_of_approvals_does_not_matter(order: list[str], quorum: int) -> None:
    approval = _approval(quorum=quorum)
    for number, who in enumerate(order, start=1):
        decision = decide(approval, _counted(approval, who), now=NOW)
        if number <= quorum:
            assert isinstance(decision, Moved)
            approval = decision.approval
            assert (approval.status is S.GRANTED) is (number == quorum)
        else:
            assert isinstance(decision, Refused)
