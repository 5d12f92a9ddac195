"""Database errors become domain errors here, by SQLSTATE and constraint name, and nowhere else.

Message texts are never read: they are translated by the server.
"""

from __future__ import annotations

import asyncpg
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from executor.domain.errors import (
    DatabaseUnavailable,
    DuplicateKey,
    ExecutorError,
    ForbiddenByDatabase,
)

# What the driver raises when a connection is lost, late or cannot be had. InternalClientError is
# what asyncpg 0.32 answers between the server's farewell and the end of the socket.
LOST_CONNECTION = (
    OSError,
    TimeoutError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
)
OPENING_ERRORS = (*LOST_CONNECTION, DBAPIError, PoolTimeout)

# SQLSTATEs after which nothing was committed and the same work may be tried again (PostgreSQL 18,
# appendix A): serialization failure, deadlock, lock timeout, statement timeout, the two limits on
# idle and on whole transactions, out of connections, read-only (a standby after a failover).
_TRY_AGAIN = frozenset({"40001", "40P01", "55P03", "57014", "25P03", "25P04", "53300", "25006"})
_LOST_CLASSES = ("08", "57P")
_RAW = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)
_AT_MOST_ONE = frozenset({"23505", "23P01"})
_INTEGRITY_CLASS = "23"


def domain_error(error: BaseException) -> ExecutorError | None:
    """Return the domain error that ``error`` stands for, or None where it shall go on as it is.

    For errors before COMMIT was sent, and for the server's own refusal of a COMMIT.
    """
    driver = _driver_error(error)
    if driver is None:
        return None
    if isinstance(driver, asyncpg.InternalClientError):
        return DatabaseUnavailable(one_line(driver))
    state: str | None = getattr(driver, "sqlstate", None)
    constraint = str(getattr(driver, "constraint_name", None) or "an unnamed constraint")
    if state in _AT_MOST_ONE:
        return DuplicateKey(constraint)
    if state is not None and state.startswith(_INTEGRITY_CLASS):
        return ForbiddenByDatabase(constraint)
    lost = isinstance(error, DBAPIError) and error.connection_invalidated
    if lost or state in _TRY_AGAIN or (state is not None and state.startswith(_LOST_CLASSES)):
        return DatabaseUnavailable(one_line(driver))
    return None


def _driver_error(error: BaseException) -> BaseException | None:
    if isinstance(error, DBAPIError):
        # SQLAlchemy wraps the driver's error twice: as its own, and as the DBAPI's.
        wrapped = error.orig
        return None if wrapped is None else (wrapped.__cause__ or wrapped)
    return error if isinstance(error, _RAW) else None


def refused_by_server(error: BaseException) -> bool:
    """Tell whether the server itself answered with an ERROR, so that what was sent had no effect.

    FATAL and PANIC end the connection, and say nothing about a COMMIT that was under way.
    """
    return (
        isinstance(error, asyncpg.PostgresError) and getattr(error, "severity_en", None) == "ERROR"
    )


def one_line(error: BaseException) -> str:
    """Return the kind and first line of ``error``; the lines after it may quote stored values."""
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0]}" if text else type(error).__name__
