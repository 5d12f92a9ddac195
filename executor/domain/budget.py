"""Money held before a call, charged to the actual, released only when proved unspent.

``spent + held + asked <= limit`` for the run and for the tenant's day at every admission. What is
not known stays counted. Amounts are whole micro-dollars.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from typing import assert_never
from zoneinfo import ZoneInfo

from executor.domain.payloads import JsonObject
from executor.domain.price import CostBound
from executor.domain.transition import BORN, NoChange, Reason, Refused, Transition

LEAST_OUTPUT_TOKENS = 256
"""A call that may write less is not worth its money: then there is not enough left."""


class ReservationStatus(StrEnum):
    """Where a reservation stands; past its deadline a held one becomes unknown, never voided."""

    HELD = "held"
    SETTLED = "settled"
    VOIDED = "voided"
    UNKNOWN = "unknown"


EDGES: frozenset[tuple[str, str]] = frozenset(
    {
        (BORN, "held"),
        ("held", "settled"),
        ("held", "voided"),
        ("held", "unknown"),
        ("unknown", "settled"),
        ("unknown", "voided"),
    }
)


@dataclass(frozen=True, slots=True)
class Account:
    """What a run, or a tenant's day, may spend, has spent and holds.

    ``unknown_microusd``, of what is held, is for calls that are over: nobody knows their cost.
    """

    limit_microusd: int
    spent_microusd: int
    held_microusd: int
    unknown_microusd: int = 0

    @property
    def left_microusd(self) -> int:
        """What can still be reserved; never below zero, also after an overrun."""
        return max(0, self.limit_microusd - self.spent_microusd - self.held_microusd)

    def has_room_for(self, asked_microusd: int) -> bool:
        """Say whether this much fits; after an overrun nothing does, not even nothing."""
        return self.spent_microusd + self.held_microusd + asked_microusd <= self.limit_microusd


@dataclass(frozen=True, slots=True)
class Admitted:
    """The reservation fits; both accounts as they are with it."""

    run: Account
    day: Account


def reserve(run: Account, day: Account, asked_microusd: int) -> Admitted | Refused:
    """Admit a reservation against the run and the tenant's day, or say which limit refuses it."""
    for scope, account in (("run", run), ("day", day)):
        if not account.has_room_for(asked_microusd):
            return Refused(
                Reason.BUDGET_LIMIT,
                {
                    "limit": scope,
                    "asked_microusd": asked_microusd,
                    "left_microusd": account.left_microusd,
                    "limit_microusd": account.limit_microusd,
                    "spent_microusd": account.spent_microusd,
                    "held_microusd": account.held_microusd,
                    "unknown_microusd": account.unknown_microusd,
                },
            )
    return Admitted(_hold(run, asked_microusd), _hold(day, asked_microusd))


def output_within(run: Account, day: Account, bound: CostBound, wanted: int) -> int:
    """Say how many tokens a call may write for what is left; never too few to be of any use."""
    left = min(run.left_microusd, day.left_microusd)
    return max(min(LEAST_OUTPUT_TOKENS, wanted), bound.most_output_within(left, wanted))


@dataclass(frozen=True, slots=True)
class Settle:
    """The actual cost is known."""

    actual_microusd: int


@dataclass(frozen=True, slots=True)
class Void:
    """It is proved that nothing was spent."""


@dataclass(frozen=True, slots=True)
class LoseSight:
    """The call ended without telling what it cost, or its deadline passed."""


Event = Settle | Void | LoseSight


@dataclass(frozen=True, slots=True)
class Charge:
    """How both accounts change: what leaves ``held``, and what is added to ``spent`` and to
    ``unknown``.
    """

    transition: Transition[ReservationStatus]
    released_microusd: int
    spent_microusd: int
    unknown_microusd: int


def decide(status: ReservationStatus, amount_microusd: int, event: Event) -> Charge | NoChange:
    """Decide what an event does to a reservation of ``amount_microusd``."""
    match event:
        case Settle(actual_microusd=actual):
            target, released, spent = ReservationStatus.SETTLED, amount_microusd, actual
        case Void():
            target, released, spent = ReservationStatus.VOIDED, amount_microusd, 0
        case LoseSight():
            target, released, spent = ReservationStatus.UNKNOWN, 0, 0
        case _:
            assert_never(event)
    if (status.value, target.value) not in EDGES:
        return NoChange()
    detail = {"amount_microusd": amount_microusd, "spent_microusd": spent}
    unknown = ReservationStatus.UNKNOWN
    grown = amount_microusd * ((target is unknown) - (status is unknown))
    return Charge(Transition(status, target, target.value, detail=detail), released, spent, grown)


def budget_day(now: datetime, timezone: str) -> date:
    """Name the tenant's calendar day that a moment of the database's clock belongs to."""
    return now.astimezone(ZoneInfo(timezone)).date()


def renewal(day: date, timezone: str) -> JsonObject:
    """Name a tenant's day, and the instant at which the next one begins there.

    A midnight that summer time skips or repeats is the first moment of its day all the same.
    """
    midnight = datetime.combine(day + timedelta(days=1), time(), ZoneInfo(timezone))
    return {"day": day.isoformat(), "renews_at": midnight.astimezone(UTC).isoformat()}


def _hold(account: Account, amount: int) -> Account:
    return replace(account, held_microusd=account.held_microusd + amount)
