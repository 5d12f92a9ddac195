"""Reads nudges as their messages tell them."""

from __future__ import annotations

from uuid import UUID

from executor.domain.ids import TenantId
from executor.domain.nudge import NudgeKind
from executor.domain.operation import OperationStatus
from executor.engine.card_record import NudgeRecord
from executor.store import nudges
from executor.store.connection import Connection


async def read_nudge(conn: Connection, tenant: TenantId, id_: UUID) -> NudgeRecord:
    """Read everything that one nudge may say."""
    row = await nudges.show(conn, tenant, id_)
    assert row is not None, "a nudge that is told exists"
    return NudgeRecord(
        tenant,
        id_,
        row.number,
        NudgeKind(row.kind),
        tuple(str(who) for who in row.whom),
        row.status == OperationStatus.AWAITING,
        row.decide_by,
        row.made_at,
    )
