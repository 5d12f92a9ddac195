"""What people ask about runs; reading changes nothing and keeps nothing alive."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from executor.domain.ids import OperationId, PrincipalId, RunId, TenantId
from executor.domain.journal import Break, JournalEntry, verify
from executor.domain.operation import OperationStatus
from executor.domain.run import RunStatus
from executor.domain.transition import Reason
from executor.engine.engine import Engine
from executor.store import card_records, clock, journal, operations, runs
from executor.store.card_records import AnyRow
from executor.store.runs import Step

NEWEST = 10


@dataclass(frozen=True, slots=True)
class RunStatusLine:
    """One run as a person asks for it; ``operations`` are numbers with their statuses.

    One that is not ``driven`` only holds an operation, for as long as people need to decide it.
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


async def newest_runs(engine: Engine, tenant: TenantId) -> list[RunStatusLine]:
    """Read one tenant's newest runs. Opens its own transaction."""
    async with engine.database.transaction() as conn:
        rows = await runs.show_newest(conn, tenant, NEWEST)
        mine = await operations.of_runs(conn, [(tenant, RunId(row.id)) for row in rows])
    return [
        _line(row, tuple((number, status) for _, _, run, number, status in mine if run == row.id))
        for row in rows
    ]


async def one_run(engine: Engine, tenant: TenantId, number: int) -> RunStatusLine | None:
    """Read one tenant's run by its number; another tenant's is as unknown as none."""
    async with engine.database.transaction() as conn:
        run_id = await runs.find(conn, tenant, number)
        if run_id is None:
            return None
        row = await runs.show(conn, tenant, run_id)
        mine = await operations.of_runs(conn, [(tenant, run_id)])
    assert row is not None
    return _line(row, tuple((number_, status) for *_, number_, status in mine))


def _line(row: AnyRow, mine: tuple[tuple[int, OperationStatus], ...]) -> RunStatusLine:
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
    )


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
