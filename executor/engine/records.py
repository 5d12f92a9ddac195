"""Reads the records that cards are drawn from; what a card says is read at one moment."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from executor.domain.approval import ApprovalStatus, Vote
from executor.domain.effect import AttemptStatus, Capability, EffectKind, EffectStatus
from executor.domain.grant import Resource
from executor.domain.ids import (
    ApprovalId,
    AttemptId,
    EffectId,
    OperationId,
    PrincipalId,
    RunId,
    TenantId,
    desk_marker,
    is_policy,
)
from executor.domain.intent import REOPEN_TICKET
from executor.domain.operation import OperationStatus
from executor.domain.payloads import JsonValue
from executor.domain.risk import RiskFacts
from executor.domain.run import RunStatus
from executor.domain.terms import Terms, terms_for
from executor.domain.ticket import BUILTIN_DESK, Ticket, TicketChange
from executor.domain.transition import Reason
from executor.engine.card_record import (
    ApprovalRecord,
    AttemptRecord,
    CardRecord,
    DeliveryRecord,
    DoubtRecord,
    EffectRecord,
    OperationRecord,
    ReopeningRecord,
    RunRecord,
    TicketRecord,
    UndoneRecord,
    VoteRecord,
    WordRecord,
)
from executor.engine.lacking_votes import lacking_votes
from executor.engine.nudge_record import read_nudge
from executor.engine.progress_record import NO_PROGRESS, read_progress
from executor.engine.question_record import questions_about, read_question
from executor.engine.request_record import read_request, request_of_run
from executor.engine.revalidation import requester_objection
from executor.engine.revision_record import asked_again_by, email_of, previous_of, successor_of
from executor.engine.rights import read_rights
from executor.engine.sending_again import Circumstances, objection_to_repeating
from executor.engine.word import WORD_GIVEN, Said
from executor.store import (
    agent_requests,
    approvals,
    card_records,
    clock,
    compensations,
    desk,
    late_evidence,
    operations,
    outside_tickets,
    proposals,
    runs,
    tenants,
)
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
    if kind is SubjectKind.QUESTION:
        return await read_question(conn, tenant, subject)
    if kind is SubjectKind.NUDGE:
        return await read_nudge(conn, tenant, subject)
    if kind is SubjectKind.REQUEST:
        return await read_request(conn, tenant, subject)
    return await read_operation(conn, tenant, OperationId(subject))


async def read_operation(conn: Connection, tenant: TenantId, id_: OperationId) -> OperationRecord:
    """Read everything that an operation's card may say."""
    row = await card_records.operation(conn, tenant, id_)
    assert row is not None, "a card's operation exists"
    intent = json.loads(row.intent)
    key = (tenant, id_)
    asked = (await proposals.requesters_of(conn, [key])).get(key, [])
    votes = await approvals.votes_of(conn, tenant, ApprovalId(row.approval_id))
    if row.desk == BUILTIN_DESK:
        ticket = await desk.read_ticket(conn, tenant, row.ticket_id)
    else:
        ticket = await outside_tickets.read(conn, tenant, row.desk, row.ticket_id)
    tries = await card_records.attempts(conn, tenant, id_)
    parts = await card_records.effects(conn, tenant, id_)
    previous = await previous_of(conn, key, row)
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
        why=_why(row.kind, Terms.from_json(row.terms), votes),
        ticket=_ticket(row, intent["ticket"]["subject"], ticket, parts),
        email=email_of(intent),
        effects=_effects(parts, tries),
        words=await _words(conn, tenant, row, tries),
        doubt=await _doubt(conn, tenant, row, ticket, parts, tries),
        approval=ApprovalRecord(
            ApprovalId(row.approval_id),
            ApprovalStatus(row.approval_status),
            Terms.from_json(row.terms),
            _votes(votes),
            row.decide_by,
            row.use_by,
            await lacking_votes(conn, tenant, row, asked, votes),
        ),
        created_at=row.created_at,
        opened_at=row.opened_at,
        ended_at=row.ended_at,
        desk_problem=row.desk_problem,
        deliveries=await _deliveries(conn, tenant, id_),
        undoes=_undone(intent),
        reopening=await _reopening(conn, tenant, id_),
        risks=RiskFacts.from_json(row.risks),
        editor=None if row.editor is None else PrincipalId(row.editor),
        previous=previous,
        successor=await successor_of(conn, key, row),
        asked_again_by=asked_again_by(row, previous, asked),
        questions=await questions_about(conn, tenant, id_, row.number),
        agents=await agent_requests.agents_among(
            conn, tenant, [PrincipalId(row.requester), *(who for who, _ in asked)]
        ),
    )


def _why(kind: str, terms: Terms, votes: Sequence[AnyRow]) -> str:
    if kind == REOPEN_TICKET and any(is_policy(PrincipalId(v.principal)) for v in votes):
        return "The policy itself consents to opening a ticket again whose email was not sent."
    if terms.asks_nobody:
        return "The policy asks nobody to approve this; what it does was checked all the same."
    quorum = terms.quorum
    people = "one person" if quorum == 1 else f"{quorum} people"
    if kind == REOPEN_TICKET:
        return f"The policy asks {people} what becomes of a ticket whose email was not sent."
    return f"The policy asks {people} to approve everything that reaches a customer."


def _undone(intent: dict[str, Any]) -> UndoneRecord | None:
    undone = intent.get("undoes")
    if undone is None:
        return None
    mail, reason = undone["mail_not_sent"], undone["mail_not_sent"]["reason"]
    return UndoneRecord(
        undone["number"],
        tuple(mail["to"]),
        mail["subject"],
        None if reason is None else Reason(reason),
        next(part["note"] for part in intent["effects"] if "note" in part),
    )


async def _reopening(
    conn: Connection, tenant: TenantId, id_: OperationId
) -> ReopeningRecord | None:
    row = await compensations.show_reopening(conn, tenant, id_)
    if row is None:
        return None
    return ReopeningRecord(row.number, OperationStatus(row.status), row.decide_by)


def _ticket(
    row: AnyRow, subject: str, ticket: Ticket | None, parts: Sequence[AnyRow]
) -> TicketRecord:
    changes = ticket.changes if ticket is not None else ()
    before = tuple(c for c in changes if c.version <= row.ticket_version)
    # What our own close changed is not a change that the reviewer has to be told of.
    since = tuple(
        c for c in changes if c.version > row.ticket_version and not _is_ours(c, row, parts)
    )
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


def _is_ours(change: TicketChange, row: AnyRow, parts: Sequence[AnyRow]) -> bool:
    """Tell our own change: an outside desk shows our marker with it."""
    if row.desk == BUILTIN_DESK:
        return row.opened_at is not None and change.version == row.ticket_version + 1
    return any(desk_marker(EffectId(part.id)) in change.body for part in parts)


async def _words(
    conn: Connection, tenant: TenantId, row: AnyRow, tries: Sequence[AnyRow]
) -> tuple[WordRecord, ...]:
    """Read what people said about the attempts; the journal keeps every word of it."""
    if not tries:
        return ()
    notes = await card_records.words(
        conn, tenant, RunId(row.run_id), WORD_GIVEN, [t.id for t in tries]
    )
    return tuple(
        WordRecord(
            PrincipalId(note.actor),
            Said(note.detail["said"]),
            str(note.detail.get("note", "")),
            note.recorded_at,
            EffectKind(note.detail["effect"]),
            int(note.detail.get("still_needed", 0)),
        )
        for note in notes
    )


async def _doubt(
    conn: Connection,
    tenant: TenantId,
    row: AnyRow,
    ticket: Ticket | None,
    parts: Sequence[AnyRow],
    tries: Sequence[AnyRow],
) -> DoubtRecord | None:
    """Say what a person may settle; while a machine will look again, it is asked first."""
    unknown = [p.id for p in parts if p.status == EffectStatus.UNKNOWN]
    if row.status != OperationStatus.UNKNOWN or not unknown:
        return None
    if any(t.recover_at is not None for t in tries if t.status == AttemptStatus.UNKNOWN):
        return None
    newest = [t for t in tries if t.effect_id == unknown[0]][-1]
    policy = (await tenants.share_policies(conn, [tenant]))[tenant]
    same_key = await operations.of_keys(conn, [(tenant, row.intent_key)])
    requester = PrincipalId(row.requester)
    rights = await read_rights(conn, {tenant: policy}, [(tenant, requester)])
    authority = rights.authority(policy, await clock.now(conn))
    resource = Resource(row.kind, row.desk, row.ticket_id)
    circumstances = Circumstances(
        requester=requester_objection(authority, requester, resource),
        run=RunStatus(row.run_status),
        desk=row.desk,
        ticket=ticket,
        ticket_id=row.ticket_id,
        closed_version=row.closed_version,
        already_done=any(status is OperationStatus.SUCCEEDED for *_, status in same_key),
    )
    refused = objection_to_repeating(circumstances)
    return DoubtRecord(
        AttemptId(newest.id),
        None if refused is None else refused.reason,
        terms_for(policy, row.kind, RiskFacts.from_json(row.risks)).quorum,
        await _repeat(conn, tenant, OperationId(row.id), newest.id),
    )


async def _repeat(
    conn: Connection, tenant: TenantId, id_: OperationId, attempt: UUID
) -> ApprovalRecord | None:
    """Read what people have begun: an open approval of a repeat after this very attempt."""
    row = await approvals.newest_repeat(conn, tenant, id_)
    if row is None or row.repeats_attempt != attempt or row.status != ApprovalStatus.OPEN:
        return None
    return ApprovalRecord(
        ApprovalId(row.id),
        ApprovalStatus(row.status),
        Terms.from_json(row.terms),
        _votes(await approvals.votes_of(conn, tenant, ApprovalId(row.id))),
        row.decide_by,
        row.use_by,
    )


def _votes(rows: Sequence[AnyRow]) -> tuple[VoteRecord, ...]:
    return tuple(
        VoteRecord(
            PrincipalId(v.principal),
            Vote(v.vote),
            v.note,
            v.decided_at,
            None if v.on_behalf_of is None else PrincipalId(v.on_behalf_of),
        )
        for v in rows
    )


async def _deliveries(
    conn: Connection, tenant: TenantId, id_: OperationId
) -> tuple[DeliveryRecord, ...]:
    """Read what became of accepted mails, oldest first."""
    notes = await late_evidence.read_delivery_notes(conn, tenant, id_)
    return tuple(
        DeliveryRecord(
            note.kind,
            note.happened_at,
            _texts(note.evidence.get("recipients")),
            str(note.evidence.get("bounce") or ""),
        )
        for note in notes
    )


def _texts(values: JsonValue) -> tuple[str, ...]:
    return tuple(str(value) for value in values) if isinstance(values, list) else ()


def _effects(parts: Sequence[AnyRow], attempts: Sequence[AnyRow]) -> tuple[EffectRecord, ...]:
    tries: dict[UUID, list[AttemptRecord]] = {}
    first: dict[UUID, datetime] = {}
    for t in attempts:
        window = t.key_window_seconds
        since = first.setdefault(t.effect_id, t.opened_at)
        tries.setdefault(t.effect_id, []).append(
            AttemptRecord(
                t.number,
                AttemptStatus(t.status),
                t.evidence,
                t.opened_at,
                t.conclude_at,
                t.reported_at,
                Capability(t.capability),
                t.lookups,
                t.recover_at,
                None if window is None else since + timedelta(seconds=window),
            )
        )
    return tuple(
        EffectRecord(
            EffectKind(e.kind),
            EffectStatus(e.status),
            e.provider,
            Capability(e.capability),
            e.promise,
            tuple(tries.get(e.id, ())),
        )
        for e in parts
    )


async def read_run(conn: Connection, tenant: TenantId, id_: RunId) -> RunRecord:
    """Read everything that a run's own card may say."""
    policy = (await tenants.share_policies(conn, [tenant]))[tenant]
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
        await request_of_run(conn, tenant, id_),
        await read_progress(conn, tenant, id_) if row.driven else NO_PROGRESS,
        policy.slack.progress,
    )
