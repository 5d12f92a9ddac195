"""How fast something outside may be asked: so many at once, and one each interval after that.

All that is remembered is one moment, ``free_at``: up to when what was asked so far fills the
intervals (the generic cell rate algorithm of ITU-T I.371). So any number of processes can share it
in one row. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class Pace:
    """One call each ``every``; ``at_once`` may come together after a rest."""

    every: timedelta
    at_once: int = 1

    @property
    def ahead(self) -> timedelta:
        """How far ``free_at`` may lie in the future while a call may still be made."""
        return self.every * (self.at_once - 1)

    def room(self, free_at: datetime, now: datetime) -> int:
        """Say how many calls may be made now."""
        left = self.ahead - (max(free_at, now) - now)
        return 0 if left < timedelta(0) else left // self.every + 1

    def opens_at(self, free_at: datetime) -> datetime:
        """Say from when on the next call may be made."""
        return free_at - self.ahead

    def spent(self, free_at: datetime, now: datetime, count: int) -> datetime:
        """Return ``free_at`` after so many calls now."""
        return max(free_at, now) + self.every * count

    def hold_for(self, wait: timedelta) -> timedelta:
        """Say how far ahead ``free_at`` has to be put for the next call to come after ``wait``."""
        return wait + self.ahead
