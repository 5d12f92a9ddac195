"""What every use case works with: the database, the clocks, the failpoints and the durations."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from uuid import UUID

from executor.domain.errors import ExecutorError
from executor.domain.lease import LeaseTerms
from executor.domain.secret_text import LOOKS_ALONE, Secrets
from executor.engine.failpoint import Commit, Failpoints, Inert, committing
from executor.engine.ports import HostClock
from executor.store.connection import Connection
from executor.store.database import Database
from executor.store.wakeups import Kind, notify

_log = logging.getLogger(__name__)


DEFAULT_LEASE = LeaseTerms(ttl_seconds=30.0, margin_seconds=5.0, heartbeat_seconds=8.0)


@dataclass(frozen=True, slots=True)
class Durations:
    """How long things may take, in seconds; ``__post_init__`` refuses what cannot work.

    The first byte of an attempt leaves within ``first_byte_seconds`` of its record. Nothing is
    concluded about it before that, plus the provider's longest request, plus the clock allowance.
    """

    lease: LeaseTerms = DEFAULT_LEASE
    first_byte_seconds: float = 10.0
    clock_allowance_seconds: float = 5.0
    model_call_seconds: float = 120.0
    retry_seconds: float = 5.0
    identity_retry_seconds: float = 1.0
    sweep_seconds: float = 4.0
    outbox_lease_seconds: float = 30.0
    most_attempts: int = 4

    def __post_init__(self) -> None:
        """Refuse durations under which healthy work would be fenced."""
        if self.first_byte_seconds >= self.lease.ttl_seconds:
            raise ValueError("an attempt's first byte must be due before its lease can end")
        if min(self.first_byte_seconds, self.clock_allowance_seconds) <= 0:
            raise ValueError("durations are positive")


@dataclass(frozen=True, slots=True)
class Engine:
    """The use cases' common ground; one for each process, made in its composition root.

    ``mint`` makes new ids (UUID version 7). ``bell`` rings other processes, coalesced. ``secrets``
    are hidden in what a model or a tool says, before it is recorded.
    """

    database: Database
    clock: HostClock
    mint: Callable[[], UUID]
    durations: Durations = field(default_factory=Durations)
    failpoints: Failpoints = field(default_factory=Inert)
    bell: Bell | None = None
    secrets: Secrets = LOOKS_ALONE

    def committing(self, commit: Commit) -> AbstractAsyncContextManager[Connection]:
        """Open the transaction of one commit of the job, with failpoints at both its sides."""
        return committing(self.database, self.failpoints, commit)

    def ring(self, kind: Kind) -> None:
        """Say that there is something new; never fails and never waits."""
        if self.bell is not None:
            self.bell.ring(kind)


class Bell:
    """Sends NOTIFY outside the hot commits: what is rung while one is under way is sent once."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._rung: set[Kind] = set()
        self._something = asyncio.Event()

    def ring(self, kind: Kind) -> None:
        """Remember that other processes should look; the sweep is the net behind it."""
        self._rung.add(kind)
        self._something.set()

    async def run(self) -> None:
        """Send what was rung, until cancelled."""
        while True:
            await self._something.wait()
            self._something.clear()
            rung, self._rung = self._rung, set()
            for kind in sorted(rung):
                try:
                    await notify(self._database, kind)
                except ExecutorError as error:
                    # A wake-up only saves waiting: the sweep of the others finds the work.
                    _log.info("a wake-up was not sent: %s", error)
