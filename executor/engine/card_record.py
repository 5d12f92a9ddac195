"""What a card is drawn from: the stored record of one operation or run, read at one moment.

The executor knows nothing of Slack; the bot draws these, and nothing else, so that a card can never
say more than the record.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from executor.domain.approval import ApprovalStatus, Vote
from executor.domain.delivery_event import DeliveryKind
from executor.domain.effect import AttemptStatus, Capability, EffectKind, EffectStatus
from executor.domain.ids import (
    ApprovalId,
    AttemptId,
    OperationId,
    PrincipalId,
    RunId,
    TenantId,
)
from executor.domain.operation import OperationStatus
from executor.domain.payloads import JsonObject
from executor.domain.run import RunStatus
from executor.domain.ticket import TicketChange, TicketStatus
from executor.domain.transition import Reason
from executor.engine.word import Said


@dataclass(frozen=True, slots=True)
class VoteRecord:
    """One person's vote."""

    principal: PrincipalId
    vote: Vote
    note: str
    decided_at: datetime


@dataclass(frozen=True, slots=True)
class ApprovalRecord:
    """A request for people's consent: to the operation, or to trying something once more."""

    id: ApprovalId
    status: ApprovalStatus
    quorum: int
    votes: tuple[VoteRecord, ...]
    decide_within_seconds: int
    decide_by: datetime | None
    use_by: datetime | None


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """One try, with what is known of it.

    ``recover_at`` is when a machine does something about it next, ``lookups`` counts the searches
    for it, and until ``key_until`` the provider drops what comes again under its key.
    """

    number: int
    status: AttemptStatus
    evidence: JsonObject
    opened_at: datetime
    conclude_at: datetime
    reported_at: datetime | None
    capability: Capability
    lookups: int = 0
    recover_at: datetime | None = None
    key_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class EffectRecord:
    """One ordered part of the operation; ``promise`` is the provider's guarantee in a sentence."""

    kind: EffectKind
    status: EffectStatus
    provider: str
    capability: Capability
    promise: str
    attempts: tuple[AttemptRecord, ...]


@dataclass(frozen=True, slots=True)
class WordRecord:
    """What one person said about an effect of which nobody knew whether it was done.

    ``still_needed`` counts the people who had to say the same after this one.
    """

    by: PrincipalId
    said: Said
    note: str
    said_at: datetime
    effect: EffectKind
    still_needed: int = 0


@dataclass(frozen=True, slots=True)
class DoubtRecord:
    """What a person may settle now: the newest attempt, which no machine looks at any more.

    ``not_again`` is why nobody may have it tried once more; ``None``: a repeat would pass the
    checks of its opening, as far as they can be known when the record is read. It needs ``quorum``
    people; ``repeat`` is what the first of them have begun.
    """

    attempt_id: AttemptId
    not_again: Reason | None
    quorum: int
    repeat: ApprovalRecord | None

    @property
    def may_send_again(self) -> bool:
        """Whether *send again* can be said now."""
        return self.not_again is None


@dataclass(frozen=True, slots=True)
class DeliveryRecord:
    """What a provider said of a mail after it had accepted it; ``said`` are its own words."""

    kind: DeliveryKind
    happened_at: datetime
    recipients: tuple[str, ...]
    said: str


@dataclass(frozen=True, slots=True)
class TicketRecord:
    """The target: as it was proposed, and as it is now where that can be read."""

    desk: str
    id: str
    subject: str
    version: int
    recent_changes: tuple[TicketChange, ...]
    current_version: int | None
    current_status: TicketStatus | None
    changes_since: tuple[TicketChange, ...]


@dataclass(frozen=True, slots=True)
class UndoneRecord:
    """The closing that a reopening would undo, as its own intent tells of it.

    ``to`` and ``subject`` are those of the email that was not sent, ``reason`` is why it was not,
    and ``note`` is what is left on the ticket.
    """

    number: int
    to: tuple[str, ...]
    subject: str
    reason: Reason | None
    note: str


@dataclass(frozen=True, slots=True)
class ReopeningRecord:
    """The operation that would undo a closing, and where it stands."""

    number: int
    status: OperationStatus
    decide_by: datetime | None


@dataclass(frozen=True, slots=True)
class OperationRecord:
    """Everything that an operation's card may say. ``email`` is as ``EmailContent.as_json``.

    Without one it is a reopening, and ``undoes`` tells of what. ``reopening`` is what would undo
    this one.

    ``desk_problem`` is why it waits for an outside desk that does not tell, while it does.
    """

    tenant_id: TenantId
    id: OperationId
    number: int
    run_number: int
    goal: str
    status: OperationStatus
    reason: Reason | None
    detail: JsonObject
    requester: PrincipalId
    linked_requesters: tuple[PrincipalId, ...]
    digest: bytes
    content_revision: int
    policy_version: str
    why: str
    ticket: TicketRecord
    email: JsonObject | None
    effects: tuple[EffectRecord, ...]
    words: tuple[WordRecord, ...]
    doubt: DoubtRecord | None
    approval: ApprovalRecord
    created_at: datetime
    opened_at: datetime | None
    ended_at: datetime | None
    deliveries: tuple[DeliveryRecord, ...] = ()
    desk_problem: str | None = None
    undoes: UndoneRecord | None = None
    reopening: ReopeningRecord | None = None


@dataclass(frozen=True, slots=True)
class RunRecord:
    """Everything that a run's own card may say; ``summary`` is the model's last word, untrusted."""

    tenant_id: TenantId
    id: RunId
    number: int
    goal: str
    status: RunStatus
    reason: Reason | None
    summary: str
    requester: PrincipalId
    operations: tuple[tuple[int, OperationStatus], ...]
    created_at: datetime
    ended_at: datetime | None


CardRecord = OperationRecord | RunRecord
