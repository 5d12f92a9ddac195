"""The run: one durable execution of an agent toward one goal, across crashes and resumes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from executor.domain.payloads import JsonObject
from executor.domain.transition import BORN, NoChange, Reason, Refused, Transition


class RunStatus(StrEnum):
    """Where a run stands. ``waiting`` and ``paused`` hold no lease and cost no worker anything."""

    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    PAUSED = "paused"
    CANCELLING = "cancelling"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


ENDED = frozenset({RunStatus.SUCCEEDED, RunStatus.FAILED, RunStatus.CANCELLED})

_BY_A_PERSON = frozenset({Reason.CANCELLED, Reason.REJECTED_AND_STOPPED})

_UNENDED = ("queued", "running", "waiting", "paused")

EDGES: frozenset[tuple[str, str]] = frozenset(
    {
        (BORN, "queued"),
        ("queued", "running"),
        ("running", "waiting"),
        ("waiting", "running"),
        ("running", "paused"),
        ("paused", "running"),
        ("running", "succeeded"),
        ("cancelling", "cancelled"),
        ("cancelling", "failed"),
    }
    | {(source, "cancelling") for source in _UNENDED}
    | {(source, "cancelled") for source in _UNENDED}
    | {(source, "failed") for source in _UNENDED}
)


@dataclass(frozen=True, slots=True)
class Claimed:
    """A worker took the lease."""


@dataclass(frozen=True, slots=True)
class MustWait:
    """Nothing can be done before decisions, outcomes or a retry time."""

    reason: Reason | None = None


@dataclass(frozen=True, slots=True)
class MustPause:
    """A limit holds it up; ``detail`` says which, and what the next call needs."""

    reason: Reason
    detail: JsonObject


@dataclass(frozen=True, slots=True)
class Completed:
    """The model said its last word and nothing waits."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """Somebody cancelled, or a limit ended it; ``in_doubt``: something opened is not yet known."""

    reason: Reason
    in_doubt: bool


@dataclass(frozen=True, slots=True)
class DoubtSettled:
    """Everything that was open when the run was stopped is known now; ``reason`` is why."""

    reason: Reason


Event = Claimed | MustWait | MustPause | Completed | Stopped | DoubtSettled
Decision = Transition[RunStatus] | NoChange | Refused


def decide(status: RunStatus, event: Event) -> Decision:
    """Decide what an event does to a run that stands in ``status``."""
    if status in ENDED:
        return Refused(Reason.ALREADY_ENDED)
    match event:
        case Claimed():
            if status is RunStatus.RUNNING:
                return NoChange()
            return _take(status, RunStatus.RUNNING, "claimed")
        case MustWait(reason=reason):
            return _take(status, RunStatus.WAITING, "waits", reason)
        case MustPause(reason=reason, detail=detail):
            return _take(status, RunStatus.PAUSED, "pauses", reason, detail)
        case Completed():
            return _take(status, RunStatus.SUCCEEDED, "completed", Reason.COMPLETED)
        case Stopped(reason=reason, in_doubt=in_doubt):
            if status is RunStatus.CANCELLING:
                return NoChange(Reason.CANCELLED)
            target = RunStatus.CANCELLING if in_doubt else _end_for(reason)
            return _take(status, target, "stopped", reason)
        case DoubtSettled(reason=reason):
            if status is not RunStatus.CANCELLING:
                return NoChange()
            return _take(status, _end_for(reason), "doubt_settled", reason)
        case _:
            assert_never(event)


def _end_for(reason: Reason) -> RunStatus:
    return RunStatus.CANCELLED if reason in _BY_A_PERSON else RunStatus.FAILED


def _take(
    status: RunStatus,
    target: RunStatus,
    event: str,
    reason: Reason | None = None,
    detail: JsonObject | None = None,
) -> Decision:
    if (status.value, target.value) in EDGES:
        return Transition(status, target, event, reason, detail or {})
    return Refused(Reason.RUN_HELD)
