"""What a card is drawn from: the stored record of one operation or run, read at one moment.

The executor knows nothing of Slack; the bot draws these, and nothing else, so that a card can never
say more than the record.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from executor.domain.approval import ApprovalStatus, Vote
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
    """The approval that the card asks for, or asked for."""

    id: ApprovalId
    status: ApprovalStatus
    quorum: int
    votes: tuple[VoteRecord, ...]
    decide_within_seconds: int
    decide_by: datetime | None
    use_by: datetime | None


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """One try, with what is known of it."""

    number: int
    status: AttemptStatus
    evidence: JsonObject
    opened_at: datetime
    conclude_at: datetime
    reported_at: datetime | None


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
    """What one person said about something of which nobody knew whether it was done."""

    by: PrincipalId
    said: Said
    note: str
    said_at: datetime


@dataclass(frozen=True, slots=True)
class DoubtRecord:
    """What a person may settle now: the newest attempt, which no machine looks at any more.

    ``may_send_again`` says that a repeat would pass the checks of its opening, as far as they can
    be known when the record is read.
    """

    attempt_id: AttemptId
    may_send_again: bool


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
class OperationRecord:
    """Everything that an operation's card may say. ``email`` is as ``EmailContent.as_json``."""

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
    email: JsonObject
    effects: tuple[EffectRecord, ...]
    words: tuple[WordRecord, ...]
    doubt: DoubtRecord | None
    approval: ApprovalRecord
    created_at: datetime
    opened_at: datetime | None
    ended_at: datetime | None


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
