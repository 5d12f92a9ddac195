"""Runs and their steps: claimed with SKIP LOCKED, locked by id, moved only from where they are.

The pair of ``executor.domain.run``. Worker paths lock the run by id and compare the epoch under
that lock (``engine``), never in a sub-select.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection

from executor.domain.errors import LostRace
from executor.domain.ids import PrincipalId, RunId, TenantId
from executor.domain.journal import JournalEntry
from executor.domain.payloads import JsonObject
from executor.domain.run import RunStatus
from executor.domain.transition import Reason, Transition
from executor.store.journal import as_rows
from executor.store.statements import run


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run as it is read under its lock; no model works one that is not ``driven``.

    One that waits or is paused ends where it still does so at ``parked_until``.
    """

    tenant_id: TenantId
    id: RunId
    number: int
    seq: int
    status: RunStatus
    goal: str
    requester: PrincipalId
    policy_version: str
    reason: Reason | None
    lease_owner: str | None
    lease_epoch: int
    created_at: datetime
    deadline_at: datetime
    driven: bool
    parked_until: datetime | None = None

    @property
    def key(self) -> tuple[TenantId, RunId]:
        """The run's place in every index."""
        return self.tenant_id, self.id


@dataclass(frozen=True, slots=True)
class NewRun:
    """A run to be queued; ``origin_key`` names what started it, ``reply_to`` is the bot's own.

    One that is not ``driven`` holds an operation that no model asked for, and is never due.
    """

    tenant_id: TenantId
    id: RunId
    goal: str
    requester: PrincipalId
    origin_key: str
    request_digest: bytes
    reply_to: JsonObject
    policy_version: str
    deadline_at: datetime
    max_parked_seconds: int
    entry: JournalEntry
    driven: bool = True


@dataclass(frozen=True, slots=True)
class RunMove:
    """One move of one run; ``due_at`` is when a worker should look again."""

    row: RunRow
    transition: Transition[RunStatus]
    entry: JournalEntry
    due_at: datetime | None = None
    ended_at: datetime | None = None
    summary: str | None = None


@dataclass(frozen=True, slots=True)
class KnownRun:
    """The run that an origin started before."""

    id: RunId
    number: int
    request_digest: bytes


@dataclass(frozen=True, slots=True)
class Step:
    """One recorded turn; ``answers`` names the model step and ordinal that a result belongs to."""

    number: int
    kind: str
    answers: tuple[int, int] | None
    content: JsonObject
    recorded_at: datetime


async def insert_runs(
    conn: AsyncConnection, runs: Sequence[NewRun], now: datetime
) -> dict[RunId, int]:
    """Queue runs and return the numbers of those that are new; a known origin inserts nothing."""
    rows = await run(
        conn,
        "insert_runs",
        tenants=[r.tenant_id for r in runs],
        ids=[r.id for r in runs],
        goals=[r.goal for r in runs],
        requesters=[r.requester for r in runs],
        origin_keys=[r.origin_key for r in runs],
        digests=[r.request_digest for r in runs],
        reply_tos=[json.dumps(r.reply_to) for r in runs],
        policy_versions=[r.policy_version for r in runs],
        deadlines=[r.deadline_at for r in runs],
        drivens=[r.driven for r in runs],
        max_parkeds=[r.max_parked_seconds for r in runs],
        now=now,
        entries=as_rows(r.entry for r in runs),
    )
    return {RunId(row.id): row.number for row in rows}


async def by_origin(
    conn: AsyncConnection, origins: Iterable[tuple[TenantId, str]]
) -> dict[tuple[TenantId, str], KnownRun]:
    """Find the runs that these origins started."""
    wanted = list(origins)
    rows = await run(
        conn,
        "runs_by_origin",
        tenants=[tenant for tenant, _ in wanted],
        origin_keys=[origin for _, origin in wanted],
    )
    return {
        (TenantId(row.tenant_id), row.origin_key): KnownRun(
            RunId(row.id), row.number, bytes(row.request_digest)
        )
        for row in rows
    }


async def claim_due(conn: AsyncConnection, tenants: Sequence[TenantId], most: int) -> list[RunRow]:
    """Lock at most ``most`` runs whose time has come, of ``tenants`` in turn, skipping what others
    hold.

    The caller has the turns of ``tenants``, without which the places at work are not its to give.
    """
    rows = await run(conn, "due_runs", tenants=list(tenants), most=most)
    return [_row(row) for row in rows]


async def lock(
    conn: AsyncConnection, keys: Iterable[tuple[TenantId, RunId]]
) -> dict[tuple[TenantId, RunId], RunRow]:
    """Lock runs by id, in order; unknown ones are absent."""
    wanted = sorted(set(keys), key=lambda key: (key[0], key[1].int))
    rows = await run(
        conn,
        "lock_runs",
        tenants=[tenant for tenant, _ in wanted],
        ids=[id_ for _, id_ in wanted],
    )
    locked = [_row(row) for row in rows]
    return {row.key: row for row in locked}


async def lease(
    conn: AsyncConnection,
    rows: Sequence[tuple[RunRow, JournalEntry | None]],
    *,
    owner: str,
    until: datetime,
) -> dict[tuple[TenantId, RunId], tuple[int, int]]:
    """Give locked runs to ``owner``; returns their new epochs, and how often in a row they were
    taken over from somebody who recorded nothing.

    An entry comes with each run that was not running yet.
    """
    taken = await run(
        conn,
        "lease_runs",
        tenants=[row.tenant_id for row, _ in rows],
        ids=[row.id for row, _ in rows],
        sources=[row.status.value for row, _ in rows],
        seqs=[row.seq + (entry is not None) for row, entry in rows],
        owner=owner,
        until=until,
        entries=as_rows(entry for _, entry in rows if entry is not None),
    )
    epochs = {
        (TenantId(t.tenant_id), RunId(t.id)): (int(t.lease_epoch), int(t.takeovers)) for t in taken
    }
    if len(epochs) != len(rows):
        raise LostRace("lease_runs", len(rows) - len(epochs))
    return epochs


async def move(conn: AsyncConnection, moves: Sequence[RunMove]) -> None:
    """Apply moves of locked runs; any that is not in its source any more: ``LostRace``."""
    if not moves:
        return
    moved = await run(
        conn,
        "move_runs",
        tenants=[m.row.tenant_id for m in moves],
        ids=[m.row.id for m in moves],
        seqs=[m.row.seq for m in moves],
        sources=[m.transition.source.value for m in moves],
        targets=[m.transition.target.value for m in moves],
        reasons=[m.transition.reason and m.transition.reason.value for m in moves],
        summaries=[m.summary for m in moves],
        due_ats=[m.due_at for m in moves],
        ended_ats=[m.ended_at for m in moves],
        entries=as_rows(m.entry for m in moves),
    )
    applied = len(moved.all())
    if applied != len(moves):
        raise LostRace("move_runs", len(moves) - applied)


async def renew(
    conn: AsyncConnection, key: tuple[TenantId, RunId], *, owner: str, epoch: int, until: datetime
) -> bool:
    """Prolong a lease; ``False`` means that it is no longer ours."""
    renewed = await run(
        conn, "renew_run_lease", tenant=key[0], id=key[1], owner=owner, epoch=epoch, until=until
    )
    return renewed.one_or_none() is not None


async def hand_back(
    conn: AsyncConnection, key: tuple[TenantId, RunId], *, owner: str, epoch: int, due_at: datetime
) -> bool:
    """Give up a lease so that the run is due at ``due_at``; ``False``: it was not ours any more."""
    back = await run(
        conn, "hand_back_run", tenant=key[0], id=key[1], owner=owner, epoch=epoch, due_at=due_at
    )
    return back.one_or_none() is not None


async def make_due(
    conn: AsyncConnection, keys: Iterable[tuple[TenantId, RunId]], now: datetime
) -> int:
    """Let workers look at these runs now; returns how many were waiting or paused."""
    wanted = list(keys)
    due = await run(
        conn,
        "make_runs_due",
        tenants=[tenant for tenant, _ in wanted],
        ids=[id_ for _, id_ in wanted],
        now=now,
    )
    return len(due.all())


async def past_deadline(conn: AsyncConnection, most: int) -> list[tuple[TenantId, RunId]]:
    """Find runs whose wall time is over."""
    rows = await run(conn, "runs_past_their_deadline", most=most)
    return [(TenantId(row.tenant_id), RunId(row.id)) for row in rows]


async def parked_too_long(conn: AsyncConnection, most: int) -> list[tuple[TenantId, RunId]]:
    """Find runs that nobody and nothing has woken in their time."""
    rows = await run(conn, "runs_parked_too_long", most=most)
    return [(TenantId(row.tenant_id), RunId(row.id)) for row in rows]


async def find(conn: AsyncConnection, tenant: TenantId, number: int) -> RunId | None:
    """Find one tenant's run by the number that people use."""
    row = (await run(conn, "run_by_number", tenant=tenant, number=number)).one_or_none()
    return None if row is None else RunId(row.id)


async def show_newest(
    conn: AsyncConnection, tenant: TenantId, most: int
) -> Sequence[Row[*tuple[Any, ...]]]:
    """Read one tenant's newest runs."""
    return (await run(conn, "show_runs", tenant=tenant, most=most)).all()


async def show(conn: AsyncConnection, tenant: TenantId, id_: RunId) -> Row[*tuple[Any, ...]] | None:
    """Read one run."""
    return (await run(conn, "show_run", tenant=tenant, id=id_)).one_or_none()


async def record_step(
    conn: AsyncConnection,
    key: tuple[TenantId, RunId],
    step: Step,
) -> None:
    """Record one turn under the run's lock; a number or an answer given twice: ``DuplicateKey``."""
    await run(
        conn,
        "insert_step",
        tenant=key[0],
        run=key[1],
        number=step.number,
        kind=step.kind,
        answers_step=step.answers and step.answers[0],
        answers_ordinal=step.answers and step.answers[1],
        content=json.dumps(step.content),
        now=step.recorded_at,
    )


async def read_steps(conn: AsyncConnection, key: tuple[TenantId, RunId]) -> list[Step]:
    """Read a run's recorded turns in order."""
    rows = await run(conn, "read_steps", tenant=key[0], run=key[1])
    return [
        Step(
            row.number,
            row.kind,
            None if row.answers_step is None else (row.answers_step, row.answers_ordinal),
            row.content,
            row.recorded_at,
        )
        for row in rows
    ]


def _row(row: Row[*tuple[Any, ...]]) -> RunRow:
    return RunRow(
        TenantId(row.tenant_id),
        RunId(row.id),
        row.number,
        row.seq,
        RunStatus(row.status),
        row.goal,
        PrincipalId(row.requester),
        row.policy_version,
        None if row.reason is None else Reason(row.reason),
        row.lease_owner,
        row.lease_epoch,
        row.created_at,
        row.deadline_at,
        row.driven,
        row.parked_until,
    )
