"""Raising a limit: how far it is asked to be raised, and what the operation that asks for it says.

A raise is as much again as the policy allows at first, as often as the next call needs it, and
never beyond what the policy caps. Amounts are whole micro-dollars. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from uuid import UUID

from executor.domain.budget import Account
from executor.domain.ids import RunId
from executor.domain.payloads import JsonObject, JsonValue
from executor.domain.policy import Policy


class Scope(StrEnum):
    """Whose limit it is: one run's, which is never reset, or the tenant's of one day."""

    RUN = "run"
    DAY = "day"


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit by its name; a day is one of the tenant's own, in ``timezone``."""

    scope: Scope
    run_id: RunId | None = None
    run: int | None = None
    day: date | None = None
    timezone: str = "UTC"

    @property
    def thing(self) -> str:
        """Name it as rights are asked for it: ``run:12`` or ``day:2026-08-01``."""
        return f"run:{self.run}" if self.day is None else f"day:{self.day.isoformat()}"

    def key(self, limit_microusd: int, policy: Policy) -> str:
        """Name the raise of this limit from where it stands; several runs ask for one of a day.

        Of a day it counts what was added as well: another policy may take the limit back to where
        it was raised from before.
        """
        if self.day is None:
            return f"raise:{self.scope.value}:{self.run_id}:{limit_microusd}"
        added = limit_microusd - policy.budget.day_microusd
        return f"raise:{self.scope.value}:{self.day.isoformat()}:{limit_microusd}:{added}"


@dataclass(frozen=True, slots=True)
class Raising:
    """What an operation asks for: one limit, from where it stood, and why.

    ``needed_microusd`` is what the next call may cost at most; of what is held, ``unknown`` is what
    nobody knows the cost of.
    """

    limit: Limit
    current_microusd: int
    new_microusd: int
    spent_microusd: int
    held_microusd: int
    unknown_microusd: int
    needed_microusd: int

    def as_json(self) -> JsonObject:
        """Spell it as the intent holds it."""
        limit = self.limit
        target: dict[str, JsonValue] = {"limit": limit.scope.value}
        if limit.day is None:
            target |= {"run": limit.run, "run_id": str(limit.run_id)}
        else:
            target |= {"day": limit.day.isoformat(), "timezone": limit.timezone}
        return {
            **target,
            "current_microusd": self.current_microusd,
            "new_microusd": self.new_microusd,
            "spent_microusd": self.spent_microusd,
            "held_microusd": self.held_microusd,
            "unknown_microusd": self.unknown_microusd,
            "needed_microusd": self.needed_microusd,
        }

    @staticmethod
    def from_json(stored: Mapping[str, JsonValue]) -> Raising:
        """Read what an intent holds."""

        def number(name: str) -> int:
            value = stored[name]
            assert isinstance(value, int)
            return value

        if stored["limit"] == Scope.RUN:
            run_id = RunId(UUID(str(stored["run_id"])))
            limit = Limit(Scope.RUN, run_id=run_id, run=number("run"))
        else:
            day = date.fromisoformat(str(stored["day"]))
            limit = Limit(Scope.DAY, day=day, timezone=str(stored["timezone"]))
        return Raising(
            limit,
            number("current_microusd"),
            number("new_microusd"),
            number("spent_microusd"),
            number("held_microusd"),
            number("unknown_microusd"),
            number("needed_microusd"),
        )


def raised_limit(policy: Policy, scope: Scope, account: Account, needed: int) -> int | None:
    """Say how far a limit has to be raised so that the next call fits; ``None``: the cap is lower.

    A raise that does not let the next call through would only be asked for to be asked for again.
    """
    budget = policy.budget
    more = budget.run_microusd if scope is Scope.RUN else budget.day_microusd
    most = _most(policy, scope)
    used = account.spent_microusd + account.held_microusd + needed
    if more <= 0:
        return None
    times = max(1, -(-(used - account.limit_microusd) // more))
    wanted = account.limit_microusd + times * more
    if most is not None:
        wanted = min(wanted, most)
    return wanted if wanted >= used and wanted > account.limit_microusd else None


def is_within_the_cap(policy: Policy, raising: Raising) -> bool:
    """Say whether a limit may still be raised so far: the cap may have been lowered since."""
    most = _most(policy, raising.limit.scope)
    return most is None or raising.new_microusd <= most


def _most(policy: Policy, scope: Scope) -> int | None:
    budget = policy.budget
    return budget.most_run_microusd if scope is Scope.RUN else budget.most_day_microusd
