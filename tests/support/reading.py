"""Reads of what is stored, for tests that say what must be there."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any, ClassVar

from sqlalchemy import text

from executor.domain.ids import OperationId, RunId, TenantId
from executor.engine.engine import Engine
from executor.engine.status import history
from executor.store.database import Database


@dataclass
class Reading:
    """One tenant's records, read in transactions of their own."""

    database: Database
    engine: Engine
    tenant: ClassVar[TenantId]

    async def status(self, operation: OperationId) -> str:
        """Read where an operation stands."""
        return await self.value(
            "SELECT status FROM operations WHERE tenant_id = :t AND id = :id", operation
        )

    async def run_status(self, run_id: RunId) -> str:
        """Read where a run stands."""
        return await self.value("SELECT status FROM runs WHERE tenant_id = :t AND id = :id", run_id)

    async def value(self, query: str, id_: uuid.UUID) -> str:
        """Read one value by a query over ``:t`` and ``:id``."""
        async with self.database.transaction() as conn:
            found = await conn.execute(text(query), {"t": self.tenant, "id": id_})
            return str(found.scalar_one())

    async def rows(self, query: str, **binds: object) -> list[tuple[Any, ...]]:
        """Read rows by a query."""
        async with self.database.transaction() as conn:
            return [tuple(row) for row in await conn.execute(text(query), binds)]

    async def run_of(self, operation: OperationId) -> RunId:
        """Find the run that an operation belongs to."""
        found = await self.value(
            "SELECT run_id FROM operations WHERE tenant_id = :t AND id = :id", operation
        )
        return RunId(uuid.UUID(found))

    async def reason(self, operation: OperationId) -> str:
        """Read why an operation ended."""
        return await self.value(
            "SELECT reason FROM operations WHERE tenant_id = :t AND id = :id", operation
        )

    async def events(self, run_id: RunId) -> list[tuple[str, str, str | None]]:
        """Read a run's journal as (event, actor, target)."""
        entries = (await history(self.engine, self.tenant, run_id)).journal
        return [(entry.event, entry.actor, entry.target) for entry in entries]
