"""What was put before one person alone in a modal; written before it opens and never changed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from executor.domain.ids import OperationId, PrincipalId, TenantId
from executor.store.statements import run


@dataclass(frozen=True, slots=True)
class ModalView:
    """What one modal shows, to whom, and of which operation's content."""

    nonce: UUID
    operation_id: OperationId
    principal: PrincipalId
    content_revision: int
    view_digest: bytes

    def is_about(
        self, operation: OperationId, principal: PrincipalId, content_revision: int
    ) -> bool:
        """Whether it put exactly this content before this person."""
        shown = (self.operation_id, self.principal, self.content_revision)
        return shown == (operation, principal, content_revision)


async def record(conn: AsyncConnection, tenant: TenantId, shown: ModalView, now: datetime) -> None:
    """Record what is about to be shown; the view itself is kept already (``cards.keep_view``)."""
    await run(
        conn,
        "insert_modal_view",
        tenant=tenant,
        nonce=shown.nonce,
        operation=shown.operation_id,
        principal=shown.principal,
        content_revision=shown.content_revision,
        view_digest=shown.view_digest,
        now=now,
    )


async def by_nonce(
    conn: AsyncConnection, keys: Iterable[tuple[TenantId, UUID]]
) -> dict[UUID, ModalView]:
    """Find what the modals of these nonces showed."""
    wanted = list(keys)
    if not wanted:
        return {}
    rows = await run(
        conn,
        "modal_views_by_nonce",
        tenants=[tenant for tenant, _ in wanted],
        nonces=[nonce for _, nonce in wanted],
    )
    return {
        row.nonce: ModalView(
            row.nonce,
            OperationId(row.operation_id),
            PrincipalId(row.principal),
            row.content_revision,
            bytes(row.view_digest),
        )
        for row in rows
    }
