"""Moves a stored operation along an edge that no use case takes yet, with its journal row."""

from __future__ import annotations

from executor.domain.ids import OperationId
from executor.domain.operation import OperationStatus
from executor.domain.transition import Machine, Transition
from executor.store import journal, operations
from tests.support.office import TENANT, Office

_ENDED = frozenset({"succeeded", "failed", "partial"})


async def force_operation(office: Office, operation: OperationId, target: str) -> None:
    """Move one operation to ``target``; the database still refuses what is no edge."""
    key = (TENANT, operation)
    async with office.database.transaction() as conn:
        row = (await operations.lock(conn, [key]))[key]
        chain = await journal.lock_chain(conn, [(TENANT, row.run_id)])
        transition = Transition(row.status, OperationStatus(target), "forced")
        entry = chain.move(
            Machine.OPERATION, TENANT, row.run_id, row.id, row.seq, transition, "test"
        )
        ended_at = chain.now if target in _ENDED else None
        move = operations.OperationMove(
            row, transition, entry, opened_at=chain.now, ended_at=ended_at
        )
        await operations.move(conn, [move])
        await journal.advance(conn, chain)
