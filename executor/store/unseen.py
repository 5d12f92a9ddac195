"""Approvals that nobody can see: who is to hear of them, and whether that has been done."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from executor.domain.ids import PrincipalId, RunId, TenantId
from executor.store.statements import run


@dataclass(frozen=True, slots=True)
class UnseenAlarm:
    """An approval that nobody could see for ``unseen_for``, and why, where that is known."""

    tenant_id: TenantId
    number: int
    run_id: RunId
    problem: str | None
    unseen_for: timedelta


@dataclass(frozen=True, slots=True)
class Untold:
    """An approval that nobody can see and of which people are to hear.

    ``problem`` is what is wrong with its card, ``channel`` where it asks to be shown.
    """

    subject: UUID
    number: int
    requester: PrincipalId
    problem: str | None
    channel: str | None


@dataclass(frozen=True, slots=True)
class UnseenCount:
    """How many approvals nobody can see for one reason, and since when the oldest."""

    problem: str | None
    approvals: int
    oldest_seconds: float


async def alarm(conn: AsyncConnection, seconds: float, most: int) -> list[UnseenAlarm]:
    """Take approvals of all tenants that are unseen for so long; each is taken once."""
    rows = await run(conn, "alarm_unseen", seconds=seconds, most=most)
    return [
        UnseenAlarm(
            TenantId(row.tenant_id), row.number, RunId(row.run_id), row.problem, row.unseen_for
        )
        for row in rows
    ]


async def alarmed_for(conn: AsyncConnection, tenant: TenantId, subject: UUID) -> timedelta | None:
    """Say for how long a locked card is unseen, if that has alarmed."""
    row = (await run(conn, "alarmed_at", tenant=tenant, subject=subject)).one_or_none()
    if row is None or row.alarmed_at is None:
        return None
    unseen_for: timedelta = row.now - row.unseen_since
    return unseen_for


async def to_tell(
    conn: AsyncConnection,
    tenant: TenantId,
    channel: str,
    *,
    lasting: Iterable[str],
    passing: Iterable[str],
    after_seconds: float,
    again_seconds: float,
    most: int,
) -> list[Untold]:
    """Take approvals of which people are to hear now.

    At once where they ask for one of the places ``lasting``, after a time where they ask for one of
    ``passing`` or are refused themselves. ``channel`` is where those go that name none.
    """
    rows = await run(
        conn,
        "unseen_to_tell",
        tenant=tenant,
        channel=channel,
        lasting=sorted(lasting),
        passing=sorted(passing),
        seconds=after_seconds,
        first_seconds=again_seconds,
        most=most,
    )
    told = [
        Untold(r.subject_id, r.number, PrincipalId(r.requester), r.problem, r.channel) for r in rows
    ]
    return sorted(told, key=lambda one: one.number)


async def remember_telling(
    conn: AsyncConnection, tenant: TenantId, subjects: Sequence[UUID]
) -> None:
    """Remember that people have been told of these cards."""
    await run(conn, "remember_telling", tenant=tenant, subjects=list(subjects))


async def count(conn: AsyncConnection, tenant: TenantId, channel: str) -> list[UnseenCount]:
    """Count the approvals of a tenant that nobody can see, by what is wrong."""
    rows = await run(conn, "count_unseen", tenant=tenant, channel=channel)
    return [UnseenCount(r.problem, r.approvals, float(r.oldest_seconds)) for r in rows]
