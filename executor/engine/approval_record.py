"""What a card says of people's consent: what it asks for, and who has voted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from executor.domain.approval import ApprovalStatus, Vote
from executor.domain.ids import ApprovalId, PrincipalId
from executor.domain.terms import Requirement, Terms
from executor.store.card_records import AnyRow


@dataclass(frozen=True, slots=True)
class VoteRecord:
    """One person's vote."""

    principal: PrincipalId
    vote: Vote
    note: str
    decided_at: datetime
    on_behalf_of: PrincipalId | None = None


@dataclass(frozen=True, slots=True)
class ApprovalRecord:
    """A request for people's consent: to the operation, or to trying something once more.

    ``terms`` are those stored with it; the policy of now may ask for more. ``lacking`` are the
    votes that it waits for by the rights of now, each requirement with their number.
    """

    id: ApprovalId
    status: ApprovalStatus
    terms: Terms
    votes: tuple[VoteRecord, ...]
    decide_by: datetime | None
    use_by: datetime | None
    lacking: tuple[Requirement, ...] | None = None

    @property
    def quorum(self) -> int:
        """The most votes that one of its requirements asks for."""
        return self.terms.quorum

    @property
    def decide_within_seconds(self) -> int:
        """How long there is to decide, from when it is shown."""
        return self.terms.decide_within


def vote_records(rows: Sequence[AnyRow]) -> tuple[VoteRecord, ...]:
    """Tell of stored votes, oldest first."""
    return tuple(
        VoteRecord(
            PrincipalId(v.principal),
            Vote(v.vote),
            v.note,
            v.decided_at,
            None if v.on_behalf_of is None else PrincipalId(v.on_behalf_of),
        )
        for v in rows
    )
