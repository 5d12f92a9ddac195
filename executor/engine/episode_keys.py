"""Names each ticket's closing by the episode that the ticket is in."""

from __future__ import annotations

from collections.abc import Mapping

from executor.domain.ids import TenantId
from executor.domain.intent import close_key
from executor.domain.stamp import DeskVersion, Stamp
from executor.domain.ticket import TicketStatus
from executor.engine.composing import Target
from executor.store import episodes
from executor.store.connection import Connection


async def closing_keys(
    conn: Connection, tenant: TenantId, desk_name: str, targets: Mapping[str, Target]
) -> dict[str, str]:
    """Name each ticket's closing in its current episode, counting a new one where it came back.

    The count's lock stands for that of an outside ticket.
    """
    counts = await episodes.lock(conn, [(tenant, desk_name, id_) for id_ in targets])
    keys = {}
    for (_, _, ticket_id), episode in counts.items():
        number = episode.number
        if _came_back(targets[ticket_id], episode.closed):
            number += 1
            await episodes.begin(conn, (tenant, desk_name, ticket_id), number)
        keys[ticket_id] = close_key(desk_name, ticket_id, number)
    return keys


def _came_back(target: Target, closed: DeskVersion | None) -> bool:
    """Say whether the ticket is open again at a version later than our own close of it."""
    if closed is None or target.ticket.status is not TicketStatus.OPEN:
        return False
    if isinstance(closed, Stamp):
        return target.stamp is not None and target.stamp.comes_after(closed)
    return target.stamp is None and target.ticket.version > closed
