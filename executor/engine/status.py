"""What people ask about runs; reading changes nothing and keeps nothing alive."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from executor.domain.ids import OperationId, PrincipalId, RunId, TenantId
from executor.domain.journal import Break, JournalEntry, verify
from executor.domain.operation import OperationStatus
from executor.domain.run import RunStatus
from executor.domain.transition import Reason
from executor.engine.engine import Engine
from executor.store import (
    admission,
    card_records,
    clock,
    journal,
    operation_lookups,
    runs,
)
from executor.store.card_records import AnyRow
from executor.store.connection import Connection
from executor.store.runs import Step

NEWEST = 10


@dataclass(frozen=True, slots=True)
class RunStatusLine:
    """One run as a person asks for it; ``operations`` are numbers with their statuses.

    One that is not ``driven`` only holds an operation, for as long as people need to decide it.
    ``at_work`` counts what has all the places where this run waits for one.
    """

    id: RunId
    number: int
    status: RunStatus
    goal: str
    requester: PrincipalId
    reason: Reason | None
    summary: str
    created_at: datetime
    ended_at: datetime | None
    operations: tuple[tuple[int, OperationStatus], ...]
    driven: bool
    at_work: int | None = None


async def newest_runs(engine: Engine, tenant: TenantId) -> list[RunStatusLine]:
    """Read one tenant's newest runs. Opens its own transaction."""
    async with engine.database.transaction() as conn:
        rows = await runs.show_newest(conn, tenant, NEWEST)
        mine = await operation_lookups.of_runs(conn, [(tenant, RunId(row.id)) for row in rows])
        at_work = await runs_in_the_way(conn, tenant, (row.status for row in rows))
    return [
        _line(
            row,
            tuple((number, status) for _, _, run, number, status in mine if run == row.id),
            at_work,
        )
        for row in rows
    ]


async def runs_in_the_way(
    conn: Connection, tenant: TenantId, statuses: Iterable[str]
) -> int | None:
    """Count what is at work, where a run in one of these statuses waits because of it."""
    if RunStatus.QUEUED not in statuses:
        return None
    places = await admission.count_places(conn, tenant)
    return places.at_work if places is not None and places.is_full else None


async def one_run(engine: Engine, tenant: TenantId, number: int) -> RunStatusLine | None:
    """Read one tenant's run by its number; another tenant's is as unknown as none."""
    async with engine.database.transaction() as conn:
        run_id = await runs.find(conn, tenant, number)
        if run_id is None:
            return None
        row = await runs.show(conn, tenant, run_id)
        mine = await operation_lookups.of_runs(conn, [(tenant, run_id)])
        assert row is not None
        at_work = await runs_in_the_way(conn, tenant, [row.status])
    return _line(row, tuple((number_, status) for *_, number_, status in mine), at_work)


def _line(
    row: AnyRow, mine: tuple[tuple[int, OperationStatus], ...], at_work: int | None
) -> RunStatusLine:
    return RunStatusLine(
        RunId(row.id),
        row.number,
        RunStatus(row.status),
        row.goal,
        PrincipalId(row.requester),
        None if row.reason is None else Reason(row.reason),
        row.summary or "",
        row.created_at,
        row.ended_at,
        mine,
        row.driven,
        at_work if row.status == RunStatus.QUEUED else None,
    )


@dataclass(frozen=True, slots=True)
class RunLoad:
    """How many runs of a tenant wait to begin, how many are at work, and how many may be."""

    queued: int
    at_work: int
    most_at_work: int


async def run_load(engine: Engine, tenant: TenantId) -> RunLoad | None:
    """Count one tenant's runs; ``None`` where no policy is active. Opens its own transaction."""
    async with engine.database.transaction() as conn:
        places = await admission.count_places(conn, tenant)
        if places is None:
            return None
        return RunLoad(await admission.count_queue(conn, tenant), places.at_work, places.most)


@dataclass(frozen=True, slots=True)
class RunHistory:
    """Everything recorded of one run, and the first place where its chain does not hold."""

    steps: tuple[Step, ...]
    journal: tuple[JournalEntry, ...]
    broken: Break | None


async def history(engine: Engine, tenant: TenantId, run_id: RunId) -> RunHistory:
    """Read a run's steps and journal and compute its chain again. Opens its own transaction."""
    async with engine.database.transaction() as conn:
        steps = await runs.read_steps(conn, (tenant, run_id))
        entries, head = await journal.read_chain(conn, tenant, run_id)
    return RunHistory(tuple(steps), tuple(entry for entry, _ in entries), verify(entries, head))


async def operation_by_number(engine: Engine, tenant: TenantId, number: int) -> OperationId | None:
    """Find one tenant's operation by its number. Opens its own transaction."""
    async with engine.database.transaction() as conn:
        return await card_records.by_number(conn, tenant, number)


async def database_time(engine: Engine) -> datetime:
    """Read the database's clock, to compare this host's with. Opens its own transaction."""
    async with engine.database.transaction() as conn:
        return await clock.now(conn)
