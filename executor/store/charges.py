"""Charges as people ask for them: by a name, how one ended, and whose runs lack money.

What changes them is in ``executor.store.budgets``. Nothing here takes a lock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime

from sqlalchemy.ext.asyncio import AsyncConnection

from executor.domain.budget import Account, ReservationStatus
from executor.domain.ids import PrincipalId, ReservationId, RunId, TenantId
from executor.domain.raising import Scope
from executor.domain.run import RunStatus
from executor.store.statements import run


@dataclass(frozen=True, slots=True)
class NamedCharge:
    """One charge, whatever has become of it; ``actual_microusd`` is known once it is settled."""

    id: ReservationId
    run_id: RunId
    run: int
    day: date
    purpose: str
    status: ReservationStatus
    amount_microusd: int
    actual_microusd: int | None
    deadline_at: datetime


@dataclass(frozen=True, slots=True)
class ChargeEnd:
    """Who told what a charge came to, when, and by what."""

    by: PrincipalId
    at: datetime
    note: str


@dataclass(frozen=True, slots=True)
class ShortRun:
    """A run that is paused, or with calls of which nobody knows what they cost.

    A paused one is so at the limit of ``scope``, for its next call needs ``needed_microusd``.
    """

    id: RunId
    number: int
    status: RunStatus
    account: Account
    scope: Scope | None
    needed_microusd: int


async def named(conn: AsyncConnection, tenant: TenantId, name: str) -> list[NamedCharge]:
    """Find the charges whose ids end with these hex digits; two are as good as many."""
    return [
        NamedCharge(
            ReservationId(r.id),
            RunId(r.run_id),
            r.run,
            r.day,
            r.purpose,
            ReservationStatus(r.status),
            r.amount_microusd,
            r.actual_microusd,
            r.deadline_at,
        )
        for r in await run(conn, "charges_by_name", tenant=tenant, name=name)
    ]


async def end_of(conn: AsyncConnection, tenant: TenantId, id_: ReservationId) -> ChargeEnd:
    """Read how a settled or voided charge came to be so."""
    row = (await run(conn, "end_of_charge", tenant=tenant, id=id_)).one()
    return ChargeEnd(PrincipalId(row.actor), row.recorded_at, str(row.detail.get("note") or ""))


async def short_runs(
    conn: AsyncConnection, tenant: TenantId, most: int, requester: PrincipalId | None
) -> Sequence[ShortRun]:
    """Read the runs that lack money or whose charges nobody knows, newest first."""
    rows = await run(conn, "runs_short_of_money", tenant=tenant, requester=requester, most=most)
    return [
        ShortRun(
            RunId(r.id),
            r.number,
            RunStatus(r.status),
            Account(r.limit_microusd, r.spent_microusd, r.held_microusd, r.unknown_microusd),
            None if r.scope is None else Scope(r.scope),
            r.needed_microusd or 0,
        )
        for r in rows
    ]
