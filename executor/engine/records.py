"""Reads the records that cards are drawn from; what a card says is read at one moment."""

from __future__ import annotations

import json
from uuid import UUID

from executor.domain.approval import ApprovalStatus, Vote
from executor.domain.effect import AttemptStatus, Capability, EffectKind, EffectStatus
from executor.domain.ids import ApprovalId, OperationId, PrincipalId, RunId, TenantId
from executor.domain.operation import OperationStatus
from executor.domain.run import RunStatus
from executor.domain.ticket import Ticket
from executor.domain.transition import Reason
from executor.engine.card_record import (
    ApprovalRecord,
    AttemptRecord,
    CardRecord,
    EffectRecord,
    OperationRecord,
    RunRecord,
    TicketRecord,
    VoteRecord,
)
from executor.engine.promises import promise
from executor.store import approvals, card_records, desk, operations, proposals, runs
from executor.store.card_records import AnyRow
from executor.store.cards import SubjectKind
from executor.store.connection import Connection

RECENT_CHANGES = 3


async def read_record(
    conn: Connection, tenant: TenantId, subject: UUID, kind: SubjectKind
) -> CardRecord:
    """Read what one card shows, inside the caller's transaction."""
    if kind is SubjectKind.RUN:
        return await read_run(conn, tenant, RunId(subject))
    return await read_operation(conn, tenant, OperationId(subject))


async def read_operation(conn: Connection, tenant: TenantId, id_: OperationId) -> OperationRecord:
    """Read everything that an operation's card may say."""
    row = await card_records.operation(conn, tenant, id_)
    assert row is not None, "a card's operation exists"
    intent = json.loads(row.intent)
    key = (tenant, id_)
    asked = (await proposals.requesters_of(conn, [key])).get(key, [])
    votes = await approvals.votes_of(conn, tenant, ApprovalId(row.approval_id))
    ticket = await desk.read_ticket(conn, tenant, row.ticket_id)
    return OperationRecord(
        tenant_id=tenant,
        id=id_,
        number=row.number,
        run_number=row.run_number,
        goal=row.goal,
        status=OperationStatus(row.status),
        reason=None if row.reason is None else Reason(row.reason),
        detail=row.detail,
        requester=PrincipalId(row.requester),
        linked_requesters=tuple(who for who, linked in asked if linked),
        digest=bytes(row.digest),
        content_revision=row.content_revision,
        policy_version=row.policy_version,
        why=_why(row.quorum),
        ticket=_ticket(row, intent["ticket"]["subject"], ticket),
        email=next(e["email"] for e in intent["effects"] if "email" in e),
        effects=await _effects(conn, tenant, id_),
        approval=ApprovalRecord(
            ApprovalId(row.approval_id),
            ApprovalStatus(row.approval_status),
            row.quorum,
            tuple(
                VoteRecord(PrincipalId(v.principal), Vote(v.vote), v.note, v.decided_at)
                for v in votes
            ),
            row.decide_within_seconds,
            row.decide_by,
            row.use_by,
        ),
        created_at=row.created_at,
        opened_at=row.opened_at,
        ended_at=row.ended_at,
    )


def _why(quorum: int) -> str:
    people = "one person" if quorum == 1 else f"{quorum} people"
    return f"The policy asks {people} to approve everything that reaches a customer."


def _ticket(row: AnyRow, subject: str, ticket: Ticket | None) -> TicketRecord:
    changes = ticket.changes if ticket is not None else ()
    before = tuple(c for c in changes if c.version <= row.ticket_version)
    # What our own close changed is not a change that the reviewer has to be told of.
    since = tuple(c for c in changes if c.version > row.ticket_version and c.version != _ours(row))
    return TicketRecord(
        row.desk,
        row.ticket_id,
        subject,
        row.ticket_version,
        before[-RECENT_CHANGES:],
        None if ticket is None else ticket.version,
        None if ticket is None else ticket.status,
        since,
    )


def _ours(row: AnyRow) -> int | None:
    return int(row.ticket_version) + 1 if row.opened_at is not None else None


async def _effects(
    conn: Connection, tenant: TenantId, id_: OperationId
) -> tuple[EffectRecord, ...]:
    tries: dict[UUID, list[AttemptRecord]] = {}
    for t in await card_records.attempts(conn, tenant, id_):
        tries.setdefault(t.effect_id, []).append(
            AttemptRecord(
                t.number,
                AttemptStatus(t.status),
                t.evidence,
                t.opened_at,
                t.conclude_at,
                t.reported_at,
            )
        )
    return tuple(
        EffectRecord(
            EffectKind(e.kind),
            EffectStatus(e.status),
            e.provider,
            Capability(e.capability),
            promise(EffectKind(e.kind), Capability(e.capability)),
            tuple(tries.get(e.id, ())),
        )
        for e in await card_records.effects(conn, tenant, id_)
    )


async def read_run(conn: Connection, tenant: TenantId, id_: RunId) -> RunRecord:
    """Read everything that a run's own card may say."""
    row = await runs.show(conn, tenant, id_)
    assert row is not None, "a card's run exists"
    mine = await operations.of_runs(conn, [(tenant, id_)])
    return RunRecord(
        tenant,
        id_,
        row.number,
        row.goal,
        RunStatus(row.status),
        None if row.reason is None else Reason(row.reason),
        row.summary or "",
        PrincipalId(row.requester),
        tuple((number, status) for *_, number, status in mine),
        row.created_at,
        row.ended_at,
    )
