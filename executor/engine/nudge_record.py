"""Reads nudges as their messages tell them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from executor.domain.ids import TenantId
from executor.domain.nudge import NudgeKind
from executor.domain.operation import OperationStatus
from executor.store import nudges
from executor.store.connection import Connection


@dataclass(frozen=True, slots=True)
class NudgeRecord:
    """What people are reminded of: an operation that waits, and until when they can decide.

    ``whom`` are user ids, and ``group:…`` for user groups. ``waits`` turns false with the decision.
    """

    tenant_id: TenantId
    id: UUID
    operation: int
    kind: NudgeKind
    whom: tuple[str, ...]
    waits: bool
    decide_by: datetime | None
    made_at: datetime


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
