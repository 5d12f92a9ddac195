"""What a card is drawn from: the stored record of one operation or run, read at one moment.

The executor knows nothing of Slack; the bot draws these, and nothing else, so that a card can never
say more than the record.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

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
from executor.domain.nudge import NudgeKind
from executor.domain.operation import OperationStatus
from executor.domain.payloads import JsonObject
from executor.domain.policy import ProgressStyle
from executor.domain.risk import NO_EMAIL, RiskFacts
from executor.domain.run import RunStatus
from executor.domain.terms import Requirement, Terms
from executor.domain.ticket import TicketChange, TicketStatus
from executor.domain.transition import Reason, Refused
from executor.engine.progress_record import NO_PROGRESS, Progress
from executor.engine.word import Said


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
class PreviousRevision:
    """The operation whose place this one took; ``email`` is as ``EmailContent.as_json``.

    It stands ``superseded`` where other words took its place, ``stale`` where it was out of date
    and the same was proposed again.
    """

    number: int
    status: OperationStatus
    email: JsonObject | None


@dataclass(frozen=True, slots=True)
class SuccessorRecord:
    """The operation that took this one's place; ``editor`` is the person who wrote it."""

    number: int
    editor: PrincipalId | None


@dataclass(frozen=True, slots=True)
class QuestionRecord:
    """What a person asked about an operation, and the agent's words where it has answered.

    ``unanswered`` is why there is no answer and will be none. Both texts are untrusted.
    """

    tenant_id: TenantId
    id: UUID
    operation: int
    asked_by: PrincipalId
    asked_at: datetime
    question: str
    answer: str | None
    unanswered: Reason | None


@dataclass(frozen=True, slots=True)
class OperationRecord:
    """Everything that an operation's card may say. ``email`` is as ``EmailContent.as_json``.

    ``editor`` is the person who wrote this content, where it was not the agent. ``asked_again_by``
    are people who asked for it once more when the ticket had moved; they count as requesters.
    ``agents`` are those among the requesters that are no people.

    Without an email it is a reopening, and ``undoes`` tells of what. ``reopening`` is what would
    undo this one.

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
    risks: RiskFacts = NO_EMAIL
    editor: PrincipalId | None = None
    previous: PreviousRevision | None = None
    successor: SuccessorRecord | None = None
    asked_again_by: tuple[PrincipalId, ...] = ()
    questions: tuple[QuestionRecord, ...] = ()
    agents: frozenset[PrincipalId] = frozenset()


@dataclass(frozen=True, slots=True)
class RequestedOperation:
    """The operation that an agent's request is about, as it stands.

    ``note`` is a reviewer's reason for a no, untrusted; ``edited``: a person wrote what it says.
    """

    label: str
    status: OperationStatus
    reason: Reason | None
    note: str
    edited: bool


@dataclass(frozen=True, slots=True)
class RequestedRun:
    """The run that an agent's request has come to, as it stands."""

    number: int
    status: RunStatus
    reason: Reason | None


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """What an agent asked for in one message, and what it has come to; ``kind`` as it named it.

    ``refused`` is why nothing was begun. ``again``: an earlier message with the same key has begun
    it. With an ``operation`` and no ``run`` it was answered by what others had asked for before.
    """

    tenant_id: TenantId
    id: UUID
    kind: str | None
    request_key: str | None
    refused: Refused | None
    again: bool
    run: RequestedRun | None
    operation: RequestedOperation | None


@dataclass(frozen=True, slots=True)
class RunRecord:
    """Everything that a run's own card may say; ``summary`` is the model's last word, untrusted.

    ``request`` is what an agent in Slack asked for, where the run is of one. ``progress`` is what
    it has done so far, and ``style`` is how the policy wants that to be shown.
    """

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
    request: RequestRecord | None = None
    progress: Progress = NO_PROGRESS
    style: ProgressStyle = ProgressStyle.PLAIN


@dataclass(frozen=True, slots=True)
class NudgeRecord:
    """What people are reminded of: an operation that waits, and until when they can decide.

    ``whom`` are user ids, and ``group:…`` for user groups. ``waits`` turns false with the decision.
    """

    tenant_id: TenantId
    id: UUID
    operation: int
    kind: NudgeKind
    whom: tuple[str, ...]
    waits: bool
    decide_by: datetime | None
    made_at: datetime


CardRecord = OperationRecord | RunRecord | QuestionRecord | NudgeRecord | RequestRecord
