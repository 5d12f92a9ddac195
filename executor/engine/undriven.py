"""Runs that nobody drives: each holds one operation that no model asked for, and waits for it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from executor.domain import run
from executor.domain.errors import LostRace
from executor.domain.ids import PrincipalId, RunId, TenantId
from executor.domain.journal import Chain
from executor.domain.payloads import JsonObject, digest
from executor.domain.policy import Policy
from executor.domain.run import RunStatus
from executor.domain.transition import Machine, Reason, Transition
from executor.engine import endings
from executor.store import budgets, runs
from executor.store.connection import Connection

ACTOR = "executor"


async def start_waiting(
    conn: Connection,
    chain: Chain,
    policy: Policy,
    key: tuple[TenantId, RunId],
    *,
    goal: str,
    requester: PrincipalId,
    origin: str,
    reply_to: JsonObject | None = None,
) -> None:
    """Start a run and let it wait for its one operation; ``chain`` holds its head.

    Raises ``LostRace`` where ``origin`` has started a run before.
    """
    tenant, run_id = key
    new = runs.NewRun(
        tenant,
        run_id,
        goal,
        requester,
        origin,
        digest({"goal": goal, "requester": requester}),
        reply_to or {},
        policy.version,
        chain.now + timedelta(seconds=policy.run.max_seconds),
        policy.run.max_parked_seconds,
        chain.birth(
            Machine.RUN,
            tenant,
            run_id,
            run_id,
            RunStatus.QUEUED,
            ACTOR,
            {"goal": goal, "origin_key": origin},
        ),
        driven=False,
    )
    if run_id not in await runs.insert_runs(conn, [new], chain.now):
        raise LostRace("insert_runs", 1)
    await budgets.open_run_budgets(conn, {key: policy.budget.run_microusd})
    row = (await runs.lock(conn, [key]))[key]
    await _move(conn, chain, row, run.Claimed(), run.MustWait())


async def complete(
    conn: Connection,
    chain: Chain,
    row: runs.RunRow,
    *,
    failed: Reason | None = None,
    tells: bool = False,
) -> None:
    """End a waiting run whose one operation has ended; one that was stopped is ended elsewhere.

    ``failed`` is why it did not come to what was asked for. What came of it stands on its
    operation's card; with ``tells`` the run says so itself as well.
    """
    if row.status is not RunStatus.WAITING:
        return
    if failed is None:
        await _move(conn, chain, row, run.Claimed(), run.Completed(), tells=tells)
    else:
        await _move(conn, chain, row, run.Stopped(failed, in_doubt=False), tells=tells)


async def _move(
    conn: Connection, chain: Chain, row: runs.RunRow, *events: run.Event, tells: bool = False
) -> None:
    for event in events:
        moved = run.decide(row.status, event)
        assert isinstance(moved, Transition)
        await endings.move_run(conn, row, moved, ACTOR, chain, wants_card=tells)
        row = replace(row, status=moved.target, seq=row.seq + 1)
