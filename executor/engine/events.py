"""Events from outside: stored before they are acknowledged, handled later, once.

What an event asks for is done in the transaction that marks it handled, so that a crash in between
leaves it for the next and a redelivery changes nothing.
"""

from __future__ import annotations

from executor.domain.ids import TenantId
from executor.domain.payloads import JsonObject
from executor.engine.engine import Engine
from executor.engine.failpoint import Commit
from executor.engine.start import StartRequest, StartResult, start_in
from executor.store import inbox
from executor.store.inbox import StoredEvent
from executor.store.wakeups import Kind

AT_ONCE = 20

__all__ = ["StoredEvent"]


async def store_event(engine: Engine, tenant: TenantId, event_id: str, payload: JsonObject) -> bool:
    """Store an event; ``False``: it was stored before. Opens its own transaction."""
    async with engine.committing(Commit.STORE_EVENT) as conn:
        new = await inbox.put(conn, tenant, event_id, payload)
    engine.ring(Kind.INBOX)
    return new


async def due_events(engine: Engine) -> list[StoredEvent]:
    """Take stored events that nobody has handled. Opens its own transaction."""
    async with engine.database.transaction() as conn:
        return await inbox.claim(conn, AT_ONCE, engine.durations.outbox_lease_seconds)


async def handle_by_starting(
    engine: Engine, event: StoredEvent, request: StartRequest
) -> StartResult | None:
    """Start the run that an event asks for and mark the event handled, in one commit.

    ``None``: somebody else has handled it. Opens its own transaction.
    """
    async with engine.committing(Commit.START) as conn:
        if not await inbox.handled(conn, event):
            return None
        [result] = await start_in(conn, engine, [request])
    engine.ring(Kind.WORK)
    return result


async def handle_by_nothing(engine: Engine, event: StoredEvent) -> None:
    """Mark an event handled that asks for nothing. Opens its own transaction."""
    async with engine.database.transaction() as conn:
        await inbox.handled(conn, event)
