"""The approval: a request for consent to one digest, decided by people's votes.

The time to decide starts when the card is shown, never before; the time to use starts when the
quorum is reached. One person counts once; one rejection ends it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import assert_never

from executor.domain.ids import ApprovalId, AttemptId, OperationId, PrincipalId
from executor.domain.terms import Terms
from executor.domain.transition import BORN, NoChange, Reason, Refused, Transition


class ApprovalStatus(StrEnum):
    """Where an approval stands."""

    OPEN = "open"
    GRANTED = "granted"
    DENIED = "denied"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    VOID = "void"
    CONSUMED = "consumed"


EDGES: frozenset[tuple[str, str]] = frozenset(
    {(BORN, "open")}
    | {("open", target) for target in ("granted", "denied", "expired", "withdrawn", "void")}
    | {("granted", target) for target in ("consumed", "expired", "void", "withdrawn")}
)


class Vote(StrEnum):
    """What a person can say."""

    APPROVE = "approve"
    REJECT = "reject"


@dataclass(frozen=True, slots=True)
class Approval:
    """What a decision about an approval needs to know; ``votes`` maps each voter to the vote.

    ``factored`` are the voters who gave a second factor with it. ``repeats`` is the attempt after
    which it lets the same be tried once more; ``None``: it is the operation's first approval.
    """

    id: ApprovalId
    operation_id: OperationId
    status: ApprovalStatus
    digest: bytes
    content_revision: int
    terms: Terms
    presented_at: datetime | None = None
    decide_by: datetime | None = None
    use_by: datetime | None = None
    votes: tuple[tuple[PrincipalId, Vote], ...] = ()
    seq: int = 1
    repeats: AttemptId | None = None
    factored: frozenset[PrincipalId] = frozenset()

    @property
    def quorum(self) -> int:
        """The most votes that one of its requirements asks for."""
        return self.terms.quorum

    @property
    def use_within(self) -> timedelta:
        """How long there is to carry it out, from when it is granted."""
        return timedelta(seconds=self.terms.use_within)

    @property
    def approving(self) -> tuple[PrincipalId, ...]:
        """Whoever said yes, in the order of their votes."""
        return tuple(who for who, vote in self.votes if vote is Vote.APPROVE)

    def vote_of(self, principal: PrincipalId) -> Vote | None:
        """Return what this person said, if anything."""
        return dict(self.votes).get(principal)

    def counting(self, *, step_up: bool) -> tuple[PrincipalId, ...]:
        """Whoever said yes in the form that counts, in the order of their votes."""
        return tuple(who for who in self.approving if not step_up or who in self.factored)


@dataclass(frozen=True, slots=True)
class Presented:
    """A card with exactly this content stands in Slack (T2)."""


@dataclass(frozen=True, slots=True)
class VoteCast:
    """One person's vote on the digest and content revision that the person was shown.

    ``objection`` is why this person may not decide, worked out by the caller from the policy, the
    requesters and the identity; it is asked only where the approval could still be decided.
    ``still_needed`` is how many votes are lacking when this one is counted with those before it.
    """

    principal: PrincipalId
    vote: Vote
    digest: bytes
    content_revision: int
    note: str
    still_needed: int
    objection: Refused | None = None
    second_factor: bool = False
    needs_second_factor: bool = False


@dataclass(frozen=True, slots=True)
class PolicyConsents:
    """The policy asks for no person: its own word is the consent."""

    principal: PrincipalId


@dataclass(frozen=True, slots=True)
class TimePassed:
    """Somebody looked at the clock."""


@dataclass(frozen=True, slots=True)
class OperationEnded:
    """The operation can no longer act: ``withdrawn`` with its run, else ``void``."""

    withdrawn: bool


@dataclass(frozen=True, slots=True)
class Used:
    """The operation opened under this approval."""


Event = Presented | VoteCast | PolicyConsents | TimePassed | OperationEnded | Used


@dataclass(frozen=True, slots=True)
class Moved:
    """The approval as it is now; ``transition`` is ``None`` where only a fact was added to it."""

    approval: Approval
    transition: Transition[ApprovalStatus] | None


Decision = Moved | NoChange | Refused


def decide(approval: Approval, event: Event, *, now: datetime) -> Decision:
    """Decide what an event does; ``now`` is the database's time, read after the locks."""
    match event:
        case Presented():
            if approval.status is not ApprovalStatus.OPEN or approval.presented_at is not None:
                return NoChange()
            shown = replace(
                approval,
                presented_at=now,
                decide_by=now + timedelta(seconds=approval.terms.decide_within),
            )
            return Moved(shown, None)
        case VoteCast():
            return _vote(approval, event, now)
        case PolicyConsents(principal=principal):
            if approval.status is not ApprovalStatus.OPEN:
                return Refused(_refusal_for(approval.status))
            consented = replace(
                approval,
                votes=(*approval.votes, (principal, Vote.APPROVE)),
                use_by=now + approval.use_within,
            )
            return _move(consented, ApprovalStatus.GRANTED, "policy_consents")
        case TimePassed():
            return _expire(approval, now)
        case OperationEnded(withdrawn=withdrawn):
            target = ApprovalStatus.WITHDRAWN if withdrawn else ApprovalStatus.VOID
            if approval.status in (ApprovalStatus.OPEN, ApprovalStatus.GRANTED):
                return _move(approval, target, "operation_ended")
            return NoChange()
        case Used():
            if approval.status is not ApprovalStatus.GRANTED:
                return Refused(Reason.APPROVAL_MISSING)
            if approval.use_by is None or now >= approval.use_by:
                return Refused(Reason.TIME_TO_USE_OVER)
            return _move(approval, ApprovalStatus.CONSUMED, "used")
        case _:
            assert_never(event)


def _vote(approval: Approval, event: VoteCast, now: datetime) -> Decision:
    if approval.status is not ApprovalStatus.OPEN:
        if approval.vote_of(event.principal) is event.vote:
            return NoChange(_refusal_for(approval.status))
        return Refused(_refusal_for(approval.status))
    if event.objection is not None:
        return event.objection
    if event.digest != approval.digest or event.content_revision != approval.content_revision:
        return Refused(Reason.CONTENT_CHANGED)
    if approval.presented_at is None or approval.decide_by is None:
        return Refused(Reason.NOT_SHOWN)
    if now >= approval.decide_by:
        return Refused(Reason.EXPIRED)
    earlier = approval.vote_of(event.principal)
    if earlier is event.vote:
        return NoChange(Reason.ALREADY_VOTED)
    if earlier is not None and event.vote is Vote.APPROVE:
        return Refused(Reason.ALREADY_VOTED)
    missing = event.needs_second_factor and not event.second_factor
    if missing and event.vote is Vote.APPROVE:
        return Refused(Reason.SECOND_FACTOR_NEEDED)
    voted = replace(
        approval,
        factored=approval.factored | ({event.principal} if event.second_factor else set()),
        votes=(
            *(pair for pair in approval.votes if pair[0] != event.principal),
            (event.principal, event.vote),
        ),
    )
    if event.vote is Vote.REJECT:
        return _move(voted, ApprovalStatus.DENIED, "rejected")
    if event.still_needed <= 0:
        granted = replace(voted, use_by=now + approval.use_within)
        return _move(granted, ApprovalStatus.GRANTED, "quorum_reached")
    return Moved(voted, None)


def _expire(approval: Approval, now: datetime) -> Decision:
    over = {
        ApprovalStatus.OPEN: approval.decide_by,
        ApprovalStatus.GRANTED: approval.use_by,
    }.get(approval.status)
    if over is None or now < over:
        return NoChange()
    return _move(approval, ApprovalStatus.EXPIRED, "time_passed")


def _move(approval: Approval, target: ApprovalStatus, event: str) -> Moved:
    transition = Transition(approval.status, target, event)
    return Moved(replace(approval, status=target, seq=approval.seq + 1), transition)


def _refusal_for(status: ApprovalStatus) -> Reason:
    match status:
        case ApprovalStatus.OPEN:
            return Reason.ALREADY_VOTED
        case ApprovalStatus.GRANTED:
            return Reason.ALREADY_GRANTED
        case ApprovalStatus.CONSUMED:
            return Reason.ALREADY_SENDING
        case ApprovalStatus.DENIED:
            return Reason.ALREADY_DENIED
        case ApprovalStatus.EXPIRED:
            return Reason.EXPIRED
        case ApprovalStatus.WITHDRAWN:
            return Reason.WITHDRAWN
        case ApprovalStatus.VOID:
            return Reason.SUPERSEDED
        case _:
            assert_never(status)
