"""Reads for cards: one operation with everything around it, without locks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection

from executor.domain.ids import OperationId, RunId, TenantId
from executor.store.statements import run

AnyRow = Row[*tuple[Any, ...]]


async def operation(conn: AsyncConnection, tenant: TenantId, id_: OperationId) -> AnyRow | None:
    """Read one operation with its run and its first approval."""
    return (await run(conn, "show_operation", tenant=tenant, id=id_)).one_or_none()


async def effects(conn: AsyncConnection, tenant: TenantId, id_: OperationId) -> Sequence[AnyRow]:
    """Read the parts of one operation in order."""
    return (await run(conn, "show_effects", tenant=tenant, id=id_)).all()


async def attempts(conn: AsyncConnection, tenant: TenantId, id_: OperationId) -> Sequence[AnyRow]:
    """Read the tries of one operation in the order of their numbers per effect."""
    return (await run(conn, "show_attempts", tenant=tenant, id=id_)).all()


async def words(
    conn: AsyncConnection, tenant: TenantId, run_id: RunId, event: str, about: Sequence[UUID]
) -> Sequence[AnyRow]:
    """Read the journal's notes of one kind about some attempts of one run, in their order."""
    return (
        await run(conn, "show_words", tenant=tenant, run=run_id, event=event, attempts=list(about))
    ).all()


async def in_doubt(
    conn: AsyncConnection, tenant: TenantId | None, number: int | None, most: int
) -> Sequence[AnyRow]:
    """Read what nobody knows of, of one tenant or of all, the longest first; takes no lock.

    With a ``number``, only the operation that bears it.
    """
    found = await run(conn, "operations_in_doubt", tenant=tenant, number=number, most=most)
    return found.all()


async def count_in_doubt(conn: AsyncConnection) -> int:
    """Count the operations that stand unknown."""
    return int((await run(conn, "count_operations_in_doubt")).scalar_one())


async def by_number(conn: AsyncConnection, tenant: TenantId, number: int) -> OperationId | None:
    """Find one tenant's operation by the number that people use."""
    row = (await run(conn, "operation_by_number", tenant=tenant, number=number)).one_or_none()
    return None if row is None else OperationId(row.id)
