"""Second factors, whose secrets are sealed, and links under which one decides outside Slack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from executor.domain.ids import ApprovalId, OperationId, PrincipalId, TenantId
from executor.store.statements import run


@dataclass(frozen=True, slots=True)
class SecondFactor:
    """One person's secret, sealed, and what its codes came to; ``used_step`` is the newest one."""

    sealed: str
    used_step: int
    failures: int
    blocked_until: datetime | None


@dataclass(frozen=True, slots=True)
class FactorLine:
    """Somebody who has a second factor."""

    principal: PrincipalId
    enrolled_by: PrincipalId
    enrolled_at: datetime
    blocked_until: datetime | None


@dataclass(frozen=True, slots=True)
class DecisionLink:
    """What one link is about: the approval, and the message that its owner was shown."""

    tenant_id: TenantId
    token_hash: bytes
    operation_id: OperationId
    approval_id: ApprovalId
    principal: PrincipalId
    digest: bytes
    content_revision: int
    nonce: UUID
    channel: str
    message_ts: str
    expires_at: datetime


async def put(
    conn: AsyncConnection,
    tenant: TenantId,
    principal: PrincipalId,
    sealed: str,
    enrolled_by: PrincipalId,
    now: datetime,
) -> None:
    """Give somebody a second factor, in place of the one before."""
    await run(
        conn,
        "put_second_factor",
        tenant=tenant,
        principal=principal,
        sealed=sealed,
        enrolled_by=enrolled_by,
        now=now,
    )


async def drop(conn: AsyncConnection, tenant: TenantId, principal: PrincipalId) -> bool:
    """Take somebody's second factor away; returns whether there was one."""
    dropped = await run(conn, "drop_second_factor", tenant=tenant, principal=principal)
    return dropped.one_or_none() is not None


async def lock(
    conn: AsyncConnection, tenant: TenantId, principal: PrincipalId
) -> SecondFactor | None:
    """Lock somebody's second factor: each code is judged once, whoever brings it."""
    row = (await run(conn, "lock_second_factor", tenant=tenant, principal=principal)).one_or_none()
    if row is None:
        return None
    return SecondFactor(row.sealed, row.used_step, row.failures, row.blocked_until)


async def judge(
    conn: AsyncConnection, tenant: TenantId, principal: PrincipalId, judged: SecondFactor
) -> None:
    """Keep what a code came to; the row is locked."""
    await run(
        conn,
        "judge_second_factor",
        tenant=tenant,
        principal=principal,
        used_step=judged.used_step,
        failures=judged.failures,
        blocked_until=judged.blocked_until,
    )


async def listed(conn: AsyncConnection, tenant: TenantId) -> Sequence[FactorLine]:
    """List whoever has a second factor."""
    return [
        FactorLine(
            PrincipalId(row.principal),
            PrincipalId(row.enrolled_by),
            row.enrolled_at,
            row.blocked_until,
        )
        for row in await run(conn, "list_second_factors", tenant=tenant)
    ]


async def insert_link(conn: AsyncConnection, link: DecisionLink, now: datetime) -> None:
    """Keep a link by the hash of its token."""
    await run(
        conn,
        "insert_decision_link",
        tenant=link.tenant_id,
        token_hash=link.token_hash,
        operation=link.operation_id,
        approval=link.approval_id,
        principal=link.principal,
        digest=link.digest,
        content_revision=link.content_revision,
        nonce=link.nonce,
        channel=link.channel,
        message_ts=link.message_ts,
        expires_at=link.expires_at,
        now=now,
    )


async def read_link(
    conn: AsyncConnection, tenant: TenantId, token_hash: bytes
) -> DecisionLink | None:
    """Read a link; looking uses nothing up."""
    row = (
        await run(conn, "read_decision_link", tenant=tenant, token_hash=token_hash)
    ).one_or_none()
    if row is None:
        return None
    return DecisionLink(
        tenant,
        token_hash,
        OperationId(row.operation_id),
        ApprovalId(row.approval_id),
        PrincipalId(row.principal),
        bytes(row.digest),
        row.content_revision,
        row.nonce,
        row.channel,
        row.message_ts,
        row.expires_at,
    )


async def forget_links(conn: AsyncConnection, older_than_seconds: float) -> int:
    """Drop links that ended so long ago; returns how many."""
    dropped = await run(conn, "forget_decision_links", older_than_seconds=older_than_seconds)
    return dropped.rowcount
