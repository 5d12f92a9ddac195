"""T1: a proposal becomes an operation, or converges with one, or is refused; all in one commit.

By intent key: none live mints one; live and equal links to it; live and different in the same run
with nothing dispatched supersedes it; live and different in another run conflicts; succeeded
returns its result. Locks: policies, runs, tickets, episodes, operations, approvals, cards, journal
heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from executor.domain import operation
from executor.domain.approval import Approval, ApprovalStatus
from executor.domain.closing import ProposeClosing, build_closing_email
from executor.domain.effect import Capability, EffectKind, EffectStatus
from executor.domain.errors import InvalidContent, StaleEpoch
from executor.domain.ids import ApprovalId, EffectId, OperationId, RunId, TenantId
from executor.domain.intent import CLOSE_TICKET, Intent, PlannedEffect, close_key, closing_document
from executor.domain.journal import Chain
from executor.domain.operation import LIVE, UNOPENED, OperationStatus
from executor.domain.payloads import JsonObject, canonical
from executor.domain.policy import Permission, Policy
from executor.domain.run import RunStatus
from executor.domain.ticket import BUILTIN_DESK, Ticket, TicketStatus
from executor.domain.transition import Machine, Reason, Refused
from executor.engine import endings
from executor.engine.closure_email import ClosureEmails
from executor.engine.engine import Engine
from executor.engine.failpoint import Commit
from executor.engine.ports import MailPort
from executor.engine.tool_results import proposal_result, refusal_result
from executor.store import (
    approvals,
    cards,
    desk,
    effects,
    episodes,
    journal,
    operations,
    proposals,
    runs,
    tenants,
)
from executor.store.cards import SubjectKind
from executor.store.connection import Connection
from executor.store.wakeups import Kind


@dataclass(frozen=True, slots=True)
class Asked:
    """One proposal of one tool call. ``version_read`` is what this run last read of the ticket."""

    step: int
    ordinal: int
    proposal: ProposeClosing
    version_read: int | None


@dataclass(frozen=True, slots=True)
class Accepted:
    """The call's operation; ``linked`` when another run's operation already says the same."""

    operation_id: OperationId
    linked: bool


@dataclass(frozen=True, slots=True)
class Answered:
    """The call was answered at once, with this result."""

    result: JsonObject


AcceptResult = Accepted | Answered


@dataclass(slots=True)
class _Acceptance:
    """What one transaction has decided so far; later proposals of the step decide on it."""

    live: dict[str, operations.OperationRow]
    consents: dict[operations.OperationKey, Approval]
    succeeded: dict[str, operations.OperationRow]
    minted: dict[str, operations.NewOperation] = field(default_factory=dict)
    new_effects: list[effects.NewEffect] = field(default_factory=list)
    new_approvals: list[approvals.NewApproval] = field(default_factory=list)
    proposals: list[proposals.Proposal] = field(default_factory=list)
    superseded: list[tuple[operations.OperationRow, Approval | None, operation.Event]] = field(
        default_factory=list
    )


async def accept(
    engine: Engine,
    mail: MailPort,
    emails: ClosureEmails,
    run_key: tuple[TenantId, RunId],
    epoch: int,
    asked: Sequence[Asked],
    next_step: int,
) -> list[AcceptResult]:
    """Accept the proposals of one step of a run, in order, in one commit.

    Opens its own transaction. Answers given at once are recorded as steps from ``next_step`` on.
    The same tool call again is refused by its key: a resumed run asks only for what has no record.
    Raises ``StaleEpoch`` when the lease is lost or the run no longer works, ``CommitUnknown``.
    """
    tenant = run_key[0]
    async with engine.committing(Commit.ACCEPT) as conn:
        policy = (await tenants.share_policies(conn, [tenant]))[tenant]
        row = await lock_working_run(conn, run_key, epoch)
        tickets = await desk.lock_tickets(conn, tenant, [a.proposal.ticket_id for a in asked])
        keys = await _keys(conn, tenant, tickets)
        state = await _lock_operations(conn, tenant, list(keys.values()))
        chain = await endings.lock_cards_and_chain(
            conn,
            [*state.live.values(), *state.succeeded.values()],
            runs_too=[run_key],
        )
        results: list[AcceptResult] = []
        for item in asked:
            outcome = _decide(engine, mail, emails, policy, row, tickets, keys, state, item, chain)
            if isinstance(outcome, Answered):
                await runs.record_step(
                    conn,
                    run_key,
                    runs.Step(
                        next_step,
                        "tool",
                        (item.step, item.ordinal),
                        {"result": outcome.result},
                        chain.now,
                    ),
                )
                next_step += 1
            results.append(outcome)
        await _apply(conn, state, row, chain)
    engine.ring(Kind.CARDS)
    return results


async def lock_working_run(
    conn: Connection, run_key: tuple[TenantId, RunId], epoch: int
) -> runs.RunRow:
    """Lock a run by id and compare the epoch under that lock; ``StaleEpoch`` if it is not ours."""
    row = (await runs.lock(conn, [run_key])).get(run_key)
    if row is None or row.status is not RunStatus.RUNNING or row.lease_epoch != epoch:
        raise StaleEpoch(epoch, -1 if row is None else row.lease_epoch)
    return row


async def _keys(conn: Connection, tenant: TenantId, tickets: dict[str, Ticket]) -> dict[str, str]:
    """Name each ticket's closing in its current episode, counting a new one where it came back."""
    counts = await episodes.lock(conn, [(tenant, BUILTIN_DESK, ticket) for ticket in tickets])
    keys = {}
    for (_, desk_name, ticket_id), episode in counts.items():
        ticket, number = tickets[ticket_id], episode.number
        came_back = (
            episode.closed_version is not None
            and ticket.status is TicketStatus.OPEN
            and ticket.version > episode.closed_version
        )
        if came_back:
            number += 1
            await episodes.begin(conn, (tenant, desk_name, ticket_id), number)
        keys[ticket_id] = close_key(desk_name, ticket_id, number)
    return keys


async def _lock_operations(conn: Connection, tenant: TenantId, keys: Sequence[str]) -> _Acceptance:
    named = await operations.of_keys(conn, [(tenant, key) for key in keys])
    rows = await operations.lock(conn, [(t, id_) for t, id_, *_ in named])
    consents = await approvals.lock(conn, list(rows))
    live = {r.intent_key: r for r in rows.values() if r.status in LIVE}
    done = {r.intent_key: r for r in rows.values() if r.status is OperationStatus.SUCCEEDED}
    return _Acceptance(live, consents, done)


def _decide(
    engine: Engine,
    mail: MailPort,
    emails: ClosureEmails,
    policy: Policy,
    row: runs.RunRow,
    tickets: dict[str, Ticket],
    keys: dict[str, str],
    state: _Acceptance,
    item: Asked,
    chain: Chain,
) -> AcceptResult:
    ticket = tickets.get(item.proposal.ticket_id)
    if ticket is None:
        return Answered(
            refusal_result(Refused(Reason.TICKET_UNKNOWN, {"ticket": item.proposal.ticket_id}))
        )
    key = keys[ticket.id]
    done = state.succeeded.get(key)
    if done is not None and key not in state.live:
        return Answered(proposal_result(done.status, done.number, Reason.ALREADY_DONE, {}))
    refused = _refuse(policy, row, ticket, item)
    if refused is not None:
        return Answered(refusal_result(refused))
    try:
        intent = _intent(engine, mail, emails, policy, row, ticket, key, item)
    except InvalidContent as error:
        detail = {"field": error.field, "problem": error.problem, "remedy": error.remedy}
        return Answered(refusal_result(Refused(Reason.CONTENT_INVALID, detail)))
    return _converge(engine, policy, row, ticket, state, item, intent, chain)


def _refuse(policy: Policy, row: runs.RunRow, ticket: Ticket, item: Asked) -> Refused | None:
    objection = policy.objection(row.requester, Permission.REQUEST)
    if objection is not None:
        return objection
    if ticket.status is TicketStatus.CLOSED:
        return Refused(Reason.TICKET_CLOSED, {"ticket": ticket.id, "version": ticket.version})
    if item.version_read is None:
        return Refused(Reason.VERSION_NOT_READ, {"ticket": ticket.id})
    if item.version_read != ticket.version:
        return Refused(
            Reason.VERSION_CHANGED,
            {"ticket": ticket.id, "read": item.version_read, "version": ticket.version},
        )
    return None


def _intent(
    engine: Engine,
    mail: MailPort,
    emails: ClosureEmails,
    policy: Policy,
    row: runs.RunRow,
    ticket: Ticket,
    key: str,
    item: Asked,
) -> Intent:
    """Freeze what would happen; the email is rendered here, once. Raises ``InvalidContent``."""
    rendered = emails.render(ticket, item.proposal, policy.email.signature)
    email = build_closing_email(
        policy, ticket, item.proposal, rendered, tenant=row.tenant_id, key=key
    )
    effect_id = EffectId(engine.mint())
    payload = mail.freeze(email, effect_id.hex)
    document = closing_document(
        tenant=row.tenant_id,
        requested_by=row.requester,
        policy_version=policy.version,
        desk=ticket.desk,
        ticket_id=ticket.id,
        ticket_version=ticket.version,
        ticket_subject=ticket.subject,
        email=email,
        provider=mail.provider,
        payload=payload,
        templates=rendered.templates,
    )
    close: JsonObject = {"desk": ticket.desk, "ticket": ticket.id, "version": ticket.version}
    return Intent(
        CLOSE_TICKET,
        key,
        document,
        (
            PlannedEffect(
                EffectId(engine.mint()),
                EffectKind.TICKET_CLOSE,
                Capability.TRANSACTIONAL,
                ticket.desk,
                canonical(close),
                close,
            ),
            PlannedEffect(
                effect_id,
                EffectKind.EMAIL_SEND,
                mail.capability,
                mail.provider,
                payload,
                {"from": email.sender.ascii_address, "to": list(email.recipients())},
            ),
        ),
    )


def _converge(
    engine: Engine,
    policy: Policy,
    row: runs.RunRow,
    ticket: Ticket,
    state: _Acceptance,
    item: Asked,
    intent: Intent,
    chain: Chain,
) -> AcceptResult:
    """Decide by intent key what a proposal comes to."""
    revision = 1
    twin = state.minted.get(intent.key)
    if twin is not None:
        # Two calls of one step: the first one is the operation, whatever the second one says.
        if twin.intent.content_digest == intent.content_digest:
            return _link(state, row, item, twin.id, linked=False)
        return Answered(refusal_result(Refused(Reason.CONFLICTS_WITH, {"same_step": True})))
    live = state.live.get(intent.key)
    if live is not None:
        if live.content_digest == intent.content_digest:
            return _link(state, row, item, live.id, linked=live.run_id != row.id)
        if live.run_id != row.id or live.status not in UNOPENED:
            return Answered(
                refusal_result(
                    Refused(
                        Reason.CONFLICTS_WITH,
                        {"operation": live.number, "status": live.status.value},
                    )
                )
            )
        revision = live.content_revision + 1
    minted = _mint(engine, policy, row, ticket, state, item, intent, revision, chain)
    if live is not None:
        state.superseded.append(
            (live, state.consents.get(live.key), operation.Superseded(str(minted)))
        )
    return Accepted(minted, linked=False)


def _mint(
    engine: Engine,
    policy: Policy,
    row: runs.RunRow,
    ticket: Ticket,
    state: _Acceptance,
    item: Asked,
    intent: Intent,
    revision: int,
    chain: Chain,
) -> OperationId:
    tenant, operation_id = row.tenant_id, OperationId(engine.mint())
    actor = row.requester
    state.minted[intent.key] = operations.NewOperation(
        tenant,
        operation_id,
        row.id,
        intent,
        revision,
        row.requester,
        policy.version,
        ticket.desk,
        ticket.id,
        ticket.version,
        chain.birth(
            Machine.OPERATION,
            tenant,
            row.id,
            operation_id,
            OperationStatus.AWAITING,
            actor,
            {"digest": intent.digest.hex(), "intent_key": intent.key, "revision": revision},
        ),
    )
    for position, planned in enumerate(intent.effects, start=1):
        entry = chain.birth(
            Machine.EFFECT,
            tenant,
            row.id,
            planned.id,
            EffectStatus.PLANNED,
            actor,
            {"operation": str(operation_id), "kind": planned.kind.value},
        )
        state.new_effects.append(effects.NewEffect(tenant, operation_id, position, planned, entry))
    consent = Approval(
        ApprovalId(engine.mint()),
        operation_id,
        ApprovalStatus.OPEN,
        intent.digest,
        revision,
        policy.approval.quorum,
        timedelta(seconds=policy.approval.decide_within_seconds),
        timedelta(seconds=policy.approval.use_within_seconds),
    )
    opened = chain.birth(
        Machine.APPROVAL,
        tenant,
        row.id,
        consent.id,
        ApprovalStatus.OPEN,
        actor,
        {"operation": str(operation_id), "quorum": consent.quorum},
    )
    state.new_approvals.append(approvals.NewApproval(tenant, consent, opened))
    _link(state, row, item, operation_id, linked=False)
    return operation_id


def _link(
    state: _Acceptance, row: runs.RunRow, item: Asked, operation_id: OperationId, *, linked: bool
) -> Accepted:
    state.proposals.append(
        proposals.Proposal(
            row.tenant_id, row.id, item.step, item.ordinal, operation_id, row.requester, linked
        )
    )
    return Accepted(operation_id, linked)


async def _apply(conn: Connection, state: _Acceptance, row: runs.RunRow, chain: Chain) -> None:
    """Write what was decided; superseded ones leave their key before new ones take it."""
    await endings.end_unopened(conn, state.superseded, row.requester, chain)
    minted = list(state.minted.values())
    if minted:
        await operations.insert(conn, minted, chain.now)
        await effects.insert(conn, state.new_effects)
        await approvals.insert(conn, state.new_approvals, chain.now)
    if state.proposals:
        await proposals.record(conn, state.proposals, chain.now)
        touched = {(p.tenant_id, p.operation_id, SubjectKind.OPERATION) for p in state.proposals}
        await cards.want(conn, touched, chain.now)
    await journal.advance(conn, chain)
