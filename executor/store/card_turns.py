"""Which cards may have their turn, and taking them; whose turn it is says ``domain.turn``."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from executor.domain.ids import TenantId
from executor.domain.turn import Waiting
from executor.store.cards import ClaimedCard, SubjectKind
from executor.store.statements import run

LOOKED_AHEAD = 50
"""How many waiting cards of each place are looked at for the next turn."""

_LOOKS_AT_ONCE = 20


async def something_is_due(conn: AsyncConnection, tenant: TenantId) -> bool:
    """Say whether any card of a tenant may have its turn; shown ones are looked at on the way."""
    await run(conn, "look_at_shown_cards", tenant=tenant, most=_LOOKS_AT_ONCE)
    return (await run(conn, "something_is_due", tenant=tenant)).one_or_none() is not None


async def waiting(
    conn: AsyncConnection, tenant: TenantId, now: datetime, tries: int
) -> list[Waiting]:
    """Read the first cards without a message of each place; takes no lock.

    ``tries`` is how often a run's own word is tried where it asks to be shown.
    """
    rows = await run(conn, "waiting_cards", tenant=tenant, now=now, tries=tries, each=LOOKED_AHEAD)
    return [
        Waiting(
            row.subject_id,
            row.number if row.subject_kind == SubjectKind.OPERATION else None,
            row.unseen_since,
            row.channel,
            row.thread_ts,
            row.is_due,
            row.is_in_hand,
            row.is_sought,
            row.is_told,
            row.subject_kind == SubjectKind.RUN,
        )
        for row in rows
    ]


async def to_update(
    conn: AsyncConnection, tenant: TenantId, now: datetime, most: int
) -> list[tuple[UUID, bool]]:
    """Read the shown cards that are behind, and whether each was decided; takes no lock."""
    rows = await run(conn, "cards_to_update", tenant=tenant, now=now, most=most)
    return [(row.subject_id, row.is_decided) for row in rows]


async def claim(
    conn: AsyncConnection, tenant: TenantId, subjects: Sequence[UUID], lease_seconds: float
) -> list[ClaimedCard]:
    """Take cards whose turn it is, skipping those that somebody else draws or changes."""
    rows = await run(
        conn,
        "claim_cards",
        tenant=tenant,
        subjects=list(subjects),
        lease_seconds=lease_seconds,
    )
    return [
        ClaimedCard(
            TenantId(r.tenant_id),
            r.subject_id,
            SubjectKind(r.subject_kind),
            r.wanted_revision,
            r.shown_revision,
            r.render_no,
            r.content_revision,
            r.channel,
            r.ts,
            r.posting_nonce,
            r.failures,
            r.wanted_at,
            r.lease_until,
            None if r.view_digest is None else bytes(r.view_digest),
        )
        for r in rows
    ]
