"""Runs that use tools of servers, and workers that call them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from executor.domain.ids import OperationId
from executor.engine.card_record import OperationRecord
from executor.engine.executing import execute, openings
from executor.engine.leases import operation_keeper
from executor.engine.presenting import operation_record
from executor.engine.waking import wake
from tests.support.fake_model import FakeModel, Scripted
from tests.support.office import TENANT, Office
from tests.support.working import Working


@dataclass
class ToolScene:
    """An office whose policy lends servers; ``office.tools`` reaches them."""

    office: Office

    async def run(self, *script: Scripted) -> Working:
        """Drive a run until it waits or ends."""
        working = await Working.start(self.office, FakeModel(script))
        await working.drive()
        return working

    async def told(self, *script: Scripted) -> list[dict[str, Any]]:
        """Drive a run, and read what its model was told."""
        return await (await self.run(*script)).told()

    async def asked(self, *script: Scripted) -> tuple[Working, OperationId]:
        """Drive a run that proposes one call, which people see."""
        working = await self.run(*script)
        await self.office.show()
        [operation] = await working.operations()
        return working, operation

    async def do(self, operation: OperationId) -> None:
        """Let a worker do what was approved."""
        office = self.office
        claimed = await office.claim_operation(operation)
        keeper = operation_keeper(office.engine, claimed.claim.key, claimed.lease)
        group = openings(office.engine, office.providers)
        await execute(office.engine, office.providers, group, claimed.claim, keeper)

    async def go_on(self, working: Working) -> None:
        """Wake a run whose operations have ended, and drive it."""
        await wake(self.office.engine)
        await working.drive()

    async def status(self, operation: OperationId) -> str:
        """Say where an operation stands."""
        rows = await self.office.rows("SELECT status FROM operations WHERE id = :id", id=operation)
        return str(rows[0][0])

    async def record(self, operation: OperationId) -> OperationRecord:
        """Read what its card shows."""
        record = await operation_record(self.office.engine, TENANT, operation)
        assert isinstance(record, OperationRecord)
        return record
