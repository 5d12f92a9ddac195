"""What is put before one person alone, recorded before it opens: a vote there is a vote on it."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from executor.domain.ids import OperationId, PrincipalId, TenantId
from executor.domain.payloads import JsonValue
from executor.engine.engine import Engine
from executor.engine.presenting import Shown
from executor.store import cards, clock, modal_views
from executor.store.modal_views import ModalView


async def record_modal(
    engine: Engine,
    tenant: TenantId,
    nonce: UUID,
    operation: OperationId,
    principal: PrincipalId,
    shown: Shown,
) -> None:
    """Record what a modal shows of an operation, to whom; opens its own transaction."""
    view = ModalView(nonce, operation, principal, shown.content_revision, shown.view_digest)
    blocks: Sequence[JsonValue] = shown.blocks
    async with engine.database.transaction() as conn:
        now = await clock.now(conn)
        await cards.keep_view(conn, tenant, shown.view_digest, blocks, now)
        await modal_views.record(conn, tenant, view, now)
