"""Approvals and decisions; the pair of ``executor.domain.approval``. They lie under the operation's
lock.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection

from executor.domain.approval import Approval, ApprovalStatus, Vote
from executor.domain.errors import LostRace
from executor.domain.ids import ApprovalId, AttemptId, OperationId, PrincipalId, TenantId
from executor.domain.journal import JournalEntry
from executor.domain.nudge import schedule
from executor.domain.payloads import JsonObject
from executor.domain.terms import Terms
from executor.domain.transition import Transition
from executor.store.journal import as_rows
from executor.store.operations import OperationKey
from executor.store.statements import run


@dataclass(frozen=True, slots=True)
class NewApproval:
    """A request for consent to be opened."""

    tenant_id: TenantId
    approval: Approval
    entry: JournalEntry


@dataclass(frozen=True, slots=True)
class ApprovalMove:
    """One move of one approval; ``after`` is the approval as the decision left it."""

    tenant_id: TenantId
    before: Approval
    after: Approval
    transition: Transition[ApprovalStatus]
    entry: JournalEntry
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """One person's vote, with what that person was shown."""

    tenant_id: TenantId
    approval_id: ApprovalId
    principal: PrincipalId
    vote: Vote
    note: str
    digest: bytes
    content_revision: int
    view_digest: bytes | None
    shown_at: JsonObject
    request_hash: bytes | None
    on_behalf_of: PrincipalId | None = None
    second_factor: bool = False


async def insert(conn: AsyncConnection, approvals: Sequence[NewApproval], now: datetime) -> None:
    """Open approvals; a second live one of an operation: ``DuplicateKey``."""
    opened = [a.approval for a in approvals]
    await run(
        conn,
        "insert_approvals",
        tenants=[a.tenant_id for a in approvals],
        ids=[a.id for a in opened],
        operations=[a.operation_id for a in opened],
        repeats=[a.repeats for a in opened],
        digests=[a.digest for a in opened],
        content_revisions=[a.content_revision for a in opened],
        terms=[json.dumps(a.terms.as_json()) for a in opened],
        now=now,
        entries=as_rows(a.entry for a in approvals),
    )


async def lock(
    conn: AsyncConnection, operations: Iterable[OperationKey]
) -> dict[OperationKey, Approval]:
    """Lock the newest approval of each of these locked operations under which it may act.

    One of a repeat counts only once it is granted; see ``repeats_under_way``.
    """
    wanted = list(operations)
    rows = await run(
        conn,
        "lock_approvals",
        tenants=[tenant for tenant, _ in wanted],
        operations=[id_ for _, id_ in wanted],
    )
    return _by_operation(rows)


async def repeats_under_way(
    conn: AsyncConnection, operations: Iterable[OperationKey]
) -> dict[OperationKey, Approval]:
    """Read the approval of a repeat that each of these locked operations has open or granted."""
    wanted = list(operations)
    rows = await run(
        conn,
        "repeats_under_way",
        tenants=[tenant for tenant, _ in wanted],
        operations=[id_ for _, id_ in wanted],
    )
    return _by_operation(rows)


async def newest_repeat(
    conn: AsyncConnection, tenant: TenantId, operation: OperationId
) -> Row[*tuple[Any, ...]] | None:
    """Read the newest approval of a repeat, if there ever was one; takes no lock."""
    return (await run(conn, "newest_repeat", tenant=tenant, operation=operation)).one_or_none()


async def move(conn: AsyncConnection, moves: Sequence[ApprovalMove]) -> None:
    """Apply moves of locked approvals; any not in its source any more: ``LostRace``."""
    if not moves:
        return
    moved = await run(
        conn,
        "move_approvals",
        tenants=[m.tenant_id for m in moves],
        ids=[m.before.id for m in moves],
        seqs=[m.before.seq for m in moves],
        sources=[m.transition.source.value for m in moves],
        targets=[m.transition.target.value for m in moves],
        use_bys=[m.after.use_by for m in moves],
        ended_ats=[m.ended_at for m in moves],
        entries=as_rows(m.entry for m in moves),
    )
    applied = len(moved.all())
    if applied != len(moves):
        raise LostRace("move_approvals", len(moves) - applied)


async def present(conn: AsyncConnection, shown: Sequence[tuple[TenantId, Approval]]) -> None:
    """Start the time to decide of approvals that are shown now for the first time."""
    if not shown:
        return
    presented = await run(
        conn,
        "present_approvals",
        tenants=[tenant for tenant, _ in shown],
        ids=[approval.id for _, approval in shown],
        presented_ats=[approval.presented_at for _, approval in shown],
        decide_bys=[approval.decide_by for _, approval in shown],
        nudge_ats=[_first_nudge(approval) for _, approval in shown],
    )
    applied = len(presented.all())
    if applied != len(shown):
        raise LostRace("present_approvals", len(shown) - applied)


def _first_nudge(approval: Approval) -> datetime | None:
    assert approval.presented_at is not None, "it is shown now"
    planned = schedule(approval.terms, approval.presented_at)
    return planned[0].due_at if planned else None


async def record_decisions(
    conn: AsyncConnection, decisions: Sequence[Decision], now: datetime
) -> None:
    """Record votes, one a person; a vote that may not replace the earlier one: ``LostRace``."""
    if not decisions:
        return
    put = await run(
        conn,
        "put_decisions",
        tenants=[d.tenant_id for d in decisions],
        approvals=[d.approval_id for d in decisions],
        principals=[d.principal for d in decisions],
        votes=[d.vote.value for d in decisions],
        notes=[d.note for d in decisions],
        digests=[d.digest for d in decisions],
        content_revisions=[d.content_revision for d in decisions],
        view_digests=[d.view_digest for d in decisions],
        shown_ats=[json.dumps(d.shown_at) for d in decisions],
        request_hashes=[d.request_hash for d in decisions],
        behalves=[d.on_behalf_of for d in decisions],
        second_factors=[d.second_factor for d in decisions],
        now=now,
    )
    applied = len(put.all())
    if applied != len(decisions):
        raise LostRace("put_decisions", len(decisions) - applied)


async def decision_of(
    conn: AsyncConnection, tenant: TenantId, approval: ApprovalId, principal: PrincipalId
) -> tuple[Vote, bytes | None] | None:
    """Read a recorded vote and the hash of the request that brought it."""
    row = (
        await run(conn, "decision_of", tenant=tenant, approval=approval, principal=principal)
    ).one_or_none()
    if row is None:
        return None
    return Vote(row.vote), None if row.request_hash is None else bytes(row.request_hash)


async def votes_of(
    conn: AsyncConnection, tenant: TenantId, approval: ApprovalId
) -> Sequence[Row[*tuple[Any, ...]]]:
    """Read all votes on an approval in the order in which they were cast."""
    return (await run(conn, "votes_of", tenant=tenant, approval=approval)).all()


async def past_their_time(conn: AsyncConnection, most: int) -> list[OperationKey]:
    """Find operations whose approval's time to decide, or to use, is over; takes no lock."""
    rows = await run(conn, "approvals_past_their_time", most=most)
    return [(TenantId(row.tenant_id), OperationId(row.operation_id)) for row in rows]


async def remember_requests(
    conn: AsyncConnection, requests: Iterable[tuple[TenantId, bytes]]
) -> set[tuple[TenantId, bytes]]:
    """Keep hashes of signed requests and return those that were not seen before.

    A hash that a transaction under way has inserted is waited for.
    """
    wanted = sorted(set(requests))
    rows = await run(
        conn,
        "remember_requests",
        tenants=[tenant for tenant, _ in wanted],
        hashes=[hash_ for _, hash_ in wanted],
    )
    return {(TenantId(row.tenant_id), bytes(row.request_hash)) for row in rows}


async def forget_requests(conn: AsyncConnection, older_than_seconds: float) -> int:
    """Drop hashes whose signatures are too old to be accepted again; returns how many."""
    dropped = await run(conn, "forget_requests", older_than_seconds=older_than_seconds)
    return dropped.rowcount


def _by_operation(rows: Iterable[Row[*tuple[Any, ...]]]) -> dict[OperationKey, Approval]:
    return {
        (TenantId(row.tenant_id), OperationId(row.operation_id)): Approval(
            ApprovalId(row.id),
            OperationId(row.operation_id),
            ApprovalStatus(row.status),
            bytes(row.digest),
            row.content_revision,
            Terms.from_json(row.terms),
            row.presented_at,
            row.decide_by,
            row.use_by,
            tuple((PrincipalId(who), Vote(vote)) for who, vote, _ in row.votes),
            row.seq,
            None if row.repeats_attempt is None else AttemptId(row.repeats_attempt),
            frozenset(PrincipalId(who) for who, _, factored in row.votes if factored),
        )
        for row in rows
    }
