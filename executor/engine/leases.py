"""A held lease: renewed only by the task that drives the work, trusted only inside its trust
window.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from datetime import datetime, timedelta
from typing import Any, TypeVar

from executor.domain.errors import CommitUnknown, DatabaseUnavailable, StaleEpoch
from executor.domain.ids import RunId, TenantId
from executor.domain.lease import Lease, LeaseTerms, trust_from
from executor.engine.engine import Engine
from executor.store import clock, operation_leases, runs
from executor.store.connection import Connection
from executor.store.operations import OperationKey

_log = logging.getLogger(__name__)

T = TypeVar("T")
LAST_COMMIT_SECONDS = 0.5
"""Work whose own last commit gave the lease up gets as long to return from it."""

Renew = Callable[[], Awaitable[bool]]


class Keeper:
    """Renews one lease while the work that it was claimed for goes on.

    ``renew`` prolongs it in the database and says whether it still was ours.
    """

    def __init__(self, engine: Engine, lease: Lease, renew: Renew) -> None:
        self._engine = engine
        self._terms: LeaseTerms = engine.durations.lease
        self._lease = lease
        self._renew = renew

    @property
    def epoch(self) -> int:
        """The lease's fencing token."""
        return self._lease.epoch

    @property
    def owner(self) -> str:
        """Who holds the lease."""
        return self._lease.owner

    def trusted(self) -> bool:
        """Say whether something new may still be started."""
        return self._lease.trusted(self._engine.clock.boottime())

    async def while_kept(self, work: Coroutine[Any, Any, T], *, abandon: bool) -> T:
        """Do ``work`` and renew the lease meanwhile.

        When the lease is lost, ``abandon`` cancels the work and raises ``StaleEpoch``; otherwise
        the work goes on without a lease, for what it reports is a fact all the same.
        """
        task = asyncio.create_task(work)
        held = True
        try:
            while True:
                beat = self._terms.heartbeat_seconds if held else None
                done, _ = await asyncio.wait({task}, timeout=beat)
                if done:
                    return task.result()
                held = await self._beat()
                if not held and abandon:
                    done, _ = await asyncio.wait({task}, timeout=LAST_COMMIT_SECONDS)
                    if done:
                        return task.result()
                    raise StaleEpoch(self._lease.epoch, self._lease.epoch + 1)
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait({task})

    async def _beat(self) -> bool:
        asked = self._engine.clock.boottime()
        try:
            if not await self._renew():
                return False
        except (DatabaseUnavailable, CommitUnknown) as error:
            # The trust window ends by itself if this goes on.
            _log.warning("a lease was not renewed: %s", error)
            return True
        self._lease = Lease(self._lease.owner, self._lease.epoch, trust_from(asked, self._terms))
        return True


def run_keeper(engine: Engine, key: tuple[TenantId, RunId], lease: Lease) -> Keeper:
    """Keep the lease of a run."""

    async def renew(conn: Connection) -> bool:
        until = await _until(conn, engine)
        return await runs.renew(conn, key, owner=lease.owner, epoch=lease.epoch, until=until)

    return Keeper(engine, lease, lambda: _in_transaction(engine, renew))


def operation_keeper(engine: Engine, key: OperationKey, lease: Lease) -> Keeper:
    """Keep the lease of an operation."""

    async def renew(conn: Connection) -> bool:
        until = await _until(conn, engine)
        return await operation_leases.renew(
            conn, key, owner=lease.owner, epoch=lease.epoch, until=until
        )

    return Keeper(engine, lease, lambda: _in_transaction(engine, renew))


async def _until(conn: Connection, engine: Engine) -> datetime:
    return await clock.now(conn) + timedelta(seconds=engine.durations.lease.ttl_seconds)


async def _in_transaction(engine: Engine, renew: Callable[[Connection], Awaitable[bool]]) -> bool:
    async with engine.database.transaction() as conn:
        return await renew(conn)
