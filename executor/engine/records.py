"""Reads the records that cards are drawn from; what a card says is read at one moment."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from executor.domain.approval import ApprovalStatus
from executor.domain.effect import AttemptStatus, Capability, EffectKind, EffectStatus
from executor.domain.ids import ApprovalId, OperationId, PrincipalId, RunId, TenantId, is_policy
from executor.domain.intent import CALL_TOOL, RAISE_BUDGET, REOPEN_TICKET
from executor.domain.operation import OperationStatus
from executor.domain.payloads import JsonValue
from executor.domain.risk import RiskFacts
from executor.domain.run import RunStatus
from executor.domain.terms import Terms
from executor.domain.transition import Reason
from executor.engine.approval_record import ApprovalRecord, vote_records
from executor.engine.card_record import (
    AttemptRecord,
    CardRecord,
    DeliveryRecord,
    EffectRecord,
    OperationRecord,
    ReopeningRecord,
    RunRecord,
    UndoneRecord,
    WordRecord,
)
from executor.engine.doubt_record import read_doubt
from executor.engine.kind_record import read_raising, read_tool_call
from executor.engine.lacking_votes import lacking_votes
from executor.engine.last_account import read_accounted
from executor.engine.nudge_record import read_nudge
from executor.engine.pause_record import read_pause
from executor.engine.progress_record import NO_PROGRESS, read_progress
from executor.engine.question_record import questions_about, read_question
from executor.engine.request_record import read_request, request_of_run
from executor.engine.revision_record import asked_again_by, email_of, previous_of, successor_of
from executor.engine.ticket_record import read_ticket, ticket_record
from executor.engine.warning import read_warning
from executor.engine.word import WORD_GIVEN, Said
from executor.store import (
    agent_requests,
    approvals,
    card_records,
    clock,
    compensations,
    late_evidence,
    operation_lookups,
    pauses,
    proposals,
    runs,
    tenants,
)
from executor.store.card_records import AnyRow
from executor.store.cards import SubjectKind
from executor.store.connection import Connection


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
    if kind is SubjectKind.WARNING:
        return await read_warning(conn, tenant, subject)
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
    ticket = await read_ticket(conn, tenant, row)
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
        ticket=None
        if row.ticket_id is None
        else ticket_record(row, intent["ticket"]["subject"], ticket, parts),
        email=email_of(intent),
        effects=_effects(parts, tries),
        words=await _words(conn, tenant, row, tries),
        doubt=await read_doubt(conn, tenant, row, ticket, parts, tries),
        approval=ApprovalRecord(
            ApprovalId(row.approval_id),
            ApprovalStatus(row.approval_status),
            Terms.from_json(row.terms),
            vote_records(votes),
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
        raising=await read_raising(conn, key, intent),
        tool_call=read_tool_call(intent),
    )


def _why(kind: str, terms: Terms, votes: Sequence[AnyRow]) -> str:
    if kind == REOPEN_TICKET and any(is_policy(PrincipalId(v.principal)) for v in votes):
        return "The policy itself consents to opening a ticket again whose email was not sent."
    if terms.asks_nobody:
        return "The policy asks nobody to approve this; what it does was checked all the same."
    quorum = terms.quorum
    people = "one person" if quorum == 1 else f"{quorum} people"
    if kind == RAISE_BUDGET:
        return f"The policy asks {people} whether a limit of the budget is raised."
    if kind == CALL_TOOL:
        return f"The policy asks {people} to approve what a tool may change outside."
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
    mine = await operation_lookups.of_runs(conn, [(tenant, id_)])
    return RunRecord(
        tenant,
        id_,
        row.number,
        row.goal,
        RunStatus(row.status),
        None if row.reason is None else Reason(row.reason),
        row.summary
        or ("" if row.ended_at is None else await pauses.last_words(conn, (tenant, id_))),
        PrincipalId(row.requester),
        tuple((number, status) for *_, number, status in mine),
        row.created_at,
        row.ended_at,
        await request_of_run(conn, tenant, id_),
        await read_accounted(conn, tenant, id_),
        await read_progress(conn, tenant, id_) if row.driven else NO_PROGRESS,
        policy.slack.progress,
        await read_pause(conn, policy, tenant, id_),
        await _put_off_until(conn, row),
    )


async def _put_off_until(conn: Connection, row: AnyRow) -> datetime | None:
    """Say when a waiting run goes on by itself: nothing but its model makes it due beforehand."""
    if RunStatus(row.status) is not RunStatus.WAITING or row.due_at is None:
        return None
    return row.due_at if row.due_at > await clock.now(conn) else None
