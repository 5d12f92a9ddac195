"""BEGIN, COMMIT and ROLLBACK are sent as statements of their own, and their answers are read.

SQLAlchemy takes the connections for autocommitting and sends none of the three. So BEGIN is also
the test whether a pooled connection lives, without a round trip for it; the answer to COMMIT
tells a commit from the silent rollback of a transaction in which a statement had failed; and none
of the three is ever cancelled half-way: a cancelled caller leaves when it has ended, or hangs up
after a bounded time. (A cancelled COMMIT is worse than a lost one: while it waits for a standby,
PostgreSQL answers a cancel with success although only one copy exists; PostgreSQL 18, section
26.2.8.)
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import asyncpg

from executor.domain.errors import CommitUnknown, DatabaseUnavailable
from executor.store.failures import LOST_CONNECTION, OPENING_ERRORS, one_line, refused_by_server

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

_T = TypeVar("_T")


@dataclass(frozen=True)
class Patience:
    """How long to wait for the database before it counts as unavailable, in seconds.

    ``statement``, ``lock`` and ``idle_in_transaction`` are enforced by the server.
    ``answer_margin_seconds`` is what an answer may take beyond the server's limit before the
    connection counts as lost. ``rollback_seconds`` bounds every cleaning up, a cancelled caller's
    wait included.
    """

    connect_seconds: float = 5.0
    pool_seconds: float = 10.0
    lock_seconds: float = 5.0
    statement_seconds: float = 15.0
    idle_in_transaction_seconds: float = 15.0
    answer_margin_seconds: float = 5.0
    rollback_seconds: float = 2.0


class Transaction:
    """One BEGIN … COMMIT on one pooled connection; ``give_back`` ends it in every case."""

    def __init__(self, engine: AsyncEngine, patience: Patience, *, attempts: int) -> None:
        self._engine = engine
        self._patience = patience
        self._attempts = attempts
        self._connection: AsyncConnection | None = None
        self._driver: asyncpg.Connection | None = None

    async def begin(self) -> AsyncConnection:
        """Take a connection that lives and open the transaction.

        Pooled connections that turn out to be dead are thrown away, at most ``attempts`` of them.
        Raises ``DatabaseUnavailable``.
        """
        problem = "no attempt was made"
        for _ in range(self._attempts):
            connection = await self._take()
            try:
                await self._driver_now().execute(
                    "BEGIN ISOLATION LEVEL READ COMMITTED", timeout=self._patience.connect_seconds
                )
            except LOST_CONNECTION as error:
                problem = one_line(error)
                self.hang_up()
                await self.give_back()
            else:
                return connection
        raise DatabaseUnavailable(f"every connection was dead: {problem}")

    async def commit(self) -> None:
        """Send COMMIT and read its answer.

        Raises ``CommitUnknown`` where no answer came, ``DatabaseUnavailable`` where COMMIT was
        not sent or answered with ROLLBACK, and the driver's error where the server refused.
        """
        driver = self._driver_now()
        if driver.is_closed():
            raise DatabaseUnavailable("the connection was lost before COMMIT")
        limit = self._patience.statement_seconds + self._patience.answer_margin_seconds
        try:
            answer = await driver.execute("COMMIT", timeout=limit)
        except LOST_CONNECTION as error:
            if refused_by_server(error):
                raise
            self.hang_up()
            raise CommitUnknown(
                f"COMMIT was sent, its answer was lost: {one_line(error)}"
            ) from error
        if answer != "COMMIT":
            raise DatabaseUnavailable(
                "a statement had failed and the block went on, so COMMIT was answered with "
                f"{answer}: nothing was committed"
            )

    async def give_back(self) -> None:
        """Roll back what is open and return the connection, or cut it where that fails."""
        connection, driver = self._connection, self._driver
        if connection is None:
            return
        self._connection = self._driver = None
        try:
            if driver is not None and not driver.is_closed() and driver.is_in_transaction():
                await _roll_back(driver, self._patience.rollback_seconds)
        finally:
            if not connection.invalidated and (driver is None or driver.is_closed()):
                await connection.invalidate()
            await connection.close()

    def hang_up(self) -> None:
        """Cut the connection without waiting; the server rolls back what was open."""
        if self._driver is not None:
            self._driver.terminate()

    async def _take(self) -> AsyncConnection:
        try:
            self._connection = await self._engine.connect()
            pooled = await self._connection.get_raw_connection()
        except OPENING_ERRORS as error:
            raise DatabaseUnavailable(f"no connection: {one_line(error)}") from error
        self._driver = pooled.driver_connection
        return self._connection

    def _driver_now(self) -> asyncpg.Connection:
        assert self._driver is not None, "begin() comes first"
        return self._driver


async def _roll_back(driver: asyncpg.Connection, limit_seconds: float) -> None:
    try:
        await driver.execute("ROLLBACK", timeout=limit_seconds)
    except LOST_CONNECTION:
        driver.terminate()
    except BaseException:
        driver.terminate()
        raise


async def to_its_end(
    work: Coroutine[Any, Any, _T], grace_seconds: float, hang_up: Callable[[], None]
) -> _T:
    """Await ``work``, which a cancellation of the caller does not reach.

    A cancelled caller waits until ``work`` has ended, at most ``grace_seconds``; then ``hang_up``
    is called, which shall make it fail. Then the cancellation goes on, with the error of ``work``
    as cause.
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError as cancelled:
        await _wind_up(task, grace_seconds, hang_up)
        if task.cancelled() or (cause := task.exception()) is None:
            raise
        raise cancelled from cause


async def _wind_up(
    task: asyncio.Future[_T], grace_seconds: float, hang_up: Callable[[], None]
) -> None:
    for end_it in (hang_up, task.cancel, None):
        loop = asyncio.get_running_loop()
        deadline = loop.time() + grace_seconds
        while not task.done() and loop.time() < deadline:
            # Whoever cancels again gets the same answer: the first cancellation goes on from here.
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait({task}, timeout=deadline - loop.time())
        if task.done() or end_it is None:
            return
        end_it()
