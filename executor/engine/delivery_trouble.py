"""Places where nothing can be shown: noted by whoever runs into one, looked at until they heal.

A place is a channel or ``WORKSPACE``. It is closed for all processes from the note on, looked at
again after ever longer times up to a minute, opened when nothing is found wrong with it, and well
when a message has arrived there. Locks: inbox, troubles.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from executor.domain.ids import TenantId
from executor.domain.turn import WORKSPACE, Trouble
from executor.engine.engine import Engine
from executor.engine.events import StoredEvent
from executor.store import inbox, troubles
from executor.store.connection import Connection
from executor.store.wakeups import Kind

_log = logging.getLogger(__name__)

__all__ = ["WORKSPACE", "Trouble"]


async def note_trouble(
    engine: Engine, tenant: TenantId, place: str, problem: str, *, lasting: bool
) -> None:
    """Close a place until somebody has looked; a new trouble is told to operators.

    ``lasting`` says that only people end it. Opens its own transaction.
    """
    async with engine.database.transaction() as conn:
        new = await troubles.note(conn, tenant, place, problem, lasting=lasting)
    if new:
        _tell_new(tenant, place, problem, lasting=lasting)


async def due_troubles(
    engine: Engine, tenant: TenantId, most: int, kept: Sequence[str]
) -> Sequence[Trouble]:
    """Take the troubles that are due for a look. Opens its own transaction.

    Old ones of other places than ``kept`` are forgotten: whoever still asks for one finds out anew.
    """
    async with engine.database.transaction() as conn:
        await troubles.forget(conn, tenant, kept)
        lease = engine.durations.outbox_lease_seconds
        return await troubles.claim(conn, tenant, most, lease)


async def open_place(engine: Engine, tenant: TenantId, place: str) -> None:
    """Let the next message try a place, for nothing was found wrong with it.

    Opens its own transaction.
    """
    async with engine.database.transaction() as conn:
        await troubles.open_(conn, tenant, place)
    engine.ring(Kind.CARDS)


async def places_are_well(engine: Engine, tenant: TenantId, places: Iterable[str]) -> None:
    """End the troubles of places to which a message came. Opens its own transaction."""
    async with engine.database.transaction() as conn:
        ended = await troubles.end(conn, tenant, places)
    for trouble in ended:
        _log.warning(
            "cards are shown again in %s, after %d s (%s; tenant %s)",
            _named(trouble.place),
            trouble.lasted.total_seconds(),
            trouble.problem,
            tenant,
        )
    if ended:
        engine.ring(Kind.CARDS)


async def handle_by_closing(engine: Engine, event: StoredEvent, place: str, problem: str) -> None:
    """Close a place because an event says that nothing can be shown there, and handle it.

    Opens its own transaction.
    """
    new = False
    async with engine.database.transaction() as conn:
        if await inbox.handled(conn, event):
            new = await troubles.note(conn, event.tenant_id, place, problem, lasting=True)
    if new:
        _tell_new(event.tenant_id, place, problem, lasting=True)


async def handle_by_looking(engine: Engine, event: StoredEvent, place: str) -> None:
    """Look at a closed place at once, for an event says that it has changed, and handle it.

    Opens its own transaction.
    """
    async with engine.database.transaction() as conn:
        if await inbox.handled(conn, event):
            await _hasten(conn, event.tenant_id, place)
    engine.ring(Kind.CARDS)


async def _hasten(conn: Connection, tenant: TenantId, place: str) -> None:
    for one in {place, WORKSPACE}:
        await troubles.hasten(conn, tenant, one)


def _tell_new(tenant: TenantId, place: str, problem: str, *, lasting: bool) -> None:
    _log.log(
        logging.ERROR if lasting else logging.WARNING,
        "nothing can be shown in %s: %s (tenant %s); docs/operations.md, Cards that are not shown, "
        "tells what to do",
        _named(place),
        problem,
        tenant,
    )


def _named(place: str) -> str:
    return "the workspace" if place == WORKSPACE else f"channel {place}"
