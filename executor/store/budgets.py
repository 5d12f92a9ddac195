"""Money: accounts of runs and tenant-days under lock, and the reservations that hold from them.

The pair of ``executor.domain.budget``. Lock order: reservations, run budgets, tenant-days.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from sqlalchemy.ext.asyncio import AsyncConnection

from executor.domain.budget import Account, ReservationStatus
from executor.domain.effect import AttemptStatus
from executor.domain.errors import LostRace
from executor.domain.ids import AttemptId, ReservationId, RunId, TenantId
from executor.domain.journal import JournalEntry
from executor.domain.transition import Transition
from executor.store.journal import as_rows
from executor.store.statements import run

RunKey = tuple[TenantId, RunId]
DayKey = tuple[TenantId, date]
ReservationKey = tuple[TenantId, ReservationId]


@dataclass(frozen=True, slots=True)
class NewReservation:
    """Money to be held before one call."""

    tenant_id: TenantId
    id: ReservationId
    run_id: RunId
    day: date
    purpose: str
    amount_microusd: int
    deadline_at: datetime
    entry: JournalEntry
    attempt_id: AttemptId | None = None


@dataclass(frozen=True, slots=True)
class ReservationRow:
    """A reservation as it is read under its lock."""

    tenant_id: TenantId
    id: ReservationId
    seq: int
    status: ReservationStatus
    run_id: RunId
    day: date
    amount_microusd: int


@dataclass(frozen=True, slots=True)
class ReservationMove:
    """What became of one reservation."""

    row: ReservationRow
    transition: Transition[ReservationStatus]
    actual_microusd: int | None
    entry: JournalEntry


@dataclass(frozen=True, slots=True)
class Change:
    """What is added to an account; ``held`` and ``unknown`` are negative where it is released."""

    spent: int = 0
    held: int = 0
    unknown: int = 0


@dataclass(frozen=True, slots=True)
class UnknownCharge:
    """A call that is over, of which nobody has told what it cost; its whole amount stays held.

    ``model``, ``request_digest`` and ``response_id`` are those of a model's call, else ``None``.
    """

    id: ReservationId
    run_id: RunId
    run: int
    day: date
    purpose: str
    amount_microusd: int
    reserved_at: datetime
    deadline_at: datetime
    model: str | None
    request_digest: bytes | None
    response_id: str | None


async def open_run_budgets(conn: AsyncConnection, limits: Mapping[RunKey, int]) -> None:
    """Give runs that were queued in this transaction what they may spend in all."""
    await run(
        conn,
        "open_run_budgets",
        tenants=[tenant for tenant, _ in limits],
        runs=[id_ for _, id_ in limits],
        limits=list(limits.values()),
    )


async def lock_run_budgets(conn: AsyncConnection, keys: Iterable[RunKey]) -> dict[RunKey, Account]:
    """Lock the accounts of runs, in order."""
    wanted = list(keys)
    rows = await run(
        conn,
        "lock_run_budgets",
        tenants=[tenant for tenant, _ in wanted],
        runs=[id_ for _, id_ in wanted],
    )
    return {
        (TenantId(r.tenant_id), RunId(r.run_id)): Account(
            r.limit_microusd, r.spent_microusd, r.held_microusd, r.unknown_microusd
        )
        for r in rows
    }


async def lock_tenant_days(
    conn: AsyncConnection, limits: Mapping[DayKey, int]
) -> dict[DayKey, Account]:
    """Lock the accounts of days, in order; ``limits`` are the active policy's, without raises."""
    keys = sorted(limits)
    await run(
        conn,
        "open_tenant_days",
        tenants=[tenant for tenant, _ in keys],
        days=[day for _, day in keys],
    )
    rows = await run(
        conn,
        "lock_tenant_days",
        tenants=[tenant for tenant, _ in keys],
        days=[day for _, day in keys],
    )
    return {
        (TenantId(r.tenant_id), r.day): Account(
            limits[TenantId(r.tenant_id), r.day] + r.raised_microusd,
            r.spent_microusd,
            r.held_microusd,
            r.unknown_microusd,
        )
        for r in rows
    }


async def insert(
    conn: AsyncConnection, reservations: Sequence[NewReservation], now: datetime
) -> None:
    """Hold money; the accounts are changed by ``add``."""
    if not reservations:
        return
    await run(
        conn,
        "insert_reservations",
        tenants=[r.tenant_id for r in reservations],
        ids=[r.id for r in reservations],
        runs=[r.run_id for r in reservations],
        days=[r.day for r in reservations],
        purposes=[r.purpose for r in reservations],
        amounts=[r.amount_microusd for r in reservations],
        deadlines=[r.deadline_at for r in reservations],
        attempts=[r.attempt_id for r in reservations],
        now=now,
        entries=as_rows(r.entry for r in reservations),
    )


async def lock(
    conn: AsyncConnection, keys: Iterable[ReservationKey]
) -> dict[ReservationKey, ReservationRow]:
    """Lock reservations by id, in order."""
    wanted = list(keys)
    rows = await run(
        conn,
        "lock_reservations",
        tenants=[tenant for tenant, _ in wanted],
        ids=[id_ for _, id_ in wanted],
    )
    return {
        (TenantId(r.tenant_id), ReservationId(r.id)): ReservationRow(
            TenantId(r.tenant_id),
            ReservationId(r.id),
            r.seq,
            ReservationStatus(r.status),
            RunId(r.run_id),
            r.day,
            r.amount_microusd,
        )
        for r in rows
    }


async def move(conn: AsyncConnection, moves: Sequence[ReservationMove]) -> None:
    """Apply moves of locked reservations; any not in its source any more: ``LostRace``."""
    if not moves:
        return
    moved = await run(
        conn,
        "move_reservations",
        tenants=[m.row.tenant_id for m in moves],
        ids=[m.row.id for m in moves],
        seqs=[m.row.seq for m in moves],
        sources=[m.transition.source.value for m in moves],
        targets=[m.transition.target.value for m in moves],
        actuals=[m.actual_microusd for m in moves],
        entries=as_rows(m.entry for m in moves),
    )
    applied = len(moved.all())
    if applied != len(moves):
        raise LostRace("move_reservations", len(moves) - applied)


async def add(
    conn: AsyncConnection, runs: Mapping[RunKey, Change], days: Mapping[DayKey, Change]
) -> None:
    """Change the accounts of locked runs and days."""
    await run(
        conn,
        "add_to_run_budgets",
        tenants=[tenant for tenant, _ in runs],
        runs=[id_ for _, id_ in runs],
        spent=[change.spent for change in runs.values()],
        held=[change.held for change in runs.values()],
        unknown=[change.unknown for change in runs.values()],
    )
    await run(
        conn,
        "add_to_tenant_days",
        tenants=[tenant for tenant, _ in days],
        days=[day for _, day in days],
        spent=[change.spent for change in days.values()],
        held=[change.held for change in days.values()],
        unknown=[change.unknown for change in days.values()],
    )


async def past_deadline(conn: AsyncConnection, most: int) -> list[ReservationKey]:
    """Find held reservations whose call must be over; takes no lock."""
    rows = await run(conn, "reservations_past_their_deadline", most=most)
    return [(TenantId(r.tenant_id), ReservationId(r.id)) for r in rows]


async def of_concluded_attempts(
    conn: AsyncConnection, word: str, most: int
) -> list[tuple[ReservationKey, int, AttemptStatus]]:
    """Find what is held for attempts that were applied, or are proved not to be; takes no lock.

    ``word`` is the evidence by which somebody only says that one was not applied.
    """
    rows = await run(conn, "reservations_of_concluded_attempts", word=word, most=most)
    return [
        ((TenantId(r.tenant_id), ReservationId(r.id)), r.amount_microusd, AttemptStatus(r.status))
        for r in rows
    ]


async def raise_run(
    conn: AsyncConnection, tenant: TenantId, run_id: RunId, *, from_limit: int, to_limit: int
) -> bool:
    """Let a run spend ``to_limit`` in all; ``False``: its limit is not ``from_limit`` any more."""
    raised = await run(
        conn,
        "raise_run_limit",
        tenant=tenant,
        run=run_id,
        from_limit=from_limit,
        to_limit=to_limit,
    )
    return raised.one_or_none() is not None


async def raise_day(conn: AsyncConnection, tenant: TenantId, day: date, by: int) -> None:
    """Let a tenant spend so much more on one day; two raises are both added."""
    await run(conn, "raise_day_limit", tenant=tenant, day=day, by=by)


async def account_of_run(conn: AsyncConnection, tenant: TenantId, run_id: RunId) -> Account | None:
    """Read the account of a run; takes no lock."""
    row = (await run(conn, "account_of_run", tenant=tenant, run=run_id)).one_or_none()
    return None if row is None else Account(*row)


async def account_of_day(
    conn: AsyncConnection, tenant: TenantId, day: date, policy_limit: int
) -> Account:
    """Read the account of a day, on which nothing may have happened yet; takes no lock."""
    row = (await run(conn, "account_of_day", tenant=tenant, day=day)).one_or_none()
    if row is None:
        return Account(policy_limit, 0, 0)
    raised, *used = row
    return Account(policy_limit + raised, *used)


async def unknown_charges(
    conn: AsyncConnection,
    tenant: TenantId,
    run_id: RunId | None = None,
    day: date | None = None,
    most: int = 100,
) -> list[UnknownCharge]:
    """Read calls of which nobody knows what they cost, oldest first; takes no lock."""
    rows = await run(conn, "unknown_charges", tenant=tenant, run=run_id, day=day, most=most)
    return [
        UnknownCharge(
            ReservationId(r.id),
            RunId(r.run_id),
            r.run,
            r.day,
            r.purpose,
            r.amount_microusd,
            r.reserved_at,
            r.deadline_at,
            r.model,
            None if r.request_digest is None else bytes(r.request_digest),
            r.response_id,
        )
        for r in rows
    ]
