"""What Slack last said of people and of user groups, and which of it somebody waits to see anew.

An observation from before a change that Slack told of is not read back: it is as good as none.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncConnection

from executor.domain.groups import GroupObservation
from executor.domain.identity import Identity, identity_of
from executor.domain.ids import PrincipalId, TenantId
from executor.store.statements import run

GroupKey = tuple[TenantId, str]
"""A tenant, and the id of a Slack user group in it."""


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


async def wanted_identities(
    conn: AsyncConnection, tenant: TenantId, most: int
) -> list[PrincipalId]:
    """List whom somebody waits for, oldest wish first."""
    rows = await run(conn, "wanted_identities", tenant=tenant, most=most)
    return [PrincipalId(row.principal) for row in rows]


async def read_identities(
    conn: AsyncConnection, people: Iterable[tuple[TenantId, PrincipalId]]
) -> dict[tuple[TenantId, PrincipalId], Identity]:
    """Read the newest observations; people never observed, or changed since, are absent."""
    wanted = sorted(set(people))
    rows = await run(
        conn,
        "read_identities",
        tenants=[tenant for tenant, _ in wanted],
        principals=[principal for _, principal in wanted],
    )
    return {
        (TenantId(row.tenant_id), PrincipalId(row.principal)): identity_of(
            row.facts, row.observed_at, row.wanted_at
        )
        for row in rows
    }


async def put_group(
    conn: AsyncConnection, tenant: TenantId, group: str, observation: GroupObservation
) -> None:
    """Store who is in a group, unless a newer observation is there already."""
    await run(
        conn,
        "put_group",
        tenant=tenant,
        group_id=group,
        members=sorted(observation.members),
        problem=observation.problem,
        observed_at=observation.observed_at,
    )


async def note_silence_about_group(
    conn: AsyncConnection, tenant: TenantId, group: str, problem: str, wait_seconds: float
) -> None:
    """Keep why nothing was heard of a group, and look again no earlier than ``wait_seconds``."""
    await run(
        conn,
        "note_silence_about_group",
        tenant=tenant,
        group_id=group,
        problem=problem,
        wait_seconds=wait_seconds,
    )


async def claim_group_look(
    conn: AsyncConnection, tenant: TenantId, group: str, every_seconds: float
) -> datetime | None:
    """Take the one look at a group that all processes together may make now.

    Returns the database's time, from before the look; ``None``: somebody else has just looked.
    """
    claimed = await run(
        conn, "claim_group_look", tenant=tenant, group_id=group, every_seconds=every_seconds
    )
    asked_at: datetime | None = claimed.scalar_one_or_none()
    return asked_at


async def want_groups(
    conn: AsyncConnection, groups: Iterable[GroupKey], wanted_at: datetime
) -> None:
    """Ask the bot for a newer look at ``groups``."""
    wanted = sorted(set(groups))
    await run(
        conn,
        "want_groups",
        tenants=[tenant for tenant, _ in wanted],
        group_ids=[group for _, group in wanted],
        wanted_at=wanted_at,
    )


async def wanted_groups(conn: AsyncConnection, tenant: TenantId, most: int) -> list[str]:
    """List the groups that somebody waits for, oldest wish first."""
    rows = await run(conn, "wanted_groups", tenant=tenant, most=most)
    return [str(row.group_id) for row in rows]


async def read_groups(
    conn: AsyncConnection, groups: Iterable[GroupKey]
) -> dict[GroupKey, GroupObservation]:
    """Read the newest observations; groups never observed, or changed since, are absent."""
    wanted = sorted(set(groups))
    rows = await run(
        conn,
        "read_groups",
        tenants=[tenant for tenant, _ in wanted],
        group_ids=[group for _, group in wanted],
    )
    return {
        (TenantId(row.tenant_id), str(row.group_id)): GroupObservation(
            frozenset(PrincipalId(who) for who in row.members),
            row.observed_at,
            row.problem,
            row.wanted_at,
        )
        for row in rows
    }


async def outdate(
    conn: AsyncConnection,
    tenant: TenantId,
    people: Iterable[PrincipalId],
    groups: Iterable[str],
    changed_at: datetime,
    believed_since: datetime,
) -> None:
    """Let what was observed before ``changed_at`` count for nothing.

    Observations newer than ``believed_since`` are wanted anew; about older ones nobody asks.
    """
    await run(
        conn,
        "outdate_identities",
        tenant=tenant,
        principals=sorted(set(people)),
        changed_at=changed_at,
        believed_since=believed_since,
    )
    await run(
        conn,
        "outdate_groups",
        tenant=tenant,
        group_ids=sorted(set(groups)),
        changed_at=changed_at,
        believed_since=believed_since,
    )


async def group_problems(
    conn: AsyncConnection, tenant: TenantId, groups: Iterable[str]
) -> dict[str, int]:
    """Count those of ``groups`` of which Slack tells nothing, by its reason."""
    rows = await run(conn, "group_problems", tenant=tenant, group_ids=sorted(set(groups)))
    return {str(row.problem): int(row.groups) for row in rows}
