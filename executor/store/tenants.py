"""Tenants and the policy that is active for each."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncConnection

from executor.domain.ids import TenantId
from executor.domain.policy import Policy, policy_from
from executor.store.statements import run


@dataclass(frozen=True, slots=True)
class PolicyChange:
    """Which version was active before, ``None``: none was; and which is now."""

    before: str | None
    now: str


async def put_policy(conn: AsyncConnection, policy: Policy) -> PolicyChange | None:
    """Store a policy and make it the active one; ``None``: it was that already.

    Runs inside the caller's transaction, and keeps the tenant's row. Waits for every opening that
    holds the old policy.
    """
    tenant = policy.tenant_id
    kept = await run(
        conn,
        "put_tenant",
        tenant=tenant,
        name=policy.tenant.name,
        timezone=policy.tenant.timezone,
    )
    before: str | None = kept.scalar_one()
    await run(
        conn,
        "put_policy",
        tenant=tenant,
        version=policy.version,
        document=json.dumps(policy.as_document()),
    )
    changed = await run(conn, "activate_policy", tenant=tenant, version=policy.version)
    return PolicyChange(before, policy.version) if changed.rowcount > 0 else None


async def share_policies(
    conn: AsyncConnection, tenants: Iterable[TenantId]
) -> dict[TenantId, Policy]:
    """Hold the active policies of ``tenants`` against a change until COMMIT: the first lock."""
    wanted = sorted(set(tenants))
    rows = (await run(conn, "share_policies", tenants=wanted)).all()
    if len(rows) < len(wanted):
        # Where it has waited for an activation, the statement is older than the policy that is
        # active now and does not see it. The row is locked all the same, and this one sees both.
        rows = (await run(conn, "share_policies", tenants=wanted)).all()
    return {TenantId(row.id): policy_from(row.document) for row in rows}


async def known(conn: AsyncConnection) -> list[TenantId]:
    """List the tenants of this installation."""
    return [TenantId(row.id) for row in await run(conn, "known_tenants")]
