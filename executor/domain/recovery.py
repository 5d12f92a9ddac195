"""What to do about an effect whose attempts did not tell: decided from records, capability and
time.

Nothing is guessed. A machine repeats a request only with the same key and bytes, inside the window
that counts from the first attempt by the database's clock, minus a margin; or with the same stamp,
after a reading has found that the ticket has not changed. Absence at a provider is never proof. The
capability is the one that was recorded with the attempts; what is declared now can only make
recovery stricter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import assert_never

from executor.domain.effect import Attempt, AttemptStatus, Capability, Outcome, OutcomeKind, Terms
from executor.domain.finding import Finding
from executor.domain.payloads import JsonObject, JsonValue

MOST_LOOKUPS = 6
"""Searches for one attempt; the waits between them double, so that the last is hours after the
first.
"""

MOST_SENDINGS = 3
"""Attempts at one effect that a machine may make when none of them told.

What a provider refused before the first doubt does not count; what it refused after it does.
"""

REPEAT_WAITS = (timedelta(seconds=5), timedelta(seconds=60))
"""Waits before the first and the second repeat: the second one outlives a short outage."""

READING_LAG = timedelta(seconds=60)
"""The waits between readings of an outside desk count in this; the first comes at once."""

FEWEST_READINGS = 2
"""Readings before a person is asked about a conditional change; the last when nothing can still
arrive.
"""

MOST_COLLISIONS = 2
"""Attempts that a desk may answer with a conflict although the ticket has not changed."""

CONFLICT = 409

SHORTEST_LAG = timedelta(seconds=10)
"""Searches keep at least this distance, also where a provider is said to have no lag."""


@dataclass(frozen=True, slots=True)
class Declared:
    """What the provider allows, and ``margin``: the longest time that one attempt can take.

    The margin is an attempt's deadline, plus its longest request, plus the clock allowance.
    """

    capability: Capability
    terms: Terms
    margin: timedelta


class Why(StrEnum):
    """Why no machine can go on; spelled as people read it."""

    NOBODY_CAN_LOOK = "the provider tells nothing afterwards"
    WINDOW_OVER = "the provider may have forgotten the key"
    STOPPED = "the provider has seen this key with other bytes"
    REFUSED = "the provider refused the repeat"
    NOT_PERMITTED = "nothing may be sent any more"
    SENDINGS_USED_UP = f"{MOST_SENDINGS} attempts did not tell"
    LOOKUPS_USED_UP = f"{MOST_LOOKUPS} searches did not find it, which is no proof"
    COLLIDES = "the desk refused it twice although the ticket has not changed"
    DECLARED_OTHERWISE = "the provider's settings have changed since"


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing can be said before this moment."""

    until: datetime


@dataclass(frozen=True, slots=True)
class SendAgain:
    """The same key with the same bytes: the provider drops the repeat if the first one arrived."""


@dataclass(frozen=True, slots=True)
class LookUp:
    """Search the provider for our reference."""


@dataclass(frozen=True, slots=True)
class AskPerson:
    """No machine can find out."""

    why: Why


@dataclass(frozen=True, slots=True)
class Settled:
    """Every attempt is known, or one of them was applied."""


Recovery = Wait | SendAgain | LookUp | AskPerson | Settled


def margin_of(attempt: Attempt) -> timedelta:
    """Return the longest time that this attempt could take, as it was recorded."""
    return attempt.conclude_at - attempt.opened_at


def as_recorded(attempt: Attempt) -> Declared:
    """Return what was declared when this attempt was made."""
    return Declared(attempt.capability, attempt.terms, margin_of(attempt))


def in_doubt(attempts: Sequence[Attempt]) -> list[Attempt]:
    """Return the attempts that may have been accepted or may still be, by their numbers."""
    doubtful = (AttemptStatus.DISPATCHED, AttemptStatus.UNKNOWN)
    return sorted((a for a in attempts if a.status in doubtful), key=lambda a: a.number)


def plan(attempts: Sequence[Attempt], outcome: Outcome, *, now: datetime) -> Recovery:
    """Decide what comes after a reported outcome, as far as the records tell.

    ``Wait`` says when somebody has to ``recover``; whether sending is permitted is asked then.
    """
    doubtful = in_doubt(attempts)
    if not doubtful:
        return Settled()
    newest = doubtful[-1]
    not_before = now
    if newest.capability is Capability.KEYED:
        if outcome.kind is OutcomeKind.NOT_APPLIED and not outcome.retryable:
            return AskPerson(Why.REFUSED)
        wait = REPEAT_WAITS[min(sendings(attempts), len(REPEAT_WAITS)) - 1]
        not_before = now + max(wait, outcome.retry_after or timedelta(0))
    elif newest.capability is Capability.CONDITIONAL:
        not_before = now + (outcome.retry_after or timedelta(0))
    return recover(attempts, as_recorded(newest), may_send=True, now=now, not_before=not_before)


def recover(
    attempts: Sequence[Attempt],
    declared: Declared,
    *,
    may_send: bool,
    now: datetime,
    not_before: datetime,
) -> Recovery:
    """Decide the next step for one effect from all of its attempts.

    ``declared`` is what holds now, ``may_send`` whether anything may be sent at all (never after a
    cancel or a revocation), ``not_before`` the moment that was planned for the next step.
    """
    doubtful = in_doubt(attempts)
    if not doubtful or any(a.status is AttemptStatus.APPLIED for a in attempts):
        return Settled()
    under_way = [a for a in doubtful if a.status is AttemptStatus.DISPATCHED]
    if under_way:
        return Wait(max(not_before, *(a.conclude_at for a in under_way)))
    capability = doubtful[-1].capability
    if any(a.capability is not capability for a in doubtful):
        # A repeat would have to be harmless for each of them, and a search find each of them.
        return AskPerson(Why.NOBODY_CAN_LOOK)
    if capability not in (declared.capability, Capability.OPAQUE):
        return AskPerson(Why.DECLARED_OTHERWISE)
    match capability:
        case Capability.KEYED:
            return _keyed(attempts, doubtful, declared, may_send, now, not_before)
        case Capability.CONDITIONAL:
            return _conditional(attempts, doubtful, may_send, now, not_before)
        case Capability.LOOKUP:
            return _look_up(doubtful, declared, now, not_before)
        case Capability.OPAQUE:
            return AskPerson(Why.NOBODY_CAN_LOOK)
        case Capability.TRANSACTIONAL:
            raise AssertionError("a transactional effect commits with its record")
        case _:
            assert_never(capability)


def sendings(attempts: Sequence[Attempt]) -> int:
    """Count the attempts from the first one in doubt on, each of which a machine has made."""
    doubtful = in_doubt(attempts)
    return sum(1 for a in attempts if doubtful and a.number >= doubtful[0].number)


def _keyed(
    attempts: Sequence[Attempt],
    doubtful: Sequence[Attempt],
    declared: Declared,
    may_send: bool,
    now: datetime,
    not_before: datetime,
) -> Recovery:
    if any(a.evidence.get("stop") is True for a in attempts):
        return AskPerson(Why.STOPPED)
    if not may_send:
        return AskPerson(Why.NOT_PERMITTED)
    if sendings(attempts) >= MOST_SENDINGS:
        return AskPerson(Why.SENDINGS_USED_UP)
    closes = _window_closes(attempts, doubtful, declared)
    if closes is None or max(now, not_before) >= closes:
        return AskPerson(Why.WINDOW_OVER)
    return SendAgain() if now >= not_before else Wait(not_before)


def _window_closes(
    attempts: Sequence[Attempt], doubtful: Sequence[Attempt], declared: Declared
) -> datetime | None:
    """Say until when a repeat may be opened: whatever of it arrives, arrives inside the window."""
    windows = [terms.key_window for terms in (declared.terms, *(a.terms for a in doubtful))]
    known = [window for window in windows if window is not None]
    if len(known) != len(windows):
        return None
    margin = max(declared.margin, *(margin_of(a) for a in doubtful))
    return min(a.opened_at for a in attempts) + min(known) - margin


def _look_up(
    doubtful: Sequence[Attempt], declared: Declared, now: datetime, not_before: datetime
) -> Recovery:
    newest = doubtful[-1]
    lags = [terms.lookup_lag for terms in (declared.terms, newest.terms)]
    known = [lag for lag in lags if lag is not None]
    if len(known) != len(lags):
        return AskPerson(Why.NOBODY_CAN_LOOK)
    if newest.lookups >= MOST_LOOKUPS:
        return AskPerson(Why.LOOKUPS_USED_UP)
    lag = max(known)
    # Until nothing of any attempt can still arrive, a search says less than it costs.
    over = max(a.conclude_at for a in doubtful)
    due = max(
        not_before,
        over,
        newest.opened_at + lag,
        over + max(lag, SHORTEST_LAG) * (2**newest.lookups - 1),
    )
    return LookUp() if now >= due else Wait(due)


def reading_told(finding: Finding, attempts: Sequence[Attempt]) -> dict[str, str | int]:
    """Spell a reading as it stands in the evidence: what it found, and after which attempt."""
    return {
        "finding": finding.value,
        "finding_after": max((a.number for a in attempts), default=0),
    }


def without_reading(evidence: JsonObject) -> dict[str, JsonValue]:
    """Forget what the last reading found: the ticket has been seen to be otherwise since."""
    return {name: value for name, value in evidence.items() if name != "finding_after"}


def wait_after_reading(attempts: Sequence[Attempt]) -> timedelta:
    """Return how long to wait with a repeat after a reading that found the ticket unchanged."""
    return REPEAT_WAITS[min(max(sendings(attempts), 1), len(REPEAT_WAITS)) - 1]


def _conditional(
    attempts: Sequence[Attempt],
    doubtful: Sequence[Attempt],
    may_send: bool,
    now: datetime,
    not_before: datetime,
) -> Recovery:
    """Read; and where nothing has moved, send the same request with the same stamp once more.

    The desk refuses it if an earlier one has arrived, so that a repeat never comes too early.
    """
    newest = doubtful[-1]
    if not _found_unchanged(attempts, newest):
        return _read(newest, Why.LOOKUPS_USED_UP, now, not_before)
    collisions = sum(1 for a in doubtful if a.evidence.get("status") == CONFLICT)
    if not may_send:
        return _read(newest, Why.NOT_PERMITTED, now, not_before)
    if collisions >= MOST_COLLISIONS:
        last_word = Why.COLLIDES
    elif sendings(attempts) >= MOST_SENDINGS:
        last_word = Why.SENDINGS_USED_UP
    else:
        return SendAgain() if now >= not_before else Wait(not_before)
    if newest.lookups >= FEWEST_READINGS:
        return AskPerson(last_word)
    # What hung may have arrived since: a person is asked only when nothing can any more.
    over = max(a.conclude_at for a in doubtful)
    return _read(newest, last_word, now, max(not_before, over))


def _found_unchanged(attempts: Sequence[Attempt], newest: Attempt) -> bool:
    """Say whether the last reading came after every attempt and found nothing moved."""
    told = reading_told(Finding.UNCHANGED, attempts)
    return {name: newest.evidence.get(name) for name in told} == told


def _read(newest: Attempt, used_up: Why, now: datetime, not_before: datetime) -> Recovery:
    if newest.lookups >= MOST_LOOKUPS:
        return AskPerson(used_up)
    due = max(not_before, newest.opened_at + READING_LAG * (2**newest.lookups - 1))
    return LookUp() if now >= due else Wait(due)
