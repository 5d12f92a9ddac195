"""Nudges: when people are reminded that an approval waits, and when others are told of it.

They follow from the approval's terms and from when it was shown, so that they can be told
beforehand. A nudge changes nothing about the approval. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from executor.domain.terms import Terms


class NudgeKind(StrEnum):
    """Whom a nudge is for."""

    REMINDER = "reminder"
    ESCALATION = "escalation"


@dataclass(frozen=True, slots=True)
class Nudge:
    """One nudge, and when it is due."""

    kind: NudgeKind
    due_at: datetime


def schedule(terms: Terms, presented_at: datetime) -> tuple[Nudge, ...]:
    """List the nudges of an approval in the order of their times; of equal ones reminders first."""
    nudges = [
        Nudge(NudgeKind.REMINDER, presented_at + timedelta(seconds=after))
        for after in terms.remind_after
    ]
    if terms.escalate_after is not None:
        due = presented_at + timedelta(seconds=terms.escalate_after)
        nudges.append(Nudge(NudgeKind.ESCALATION, due))
    return tuple(sorted(nudges, key=lambda n: (n.due_at, n.kind is NudgeKind.ESCALATION)))


def due(
    planned: Sequence[Nudge], made: int, now: datetime
) -> tuple[tuple[Nudge, ...], datetime | None]:
    """Say which of those not made yet are due, and when the next one is.

    Of reminders that are due together, as after a stop of everything, only the last one is made.
    """
    ripe = [nudge for nudge in planned[made:] if nudge.due_at <= now]
    later = planned[made + len(ripe) :]
    last: dict[NudgeKind, Nudge] = {nudge.kind: nudge for nudge in ripe}
    return tuple(last.values()), later[0].due_at if later else None
