"""Effects and their attempts: what a result proves, and how an effect follows from its attempts.

A result belongs to its attempt. The effect follows from all of them: any applied makes it applied;
else any still open keeps it dispatched; else any unknown makes it unknown; only if every attempt is
proved not applied is it not applied, so that a later refusal cannot hide an earlier acceptance.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import assert_never

from executor.domain.ids import AttemptId, EffectId
from executor.domain.payloads import JsonObject
from executor.domain.transition import BORN, NoChange, Transition


class EffectKind(StrEnum):
    """The ordered parts that operations are made of."""

    TICKET_NOTE = "ticket.note"
    TICKET_CLOSE = "ticket.close"
    TICKET_REOPEN = "ticket.reopen"
    EMAIL_SEND = "email.send"
    BUDGET_RAISE = "budget.raise"
    TOOL_CALL = "tool.call"


PREPARING = frozenset({EffectKind.TICKET_NOTE})
"""Effects that only prepare the next one: alone they change nothing that anybody asked for."""

AT_A_DESK = frozenset({EffectKind.TICKET_NOTE, EffectKind.TICKET_CLOSE, EffectKind.TICKET_REOPEN})
"""Effects that a ticket desk has to take; no other effects go there."""


class Capability(StrEnum):
    """What a provider lets us conclude about an attempt whose answer was lost."""

    TRANSACTIONAL = "transactional"
    CONDITIONAL = "conditional"
    KEYED = "keyed"
    LOOKUP = "lookup"
    OPAQUE = "opaque"


class EffectStatus(StrEnum):
    """Where an effect stands; ``applied`` has no way out."""

    PLANNED = "planned"
    SKIPPED = "skipped"
    DISPATCHED = "dispatched"
    APPLIED = "applied"
    NOT_APPLIED = "not_applied"
    UNKNOWN = "unknown"


class AttemptStatus(StrEnum):
    """Where one try stands; ``dispatched`` from its record on, before the first byte leaves."""

    DISPATCHED = "dispatched"
    APPLIED = "applied"
    NOT_APPLIED = "not_applied"
    UNKNOWN = "unknown"


EFFECT_EDGES: frozenset[tuple[str, str]] = frozenset(
    {
        (BORN, "planned"),
        ("planned", "dispatched"),
        ("planned", "skipped"),
        ("planned", "applied"),
        ("dispatched", "applied"),
        ("dispatched", "not_applied"),
        ("dispatched", "unknown"),
        ("not_applied", "dispatched"),
        ("not_applied", "applied"),
        ("unknown", "dispatched"),
        ("unknown", "applied"),
        ("unknown", "not_applied"),
    }
)

ATTEMPT_EDGES: frozenset[tuple[str, str]] = frozenset(
    {
        (BORN, "dispatched"),
        ("dispatched", "applied"),
        ("dispatched", "not_applied"),
        ("dispatched", "unknown"),
        ("unknown", "applied"),
        ("unknown", "not_applied"),
        ("not_applied", "applied"),
    }
)


class OutcomeKind(StrEnum):
    """What is known of one attempt."""

    APPLIED = "applied"
    NOT_APPLIED = "not_applied"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an adapter concludes from one attempt, and what that rests on.

    ``retryable`` is true only for a ``not_applied`` whose reason can change by itself. ``evidence``
    is a small JSON object without secrets, for example ``{"provider": "smtp", "phase":
    "final_reply", "code": 250, "reply": "2.0.0 Ok: queued as 4F"}``.
    """

    kind: OutcomeKind
    evidence: JsonObject
    retryable: bool = False
    retry_after: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Terms:
    """What a provider was declared to allow: ``key_window`` if keyed, ``lookup_lag`` if lookup."""

    key_window: timedelta | None = None
    lookup_lag: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One numbered try at one effect, recorded before the first byte leaves.

    ``terms`` are those of the moment it was made, ``lookups`` counts the searches begun for it.
    """

    id: AttemptId
    effect_id: EffectId
    number: int
    status: AttemptStatus
    capability: Capability
    opened_at: datetime
    deadline_at: datetime
    conclude_at: datetime
    seq: int = 1
    evidence: JsonObject = field(default_factory=dict)
    terms: Terms = Terms()
    lookups: int = 0


def decide_attempt(status: AttemptStatus, outcome: Outcome) -> Transition[AttemptStatus] | NoChange:
    """Decide what a reported outcome does to its attempt; facts are kept whoever reports them."""
    match outcome.kind:
        case OutcomeKind.APPLIED:
            target = AttemptStatus.APPLIED
        case OutcomeKind.NOT_APPLIED:
            target = AttemptStatus.NOT_APPLIED
        case OutcomeKind.UNKNOWN:
            target = AttemptStatus.UNKNOWN
        case _:
            assert_never(outcome.kind)
    if (status.value, target.value) not in ATTEMPT_EDGES:
        return NoChange()
    return Transition(status, target, "reported", detail={"evidence": outcome.evidence})


def effect_status_from(attempts: Iterable[AttemptStatus]) -> EffectStatus | None:
    """Derive an effect's status from all of its attempts; ``None`` when there is no attempt."""
    statuses = set(attempts)
    if AttemptStatus.APPLIED in statuses:
        return EffectStatus.APPLIED
    if AttemptStatus.DISPATCHED in statuses:
        return EffectStatus.DISPATCHED
    if AttemptStatus.UNKNOWN in statuses:
        return EffectStatus.UNKNOWN
    if AttemptStatus.NOT_APPLIED in statuses:
        return EffectStatus.NOT_APPLIED
    return None


def decide_effect(
    status: EffectStatus, attempts: Iterable[AttemptStatus]
) -> Transition[EffectStatus] | NoChange:
    """Decide where an effect moves after one of its attempts did."""
    target = effect_status_from(attempts)
    if target is None or (status.value, target.value) not in EFFECT_EDGES:
        return NoChange()
    return Transition(status, target, "followed_attempts")


def statuses_that_tell(parts: Iterable[tuple[EffectKind, EffectStatus]]) -> list[EffectStatus]:
    """List what the end of an operation follows from: a note that was left does not count."""
    return [
        status
        for kind, status in parts
        if kind not in PREPARING or status is not EffectStatus.APPLIED
    ]
