"""A card that somebody touched where it should not be touched is drawn again from its record."""

from __future__ import annotations

from uuid import UUID

from executor.domain.ids import TenantId
from executor.engine.engine import Engine
from executor.store import cards, clock
from executor.store.cards import SubjectKind
from executor.store.wakeups import Kind


async def redraw(
    engine: Engine, tenant: TenantId, subject: UUID, kind: SubjectKind
) -> tuple[str, str] | None:
    """Ask for a card to be drawn again and return its place; ``None``: it has none.

    Opens its own transaction. A subject that was never shown gets no card by this.
    """
    async with engine.database.transaction() as conn:
        place = (await cards.lock(conn, [(tenant, subject)])).get((tenant, subject))
        if place is None:
            return None
        await cards.want(conn, [(tenant, subject, kind)], await clock.now(conn))
    engine.ring(Kind.CARDS)
    if place.channel is None or place.ts is None:
        return None
    return place.channel, place.ts


async def place_of(engine: Engine, tenant: TenantId, subject: UUID) -> tuple[str, str] | None:
    """Read where a card stands. Opens its own transaction."""
    async with engine.database.transaction() as conn:
        channel, ts = await cards.card_place(conn, (tenant, subject))
    return None if channel is None or ts is None else (channel, ts)
