"""Clocks and randomness of this host."""

from __future__ import annotations

import secrets
import time
from datetime import UTC, datetime
from uuid import UUID

from executor.domain.ids import uuid7

_BOOTTIME = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class SystemClock:
    """The real clocks. CLOCK_BOOTTIME goes on while the machine is suspended (Linux
    clock_gettime(2)).
    """

    def boottime(self) -> float:
        """Seconds since boot."""
        return time.clock_gettime(_BOOTTIME)

    def wall(self) -> datetime:
        """The wall clock in UTC."""
        return datetime.now(UTC)


def mint_id() -> UUID:
    """Make a new UUID of version 7."""
    return uuid7(time.time_ns() // 1_000_000, secrets.randbits(74))
