"""What to do about an effect whose attempts did not tell: decided from records, capability and
time.

Nothing is guessed. A machine repeats a request only with the same key and bytes, inside the window
that counts from the first attempt by the database's clock, minus a margin; absence at a provider is
never proof. The capability is the one that was recorded with the attempt: a later redeclaration can
only make recovery stricter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import assert_never

from executor.domain.effect import Attempt, AttemptStatus, Capability

MOST_LOOKUPS = 6
"""Searches for one attempt; the waits between them double, so that the last is hours after the
first.
"""

MOST_SENDINGS = 3
"""Attempts at one effect that a machine may make when none of them told."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What the provider was declared to allow when the attempt was made, in seconds.

    ``key_window`` is for ``keyed``, ``lookup_lag`` for ``lookup``. ``margin`` is at least an
    attempt's deadline, plus its longest request, plus the clock allowance.
    """

    key_window: timedelta | None = None
    lookup_lag: timedelta | None = None
    margin: timedelta = timedelta(0)


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


@dataclass(frozen=True, slots=True)
class Settled:
    """Every attempt is known."""


Recovery = Wait | SendAgain | LookUp | AskPerson | Settled


def recover(
    attempts: Sequence[Attempt],
    terms: Terms,
    *,
    lookups: int,
    may_send: bool,
    stopped: bool,
    now: datetime,
) -> Recovery:
    """Decide the next step for one effect.

    ``lookups`` counts searches already made for the newest attempt, ``may_send`` says whether
    anything may be sent at all (never after a cancel or a revocation), ``stopped`` that the
    provider has seen this key with other bytes.
    """
    open_or_unknown = [
        a for a in attempts if a.status in (AttemptStatus.DISPATCHED, AttemptStatus.UNKNOWN)
    ]
    if not open_or_unknown or any(a.status is AttemptStatus.APPLIED for a in attempts):
        return Settled()
    # Until nothing of any attempt can still arrive, even absence says nothing.
    latest = max(a.conclude_at for a in open_or_unknown)
    if now < latest:
        return Wait(latest)
    newest = max(open_or_unknown, key=lambda a: a.number)
    match newest.capability:
        case Capability.KEYED:
            return _keyed(attempts, terms, may_send=may_send and not stopped, now=now)
        case Capability.LOOKUP | Capability.CONDITIONAL:
            return _look_up(newest, terms, lookups, now)
        case Capability.OPAQUE:
            return AskPerson()
        case Capability.TRANSACTIONAL:
            raise AssertionError("a transactional effect commits with its record")
        case _:
            assert_never(newest.capability)


def _keyed(attempts: Sequence[Attempt], terms: Terms, *, may_send: bool, now: datetime) -> Recovery:
    if terms.key_window is None or not may_send or len(attempts) >= MOST_SENDINGS:
        return AskPerson()
    first = min(a.opened_at for a in attempts)
    return SendAgain() if now < first + terms.key_window - terms.margin else AskPerson()


def _look_up(newest: Attempt, terms: Terms, lookups: int, now: datetime) -> Recovery:
    if terms.lookup_lag is None or lookups >= MOST_LOOKUPS:
        return AskPerson()
    due = newest.conclude_at + terms.lookup_lag * (2**lookups - 1)
    first = max(newest.conclude_at, newest.opened_at + terms.lookup_lag)
    due = max(due, first)
    return LookUp() if now >= due else Wait(due)
