"""What a card is drawn from: the stored record of one operation or run, read at one moment.

The executor knows nothing of Slack; the bot draws these, and nothing else, so that a card can never
say more than the record.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from uuid import UUID

from executor.domain.delivery_event import DeliveryKind
from executor.domain.effect import AttemptStatus, Capability, EffectKind, EffectStatus
from executor.domain.ids import OperationId, PrincipalId, RunId, TenantId
from executor.domain.intent import CALL_TOOL, CLOSE_TICKET, RAISE_BUDGET, REOPEN_TICKET
from executor.domain.operation import OperationStatus
from executor.domain.payloads import JsonObject
from executor.domain.policy import ProgressStyle
from executor.domain.risk import NO_EMAIL, RiskFacts
from executor.domain.run import RunStatus
from executor.domain.transition import Reason
from executor.engine.approval_record import ApprovalRecord
from executor.engine.doubt_record import DoubtRecord
from executor.engine.kind_record import RaiseRecord, ToolCallRecord
from executor.engine.last_account import AccountedOperation
from executor.engine.nudge_record import NudgeRecord
from executor.engine.pause_record import PauseRecord
from executor.engine.progress_record import NO_PROGRESS, Progress
from executor.engine.question_record import QuestionRecord
from executor.engine.request_record import RequestRecord
from executor.engine.revision_record import PreviousRevision, SuccessorRecord
from executor.engine.ticket_record import TicketRecord
from executor.engine.word import Said


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
class DeliveryRecord:
    """What a provider said of a mail after it had accepted it; ``said`` are its own words."""

    kind: DeliveryKind
    happened_at: datetime
    recipients: tuple[str, ...]
    said: str


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

    ``editor`` is the person who wrote this content, where it was not the agent. ``asked_again_by``
    are people who asked for it once more when the ticket had moved; they count as requesters.
    ``agents`` are those among the requesters that are no people.

    A reopening has no email, and ``undoes`` tells of what it undoes. ``reopening`` is what would
    undo this one. What is about no ticket has neither: it is a ``tool_call``, or ``raising`` tells
    which limit it would raise.

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
    ticket: TicketRecord | None
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
    raising: RaiseRecord | None = None
    tool_call: ToolCallRecord | None = None

    @property
    def kind(self) -> str:
        """What kind of operation it is, as policies name it."""
        if self.tool_call is not None:
            return CALL_TOOL
        if self.raising is not None:
            return RAISE_BUDGET
        return CLOSE_TICKET if self.undoes is None else REOPEN_TICKET

    @property
    def target(self) -> TicketRecord:
        """The ticket of an operation that is known to be about one."""
        assert self.ticket is not None, "it is about no ticket"
        return self.ticket


@dataclass(frozen=True, slots=True)
class RunRecord:
    """Everything that a run's own card may say; ``summary`` is the model's last word, untrusted.

    ``request`` is what an agent in Slack asked for, where the run is of one. ``accounted`` are the
    operations that it has asked for, its own and those of others. ``progress`` is what it has done
    so far, and ``style`` is how the policy wants that to be shown. ``pause`` is why it is paused.
    ``model_asked_again_at`` is when it goes on whose model has put it off.
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
    accounted: tuple[AccountedOperation, ...] = ()
    progress: Progress = NO_PROGRESS
    style: ProgressStyle = ProgressStyle.PLAIN
    pause: PauseRecord | None = None
    model_asked_again_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class WarningRecord:
    """A limit is near: that of one ``run`` by its number, or that of one ``day``."""

    tenant_id: TenantId
    id: UUID
    run: int | None
    day: date | None
    used_microusd: int
    limit_microusd: int


CardRecord = (
    OperationRecord | RunRecord | QuestionRecord | NudgeRecord | RequestRecord | WarningRecord
)
