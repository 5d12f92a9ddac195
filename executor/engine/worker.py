"""The worker claims due work and drives it; several may run, on several hosts, beside each other.

It is woken by notifications and, behind them, by a slow sweep. On stop it claims nothing more, lets
what it holds come to a good place, and hands the rest back; what cannot be finished in time is left
to the reconciler, which tells the truth about it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

from executor.domain.errors import (
    CommitUnknown,
    DatabaseUnavailable,
    ExecutorError,
    StaleEpoch,
)
from executor.domain.transition import Reason
from executor.engine.claims import ClaimedOperation, ClaimedRun, claim_operations, claim_runs
from executor.engine.driver import Crew, drive, give_up
from executor.engine.engine import Engine
from executor.engine.executing import execute, openings
from executor.engine.leases import operation_keeper, run_keeper
from executor.engine.waking import wake
from executor.store.wakeups import Kind, Listener

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WorkerTerms:
    """How much one worker does at once, and how long it may take to stop."""

    most_runs: int = 32
    most_operations: int = 64
    most_takeovers: int = 8
    grace_seconds: float = 20.0
    poll_seconds: float = 5.0


class Worker:
    """Claims and drives due work until it is told to stop."""

    def __init__(
        self,
        engine: Engine,
        crew: Crew,
        listener: Listener,
        owner: str,
        terms: WorkerTerms | None = None,
    ) -> None:
        self._engine = engine
        self._crew = crew
        self._listener = listener
        self._owner = owner
        self._terms = terms or WorkerTerms()
        self._runs: set[asyncio.Task[None]] = set()
        self._operations: set[asyncio.Task[None]] = set()
        self._openings = openings(engine, crew.providers)
        self._stop = asyncio.Event()

    def stop(self) -> None:
        """Claim nothing more; ``run`` returns when what is held has come to a good place."""
        self._stop.set()

    async def run(self) -> None:
        """Work until ``stop``; a database that is away is waited for, without a busy loop."""
        try:
            while not self._stop.is_set():
                try:
                    claimed = await self._claim()
                except ExecutorError as error:
                    _log.warning("nothing could be claimed: %s", error)
                    await self._pause(self._terms.poll_seconds)
                    continue
                if not claimed:
                    await self._wait_for_news()
        finally:
            await self._drain()

    async def _claim(self) -> int:
        """Claim as much as there is room for and start driving it; returns how much."""
        await wake(self._engine)
        room = self._terms.most_operations - len(self._operations)
        operations: list[ClaimedOperation] = []
        if room > 0:
            operations = await claim_operations(self._engine, self._owner, room)
        for operation in operations:
            self._start(self._operations, self._execute(operation), "operation")
        room = self._terms.most_runs - len(self._runs)
        runs: list[ClaimedRun] = []
        if room > 0:
            runs = await claim_runs(self._engine, self._owner, room)
        for claimed in runs:
            self._start(self._runs, self._drive(claimed), "run")
        return len(operations) + len(runs)

    def _start(
        self, tasks: set[asyncio.Task[None]], work: Coroutine[Any, Any, None], name: str
    ) -> None:
        task = asyncio.create_task(self._guarded(work, name), name=name)
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    async def _guarded(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Let one piece of work fail alone: its lease ends, and the record says what is left."""
        try:
            await work
        except StaleEpoch as error:
            _log.info("%s: %s", name, error)
        except (DatabaseUnavailable, CommitUnknown) as error:
            _log.warning("%s was left as it is recorded: %s", name, error)
        except Exception:
            _log.exception("%s failed; it is due again when its lease ends", name)

    async def _execute(self, operation: ClaimedOperation) -> None:
        keeper = operation_keeper(self._engine, operation.claim.key, operation.lease)
        await execute(self._engine, self._crew.providers, self._openings, operation.claim, keeper)

    async def _drive(self, claimed: ClaimedRun) -> None:
        keeper = run_keeper(self._engine, claimed.key, claimed.lease)
        if claimed.takeovers >= self._terms.most_takeovers:
            await give_up(self._engine, claimed.key, keeper, Reason.KEEPS_FAILING)
            return
        await drive(self._engine, self._crew, claimed.key, keeper, self._stop)

    async def _wait_for_news(self) -> None:
        """Wait for a notification, the end of a piece of work, a stop, or the slow sweep's time."""
        news = asyncio.create_task(
            self._listener.wait(Kind.WORK, self._terms.poll_seconds), name="news"
        )
        stop = asyncio.create_task(self._stop.wait(), name="stop")
        held = self._runs | self._operations
        try:
            await asyncio.wait({news, stop, *held}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (news, stop):
                task.cancel()
            await asyncio.wait({news, stop})

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._stop.wait()
        except TimeoutError:
            return

    async def _drain(self) -> None:
        held = self._runs | self._operations
        if not held:
            return
        _, left = await asyncio.wait(held, timeout=self._terms.grace_seconds)
        for task in left:
            task.cancel()
        if left:
            _log.warning("%d piece(s) of work did not end in time and were left", len(left))
            await asyncio.wait(left)
