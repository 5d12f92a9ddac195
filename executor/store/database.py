"""A transaction ends in one of three ways, and its caller learns which.

It is committed; or nothing of it was kept (every error but one says so); or its COMMIT was sent
and the answer was lost (``CommitUnknown``). No connection goes back to the pool inside a
transaction, whatever was cancelled and whenever: the pool's own check-in refuses it.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from weakref import WeakSet

import asyncpg
from sqlalchemy import event
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from executor.domain.errors import DatabaseUnavailable
from executor.store.address import asyncpg_dsn
from executor.store.failures import OPENING_ERRORS, domain_error, one_line
from executor.store.transaction import Patience, Transaction, to_its_end

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from sqlalchemy.engine import ExceptionContext
    from sqlalchemy.engine.interfaces import DBAPIConnection
    from sqlalchemy.pool import ConnectionPoolEntry, PoolProxiedConnection

_log = logging.getLogger(__name__)


class Database:
    """One PostgreSQL database and a bounded pool of connections to it.

    Make it with ``Database.connect``. Connections are opened when they are needed, so a database
    that is away shows itself as ``DatabaseUnavailable`` where it is used.
    """

    def __init__(
        self,
        dsn: str,
        *,
        pool_size: int,
        application_name: str,
        patience: Patience,
    ) -> None:
        self._dsn = dsn
        self._pool_size = pool_size
        self._application_name = application_name
        self._patience = patience
        self._slots = asyncio.Semaphore(pool_size)
        self._opened: WeakSet[asyncpg.Connection] = WeakSet()
        self._engine = self._make_engine()

    @classmethod
    def connect(
        cls,
        url: str,
        *,
        pool_size: int = 5,
        application_name: str,
        patience: Patience | None = None,
    ) -> Database:
        """Return the database at ``url`` without opening a connection yet.

        Raises ``UnsupportedAddress`` for a URL that asks for something that asyncpg cannot give.
        """
        return cls(
            asyncpg_dsn(url),
            pool_size=pool_size,
            application_name=application_name,
            patience=patience or Patience(),
        )

    @property
    def connections_in_use(self) -> int:
        """The number of pooled connections that somebody holds now."""
        checked_out: int = self._engine.pool.checkedout()  # type: ignore[attr-defined]
        return checked_out

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncConnection]:
        """Run the block inside BEGIN … COMMIT at READ COMMITTED.

        An error in the block, a cancellation included, rolls back and goes on. Raises
        ``DatabaseUnavailable`` where nothing was committed and the work may be tried again,
        ``DuplicateKey`` where a unique index refused, and ``CommitUnknown`` where COMMIT was sent
        and its answer was lost. A caller cancelled during COMMIT gets its ``CancelledError`` when
        the COMMIT has ended; where no answer came, that error's cause is the ``CommitUnknown``.
        """
        async with self._slot():
            ours = Transaction(self._engine, self._patience, attempts=self._pool_size + 1)
            grace = self._patience.rollback_seconds
            try:
                yield await to_its_end(ours.begin(), grace, ours.hang_up)
                await to_its_end(ours.commit(), grace, ours.hang_up)
            except BaseException as error:
                await to_its_end(ours.give_back(), grace, ours.hang_up)
                typed = domain_error(error)
                if typed is None:
                    raise
                raise typed from error
            await to_its_end(ours.give_back(), grace, ours.hang_up)

    @asynccontextmanager
    async def _slot(self) -> AsyncIterator[None]:
        # Callers wait here and not in the pool, so that a cancelled one leaves the line at once.
        try:
            async with asyncio.timeout(self._patience.pool_seconds):
                await self._slots.acquire()
        except TimeoutError:
            raise DatabaseUnavailable(
                f"none of {self._pool_size} connections became free within "
                f"{self._patience.pool_seconds:g} s"
            ) from None
        try:
            yield
        finally:
            self._slots.release()

    @asynccontextmanager
    async def dedicated_connection(self, purpose: str) -> AsyncIterator[asyncpg.Connection]:
        """Open a connection of its own, outside the pool and without time limits for statements.

        ``purpose`` is added to the name that ``pg_stat_activity`` shows. Raises
        ``DatabaseUnavailable`` when it cannot be opened.
        """
        connection = await self.open_dedicated(purpose)
        try:
            yield connection
        finally:
            connection.terminate()

    async def open_dedicated(self, purpose: str) -> asyncpg.Connection:
        """Open what ``dedicated_connection`` yields; the caller ends it with ``terminate()``."""
        try:
            return await asyncpg.connect(
                dsn=self._dsn,
                timeout=self._patience.connect_seconds,
                server_settings={"application_name": f"{self._application_name} {purpose}"},
            )
        except OPENING_ERRORS as error:
            raise DatabaseUnavailable(f"no connection for {purpose}: {one_line(error)}") from error

    async def dispose(self) -> None:
        """Close all pooled connections within a bounded time; a second call does nothing more."""
        try:
            async with asyncio.timeout(self._patience.rollback_seconds):
                await self._engine.dispose()
        except TimeoutError:
            _log.warning("connections did not close in time and were cut")
        finally:
            for connection in list(self._opened):
                connection.terminate()

    async def _open(self) -> asyncpg.Connection:
        patience = self._patience
        connection = await asyncpg.connect(
            dsn=self._dsn,
            timeout=patience.connect_seconds,
            command_timeout=patience.statement_seconds + patience.answer_margin_seconds,
            server_settings={
                "application_name": self._application_name,
                "timezone": "UTC",
                "statement_timeout": _milliseconds(patience.statement_seconds),
                "lock_timeout": _milliseconds(patience.lock_seconds),
                "idle_in_transaction_session_timeout": _milliseconds(
                    patience.idle_in_transaction_seconds
                ),
                # A statement whose client is gone gives its locks back within this time.
                "client_connection_check_interval": "1000",
            },
        )
        self._opened.add(connection)
        return connection

    def _make_engine(self) -> AsyncEngine:
        engine = create_async_engine(
            "postgresql+asyncpg://",
            async_creator=self._open,
            pool_size=self._pool_size,
            max_overflow=0,
            pool_timeout=self._patience.pool_seconds,
            pool_use_lifo=True,
            # The transactions are ours: see executor.store.transaction.
            isolation_level="AUTOCOMMIT",
        )
        event.listen(engine.sync_engine, "checkout", _refuse_closed)
        event.listen(engine.sync_engine, "checkin", _refuse_open_transaction)
        event.listen(engine.sync_engine, "handle_error", _a_late_answer_is_a_lost_connection)
        return engine


def _milliseconds(seconds: float) -> str:
    return str(round(seconds * 1000))


def _refuse_closed(
    _connection: DBAPIConnection, entry: ConnectionPoolEntry, _proxy: PoolProxiedConnection
) -> None:
    # asyncpg hears at once when the server hangs up, so a restart costs no ping per transaction.
    driver = entry.driver_connection
    if driver is None or driver.is_closed():
        raise DisconnectionError


def _refuse_open_transaction(
    connection: DBAPIConnection | None, entry: ConnectionPoolEntry
) -> None:
    driver = None if connection is None else entry.driver_connection
    if driver is not None and not driver.is_closed() and driver.is_in_transaction():
        _log.error("a connection came back to the pool inside a transaction and was cut")
        driver.terminate()
        entry.invalidate()


def _a_late_answer_is_a_lost_connection(context: ExceptionContext) -> None:
    # Only asyncpg's own time limit, which lies beyond the server's, arrives here as TimeoutError.
    if isinstance(context.original_exception, TimeoutError):
        context.is_disconnect = True
        raise DatabaseUnavailable("the database did not answer") from context.original_exception
