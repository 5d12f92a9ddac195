"""Tenants, their active policy, and what was last observed of their people."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncConnection

from executor.domain.identity import Identity
from executor.domain.ids import PrincipalId, TenantId
from executor.domain.policy import Policy, policy_from
from executor.store.statements import run


async def put_policy(conn: AsyncConnection, policy: Policy) -> bool:
    """Store a policy and make it the active one; returns whether another was active before.

    Runs inside the caller's transaction. Waits for every opening that holds the old policy.
    """
    tenant = policy.tenant_id
    await run(
        conn,
        "put_tenant",
        tenant=tenant,
        name=policy.tenant.name,
        timezone=policy.tenant.timezone,
    )
    await run(
        conn,
        "put_policy",
        tenant=tenant,
        version=policy.version,
        document=json.dumps(policy.as_document()),
    )
    changed = await run(conn, "activate_policy", tenant=tenant, version=policy.version)
    return changed.rowcount > 0


async def share_policies(
    conn: AsyncConnection, tenants: Iterable[TenantId]
) -> dict[TenantId, Policy]:
    """Hold the active policies of ``tenants`` against a change until COMMIT: the first lock."""
    rows = await run(conn, "share_policies", tenants=sorted(set(tenants)))
    return {TenantId(row.id): policy_from(row.document) for row in rows}


async def known(conn: AsyncConnection) -> list[TenantId]:
    """List the tenants of this installation."""
    return [TenantId(row.id) for row in await run(conn, "known_tenants")]


async def put_identity(
    conn: AsyncConnection, tenant: TenantId, principal: PrincipalId, identity: Identity
) -> None:
    """Store an observation, unless a newer one is there already."""
    await run(
        conn,
        "put_identity",
        tenant=tenant,
        principal=principal,
        facts=json.dumps(identity.facts()),
        observed_at=identity.observed_at,
    )


async def want_identities(
    conn: AsyncConnection, people: Iterable[tuple[TenantId, PrincipalId]], wanted_at: datetime
) -> None:
    """Ask the bot for a newer look at ``people``."""
    wanted = sorted(set(people))
    await run(
        conn,
        "want_identities",
        tenants=[tenant for tenant, _ in wanted],
        principals=[principal for _, principal in wanted],
        wanted_at=wanted_at,
    )


async def wanted_identities(conn: AsyncConnection, most: int) -> list[tuple[TenantId, PrincipalId]]:
    """List whom somebody waits for, oldest wish first."""
    rows = await run(conn, "wanted_identities", most=most)
    return [(TenantId(row.tenant_id), PrincipalId(row.principal)) for row in rows]


async def read_identities(
    conn: AsyncConnection, people: Iterable[tuple[TenantId, PrincipalId]]
) -> dict[tuple[TenantId, PrincipalId], Identity]:
    """Read the newest observations; people never observed are absent."""
    wanted = sorted(set(people))
    rows = await run(
        conn,
        "read_identities",
        tenants=[tenant for tenant, _ in wanted],
        principals=[principal for _, principal in wanted],
    )
    return {
        (TenantId(row.tenant_id), PrincipalId(row.principal)): Identity(
            team_id=row.facts["team_id"],
            deleted=row.facts["deleted"],
            is_bot=row.facts["is_bot"],
            is_guest=row.facts["is_guest"],
            is_stranger=row.facts["is_stranger"],
            observed_at=row.observed_at,
            wanted_at=row.wanted_at,
        )
        for row in rows
    }
