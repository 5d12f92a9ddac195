"""Grants; the pair of ``executor.domain.grant``.

They lie under the tenant's row: decisions and openings hold it FOR SHARE, whoever changes a grant
takes it for that, so that neither can commit between the other's look and its COMMIT.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection

from executor.domain.errors import LostRace
from executor.domain.grant import Grant, GrantId, GrantStatus
from executor.domain.ids import PrincipalId, TenantId
from executor.domain.journal import JournalEntry
from executor.store.journal import as_rows
from executor.store.statements import run


@dataclass(frozen=True, slots=True)
class GrantLine:
    """A grant as it is listed: with why it was given, and what became of it."""

    grant: Grant
    note: str
    granted_at: datetime
    revoked_by: PrincipalId | None
    revoked_at: datetime | None


async def hold_rights(conn: AsyncConnection, tenant: TenantId) -> None:
    """Wait for every decision and opening of a tenant under way, and keep others out."""
    await run(conn, "hold_rights", tenants=[tenant])


async def insert(
    conn: AsyncConnection,
    tenant: TenantId,
    grant: Grant,
    note: str,
    entry: JournalEntry,
    now: datetime,
) -> int:
    """Give a role and return the grant's number."""
    given = await run(
        conn,
        "insert_grant",
        tenant=tenant,
        id=grant.id,
        principal=grant.principal,
        role=grant.role,
        resource=grant.resource,
        starts_at=grant.starts_at,
        ends_at=grant.ends_at,
        granted_by=grant.granted_by,
        on_behalf_of=grant.on_behalf_of,
        note=note,
        now=now,
        entries=as_rows([entry]),
    )
    return int(given.scalar_one())


async def revoke(
    conn: AsyncConnection,
    tenant: TenantId,
    grant: Grant,
    revoked_by: PrincipalId,
    entry: JournalEntry,
    now: datetime,
) -> None:
    """Take a locked grant back; one that is not active any more: ``LostRace``."""
    moved = await run(
        conn,
        "revoke_grant",
        tenant=tenant,
        id=grant.id,
        seq=grant.seq,
        revoked_by=revoked_by,
        now=now,
        entries=as_rows([entry]),
    )
    if len(moved.all()) != 1:
        raise LostRace("revoke_grant", 1)


async def lock(conn: AsyncConnection, tenant: TenantId, number: int) -> GrantLine | None:
    """Lock one grant by its number; ``None``: there is none."""
    row = (await run(conn, "lock_grant", tenant=tenant, number=number)).one_or_none()
    return None if row is None else _line(row)


async def of_people(
    conn: AsyncConnection, people: Iterable[tuple[TenantId, PrincipalId]]
) -> dict[TenantId, list[Grant]]:
    """Read the active grants of people, and of those on whose behalf they act, by tenant."""
    wanted = sorted(set(people))
    rows = await run(
        conn,
        "grants_of_people",
        tenants=[tenant for tenant, _ in wanted],
        principals=[principal for _, principal in wanted],
    )
    found: dict[TenantId, list[Grant]] = {}
    for row in rows:
        found.setdefault(TenantId(row.tenant_id), []).append(_grant(row))
    return found


async def listed(
    conn: AsyncConnection,
    tenant: TenantId,
    *,
    past: bool,
    most: int,
    about: PrincipalId | None = None,
) -> Sequence[GrantLine]:
    """Read a tenant's grants, newest first; ``past`` asks for those that are over as well.

    With ``about``, those that this principal has, gave or passed on.
    """
    rows = await run(conn, "list_grants", tenant=tenant, past=past, most=most, about=about)
    return [_line(row) for row in rows]


def _line(row: Row[*tuple[Any, ...]]) -> GrantLine:
    by = None if row.revoked_by is None else PrincipalId(row.revoked_by)
    return GrantLine(_grant(row), row.note, row.granted_at, by, row.revoked_at)


def _grant(row: Row[*tuple[Any, ...]]) -> Grant:
    return Grant(
        GrantId(row.id),
        row.number,
        PrincipalId(row.principal),
        row.role,
        row.resource,
        row.starts_at,
        row.ends_at,
        PrincipalId(row.granted_by),
        None if row.on_behalf_of is None else PrincipalId(row.on_behalf_of),
        GrantStatus(row.status),
        row.seq,
    )
