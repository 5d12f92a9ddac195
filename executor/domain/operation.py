"""The operation: one durable record of one logical side effect, from proposal to its true end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import assert_never

from executor.domain.effect import EffectStatus
from executor.domain.payloads import JsonObject
from executor.domain.transition import BORN, NoChange, Reason, Refused, Transition


class OperationStatus(StrEnum):
    """Where an operation stands."""

    AWAITING = "awaiting"
    APPROVED = "approved"
    EXECUTING = "executing"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    PARTIAL = "partial"
    UNKNOWN = "unknown"
    REJECTED = "rejected"
    EXPIRED = "expired"
    SUPERSEDED = "superseded"
    WITHDRAWN = "withdrawn"
    STALE = "stale"
    COMPENSATED = "compensated"
    LEFT = "left"


EDGES: frozenset[tuple[str, str]] = frozenset(
    {(BORN, "awaiting")}
    | {
        ("awaiting", target)
        for target in ("approved", "rejected", "expired", "superseded", "withdrawn", "stale")
    }
    | {
        ("approved", target)
        for target in ("executing", "expired", "superseded", "withdrawn", "stale")
    }
    | {("executing", target) for target in ("succeeded", "failed", "partial", "unknown")}
    | {("unknown", target) for target in ("executing", "succeeded", "failed", "partial")}
    | {("failed", "succeeded"), ("failed", "left")}
    | {("partial", "succeeded"), ("left", "succeeded")}
    | {("partial", target) for target in ("executing", "compensated", "left")}
)

UNOPENED = frozenset({OperationStatus.AWAITING, OperationStatus.APPROVED})
"""Nothing has been done and nothing can have been."""

LIVE = UNOPENED | {OperationStatus.EXECUTING, OperationStatus.UNKNOWN, OperationStatus.PARTIAL}
"""Holds its intent key. ``partial`` holds it although the run that waited for it is told."""

STOPS_RUN = "stops_run"
"""Stands in the detail of an operation that nobody decided in time, where its run ends with it."""

IN_DOUBT = frozenset({OperationStatus.EXECUTING, OperationStatus.UNKNOWN})
"""Opened, and what came of it is not known yet; a run that ends meanwhile is ``cancelling``."""

RUN_WAITS_FOR = UNOPENED | IN_DOUBT
"""A run resumes when none of its step's operations is in one of these."""


@dataclass(frozen=True, slots=True)
class Granted:
    """The approval reached its quorum."""


@dataclass(frozen=True, slots=True)
class Denied:
    """One person said no; ``note`` is the reason that reaches the model."""

    by: str
    note: str


@dataclass(frozen=True, slots=True)
class TimeRanOut:
    """The time to decide, or the time to use, is over; ``stops_run``: its run ends with it."""

    reason: Reason
    stops_run: bool = False


@dataclass(frozen=True, slots=True)
class Superseded:
    """The same run proposed something else for the same intent key, or a person edited it."""

    by: str


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The run that it belongs to has ended or is ending."""

    reason: Reason


@dataclass(frozen=True, slots=True)
class TakenBack:
    """Whoever asked for it, or an operator, does not want it any more; ``reason`` tells which."""

    by: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class RevalidationFailed:
    """A check of the opening failed, before anything was done."""

    refused: Refused


@dataclass(frozen=True, slots=True)
class Opened:
    """Every check of the opening held and the first attempt is recorded."""


@dataclass(frozen=True, slots=True)
class SentAgain:
    """A person said that it was not sent, and approved that it is sent once more."""


@dataclass(frozen=True, slots=True)
class Recovers:
    """What is unknown is handed over again under its key, as soon as every check holds again."""


@dataclass(frozen=True, slots=True)
class Undone:
    """Another operation has undone the part that was done; ``by`` names it."""

    by: str
    detail: JsonObject


@dataclass(frozen=True, slots=True)
class LeftSo:
    """Nothing undoes the part that was done, for ``reason``."""

    reason: Reason
    detail: JsonObject


@dataclass(frozen=True, slots=True)
class EffectsMoved:
    """An effect's status changed; ``statuses`` are all effects in their order.

    ``will_continue`` says that the holder of the lease goes on (a retry or the next effect).
    """

    statuses: Sequence[EffectStatus]
    will_continue: bool = False
    detail: JsonObject = field(default_factory=dict)


Event = (
    Granted
    | Denied
    | TimeRanOut
    | Superseded
    | RunEnded
    | TakenBack
    | RevalidationFailed
    | Opened
    | SentAgain
    | Recovers
    | Undone
    | LeftSo
    | EffectsMoved
)
Decision = Transition[OperationStatus] | NoChange | Refused


def decide(status: OperationStatus, event: Event) -> Decision:
    """Decide what an event does to an operation that stands in ``status``."""
    match event:
        case Granted():
            return _leave(status, {OperationStatus.AWAITING}, OperationStatus.APPROVED, "granted")
        case Denied(by=by, note=note):
            return _leave(
                status,
                {OperationStatus.AWAITING},
                OperationStatus.REJECTED,
                "denied",
                detail={"by": by, "note": note},
            )
        case TimeRanOut(reason=reason, stops_run=stops):
            detail: JsonObject = {STOPS_RUN: True} if stops else {}
            return _leave(status, UNOPENED, OperationStatus.EXPIRED, "time_ran_out", reason, detail)
        case Superseded(by=by):
            return _leave(
                status,
                UNOPENED,
                OperationStatus.SUPERSEDED,
                "superseded",
                Reason.SUPERSEDED,
                {"by": by},
            )
        case RunEnded(reason=reason):
            return _leave(status, UNOPENED, OperationStatus.WITHDRAWN, "run_ended", reason)
        case TakenBack(by=by, reason=reason):
            return _leave(
                status, UNOPENED, OperationStatus.WITHDRAWN, "taken_back", reason, {"by": by}
            )
        case RevalidationFailed(refused=refused):
            return _leave(
                status,
                UNOPENED,
                OperationStatus.STALE,
                "revalidation_failed",
                refused.reason,
                refused.detail,
            )
        case Opened():
            return _leave(status, {OperationStatus.APPROVED}, OperationStatus.EXECUTING, "opened")
        case SentAgain():
            return _leave(
                status, {OperationStatus.UNKNOWN}, OperationStatus.EXECUTING, "sent_again"
            )
        case Recovers():
            return _leave(status, {OperationStatus.UNKNOWN}, OperationStatus.EXECUTING, "recovers")
        case Undone(by=by, detail=detail):
            return _leave(
                status,
                {OperationStatus.PARTIAL},
                OperationStatus.COMPENSATED,
                "undone",
                detail={**detail, "undone_by": by},
            )
        case LeftSo(reason=reason, detail=detail):
            return _leave(
                status,
                {OperationStatus.PARTIAL},
                OperationStatus.LEFT,
                "left_so",
                reason,
                detail,
            )
        case EffectsMoved():
            return _follow_effects(status, event)
        case _:
            assert_never(event)


def _leave(
    status: OperationStatus,
    sources: frozenset[OperationStatus] | set[OperationStatus],
    target: OperationStatus,
    event: str,
    reason: Reason | None = None,
    detail: JsonObject | None = None,
) -> Decision:
    if status in sources:
        return Transition(status, target, event, reason, detail or {})
    if status is target:
        return NoChange()
    return Refused(refusal_for(status))


def refusal_for(status: OperationStatus) -> Reason:
    """Name why an operation that stands in ``status`` cannot be decided or stopped any more."""
    match status:
        case OperationStatus.AWAITING:
            return Reason.APPROVAL_MISSING
        case OperationStatus.APPROVED:
            return Reason.ALREADY_GRANTED
        case OperationStatus.EXECUTING | OperationStatus.UNKNOWN:
            return Reason.ALREADY_SENDING
        case OperationStatus.REJECTED:
            return Reason.ALREADY_DENIED
        case OperationStatus.EXPIRED:
            return Reason.EXPIRED
        case OperationStatus.SUPERSEDED:
            return Reason.SUPERSEDED
        case OperationStatus.WITHDRAWN:
            return Reason.WITHDRAWN
        case (
            OperationStatus.SUCCEEDED
            | OperationStatus.FAILED
            | OperationStatus.PARTIAL
            | OperationStatus.STALE
            | OperationStatus.COMPENSATED
            | OperationStatus.LEFT
        ):
            return Reason.ALREADY_ENDED
        case _:
            assert_never(status)


def _follow_effects(status: OperationStatus, event: EffectsMoved) -> Decision:
    """Derive the operation from its effects: the truth about the whole is that of its parts."""
    if event.will_continue:
        return NoChange()
    statuses = set(event.statuses)
    if EffectStatus.DISPATCHED in statuses:
        return NoChange()
    if EffectStatus.UNKNOWN in statuses:
        target = OperationStatus.UNKNOWN
    elif statuses <= {EffectStatus.APPLIED}:
        target = OperationStatus.SUCCEEDED
    elif EffectStatus.APPLIED in statuses:
        target = OperationStatus.PARTIAL
    else:
        target = OperationStatus.FAILED
    if (status, target) == (OperationStatus.FAILED, OperationStatus.PARTIAL):
        # A late proof of one part. ``partial`` would hold the intent key, which is free again.
        target = OperationStatus.LEFT
    if (status.value, target.value) not in EDGES:
        return NoChange()
    return Transition(status, target, "followed_effects", detail=event.detail)
