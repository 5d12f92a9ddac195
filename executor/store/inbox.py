"""Incoming events: stored before they are acknowledged, handled later, once."""

from __future__ import annotations

import json
from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncConnection

from executor.domain.ids import TenantId
from executor.domain.payloads import JsonObject
from executor.store.statements import run


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event that nobody has handled yet."""

    tenant_id: TenantId
    id: str
    payload: JsonObject
    tries: int


async def put(conn: AsyncConnection, tenant: TenantId, event_id: str, payload: JsonObject) -> bool:
    """Store an event; ``False``: it was stored before."""
    stored = await run(
        conn, "put_event", tenant=tenant, event_id=event_id, payload=json.dumps(payload)
    )
    return stored.one_or_none() is not None


async def claim(conn: AsyncConnection, most: int, lease_seconds: float) -> list[StoredEvent]:
    """Take events that nobody has handled."""
    rows = await run(conn, "claim_events", most=most, lease_seconds=lease_seconds)
    return [StoredEvent(TenantId(r.tenant_id), r.event_id, r.payload, r.tries) for r in rows]


async def handled(conn: AsyncConnection, event: StoredEvent) -> bool:
    """Remember that an event was handled; ``False``: somebody else did it before."""
    done = await run(conn, "handle_event", tenant=event.tenant_id, event_id=event.id)
    return done.one_or_none() is not None
