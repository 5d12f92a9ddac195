"""Reads for cards: one operation with everything around it, without locks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection

from executor.domain.ids import OperationId, TenantId
from executor.store.statements import run

AnyRow = Row[*tuple[Any, ...]]


async def operation(conn: AsyncConnection, tenant: TenantId, id_: OperationId) -> AnyRow | None:
    """Read one operation with its run and its newest approval."""
    return (await run(conn, "show_operation", tenant=tenant, id=id_)).one_or_none()


async def effects(conn: AsyncConnection, tenant: TenantId, id_: OperationId) -> Sequence[AnyRow]:
    """Read the parts of one operation in order."""
    return (await run(conn, "show_effects", tenant=tenant, id=id_)).all()


async def attempts(conn: AsyncConnection, tenant: TenantId, id_: OperationId) -> Sequence[AnyRow]:
    """Read the tries of one operation in the order of their numbers per effect."""
    return (await run(conn, "show_attempts", tenant=tenant, id=id_)).all()


async def by_number(conn: AsyncConnection, tenant: TenantId, number: int) -> OperationId | None:
    """Find one tenant's operation by the number that people use."""
    row = (await run(conn, "operation_by_number", tenant=tenant, number=number)).one_or_none()
    return None if row is None else OperationId(row.id)
