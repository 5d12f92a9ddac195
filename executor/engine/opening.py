"""T4: the point of no return. Everything is checked again under locks; then, in the same commit,
the ticket is closed, the approval is consumed, and the first external attempt is recorded.

What commits before it (a cancel, a revocation, a new version, an expiry, a policy change) prevents
the effect; what commits after it is told "already sending". Later effects and retries are opened
here too, with the checks that still make sense for them: our own close has moved the version, and
the approval is consumed by this operation. Locks: policies, runs, tickets, operations, approvals,
effects and attempts, cards, journal heads; then the time is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from executor.domain import approval, effect, operation
from executor.domain.approval import Approval, ApprovalStatus, Vote
from executor.domain.effect import Attempt, AttemptStatus, EffectKind, EffectStatus
from executor.domain.ids import AttemptId, PrincipalId, TenantId
from executor.domain.journal import Chain
from executor.domain.operation import OperationStatus
from executor.domain.transition import Machine, Reason, Refused, Transition
from executor.engine import endings, revalidation
from executor.engine.engine import Engine
from executor.engine.failpoint import Commit
from executor.engine.ports import MailPort
from executor.engine.recovery_plan import declared, repeat_objection
from executor.engine.revalidation import World
from executor.store import approvals, cards, desk, effects, episodes, journal, operations, tenants
from executor.store.cards import SubjectKind
from executor.store.connection import Connection
from executor.store.operations import OperationKey, OperationRow
from executor.store.wakeups import Kind


@dataclass(frozen=True, slots=True)
class Claim:
    """An operation that a worker holds; ``trusted_until`` is on the host's boot-time clock."""

    key: OperationKey
    owner: str
    epoch: int


@dataclass(frozen=True, slots=True)
class Opened:
    """An attempt that is recorded and may be called before its deadline."""

    attempt: Attempt
    effect: effects.EffectRow


@dataclass(frozen=True, slots=True)
class NotOpened:
    """Nothing was opened: the operation ended, or there is nothing left to open."""

    reason: Refused | None = None


@dataclass(frozen=True, slots=True)
class PutOff:
    """Nothing was decided: somebody's identity has to be looked at first."""


@dataclass(frozen=True, slots=True)
class LostLease:
    """The lease is somebody else's now; nothing was changed."""


OpenResult = Opened | NotOpened | PutOff | LostLease


@dataclass(slots=True)
class _Plan:
    """What one transaction will write."""

    closings: list[desk.Closing] = field(default_factory=list)
    closes: list[tuple[episodes.TicketKey, int]] = field(default_factory=list)
    effect_moves: list[effects.EffectMove] = field(default_factory=list)
    attempts: list[effects.NewAttempt] = field(default_factory=list)
    recoveries: list[effects.RecoveryPlan] = field(default_factory=list)
    approval_moves: list[approvals.ApprovalMove] = field(default_factory=list)
    operation_moves: list[operations.OperationMove] = field(default_factory=list)
    stale: list[tuple[OperationRow, Approval | None, operation.Event]] = field(default_factory=list)
    touched: list[OperationRow] = field(default_factory=list)
    looks: list[tuple[TenantId, PrincipalId]] = field(default_factory=list)


async def open_attempts(
    engine: Engine, mail: MailPort, claims: Sequence[Claim]
) -> list[OpenResult]:
    """Open the next attempt of each claimed operation, or end it with the reason; one commit.

    Opens its own transaction. An operation with nothing left to open is ``NotOpened``. Raises
    ``CommitUnknown``: then ``read_back`` tells what may be called.
    """
    async with engine.committing(Commit.OPEN) as conn:
        world = await revalidation.lock_world(conn, [claim.key for claim in claims])
        plan = _Plan()
        results = [_decide(engine, mail, claim, world, plan) for claim in claims]
        await _apply(conn, plan, world)
    engine.ring(Kind.CARDS)
    if plan.looks:
        engine.ring(Kind.IDENTITIES)
    return results


async def read_back(engine: Engine, claim: Claim) -> OpenResult:
    """After ``CommitUnknown``: return the attempt only if it is stored with the own epoch."""
    async with engine.database.transaction() as conn:
        rows = await operations.lock(conn, [claim.key])
        row = rows.get(claim.key)
        if row is None or (row.lease_owner, row.lease_epoch) != (claim.owner, claim.epoch):
            return LostLease()
        parts = (await effects.of_operations(conn, [claim.key]))[claim.key]
        for found in (await effects.attempts_of(conn, [claim.key]))[claim.key]:
            if found.attempt.status is AttemptStatus.DISPATCHED and found.epoch == claim.epoch:
                part = next(p for p in parts if p.id == found.attempt.effect_id)
                return Opened(found.attempt, part)
    return PutOff()


def _decide(engine: Engine, mail: MailPort, claim: Claim, world: World, plan: _Plan) -> OpenResult:
    row = world.rows.get(claim.key)
    if row is None or (row.lease_owner, row.lease_epoch) != (claim.owner, claim.epoch):
        return LostLease()
    first = row.status is OperationStatus.APPROVED
    if not first and row.status is not OperationStatus.EXECUTING:
        return NotOpened()
    part = _next_part(world.parts[claim.key])
    if not first and part is None:
        return NotOpened()
    refused = revalidation.objection(mail, row, world, first=first)
    if part is not None and part.status is EffectStatus.UNKNOWN:
        tries = [t for t in world.tries[row.key] if t.attempt.effect_id == part.id]
        refused, asked = repeat_objection(engine, mail, tries, refused, world.chain.now)
        plan.recoveries += asked
    if refused is not None and refused.reason is Reason.IDENTITY_UNKNOWN:
        plan.looks += [(row.tenant_id, who) for who in revalidation.whom_to_look_at(refused)]
        return PutOff()
    if refused is not None:
        return _refuse(row, refused, world, plan, first=first)
    if first:
        return _open_first(engine, mail, claim, row, world, plan)
    assert part is not None
    return _open_later(engine, mail, claim, row, part, world, plan)


def _next_part(parts: Sequence[effects.EffectRow]) -> effects.EffectRow | None:
    """Return the first part that is not done, if it may be tried (again)."""
    for part in parts:
        if part.status in (EffectStatus.APPLIED, EffectStatus.SKIPPED):
            continue
        if part.status is EffectStatus.DISPATCHED:
            return None
        return part
    return None


def _refuse(
    row: OperationRow, refused: Refused, world: World, plan: _Plan, *, first: bool
) -> NotOpened:
    """End the operation: stale where nothing was done, else with the truth about its parts."""
    chain = world.chain
    if first:
        event: operation.Event = (
            operation.TimeRanOut(refused.reason)
            if refused.reason is Reason.TIME_TO_USE_OVER
            else operation.RevalidationFailed(refused)
        )
        plan.stale.append((row, world.consents.get(row.key), event))
        return NotOpened(refused)
    _void_unused(row, world.consents.get(row.key), plan, chain)
    statuses = []
    for part in world.parts[row.key]:
        if part.status is EffectStatus.PLANNED:
            skipped = Transition(part.status, EffectStatus.SKIPPED, "not_opened", refused.reason)
            plan.effect_moves.append(_effect_move(row, part, skipped, chain))
            continue
        statuses.append(part.status)
    detail = {**row.detail, "not_opened": refused.reason.value}
    decision = operation.decide(row.status, operation.EffectsMoved(statuses, detail=detail))
    if isinstance(decision, Transition):
        ended = Transition(decision.source, decision.target, decision.event, refused.reason, detail)
        unknown = decision.target is OperationStatus.UNKNOWN
        _move(row, ended, plan, chain, ended_at=None if unknown else chain.now)
    return NotOpened(refused)


def _void_unused(row: OperationRow, consent: Approval | None, plan: _Plan, chain: Chain) -> None:
    """End an approval of a repeat that is not opened; one that was consumed stays as it is."""
    if consent is None:
        return
    void = approval.decide(consent, approval.OperationEnded(withdrawn=False), now=chain.now)
    if isinstance(void, approval.Moved) and void.transition is not None:
        plan.approval_moves.append(
            endings.approval_move(row, consent, void.approval, void.transition, "executor", chain)
        )


def _open_first(
    engine: Engine,
    mail: MailPort,
    claim: Claim,
    row: OperationRow,
    world: World,
    plan: _Plan,
) -> OpenResult:
    """Consume the approval, close the ticket, and record the first external attempt."""
    chain, consent = world.chain, world.consents[row.key]
    _consume(claim, row, consent, plan, chain)
    opened: OpenResult = NotOpened()
    for part in world.parts[row.key]:
        if part.kind is EffectKind.TICKET_CLOSE:
            plan.closings.append(
                desk.Closing(
                    row.tenant_id,
                    row.ticket_id,
                    row.ticket_version,
                    _approvers(consent),
                    f"Closed by Signoff, op_{row.number}, digest {row.digest.hex()[:16]}.",
                    row.id,
                )
            )
            closed = Transition(part.status, EffectStatus.APPLIED, "applied")
            plan.effect_moves.append(_effect_move(row, part, closed, chain))
            new_version = row.ticket_version + 1
            plan.closes.append(((row.tenant_id, row.desk, row.ticket_id), new_version))
        else:
            opened = _dispatch(engine, mail, claim, row, part, world, plan)
            break
    decision = operation.decide(row.status, operation.Opened())
    assert isinstance(decision, Transition)
    _move(
        row,
        decision,
        plan,
        chain,
        keeps_lease=True,
        opened_at=chain.now,
        closed_version=row.ticket_version + 1,
    )
    return opened


def _consume(claim: Claim, row: OperationRow, consent: Approval, plan: _Plan, chain: Chain) -> None:
    """Use up the approval under which this opening happens; the checks have let it."""
    used = approval.decide(consent, approval.Used(), now=chain.now)
    assert isinstance(used, approval.Moved)
    assert used.transition is not None
    plan.approval_moves.append(
        endings.approval_move(row, consent, used.approval, used.transition, claim.owner, chain)
    )


def _open_later(
    engine: Engine,
    mail: MailPort,
    claim: Claim,
    row: OperationRow,
    part: effects.EffectRow,
    world: World,
    plan: _Plan,
) -> OpenResult:
    plan.touched.append(row)
    consent = world.consents[row.key]
    if consent.status is ApprovalStatus.GRANTED:
        _consume(claim, row, consent, plan, world.chain)
    return _dispatch(engine, mail, claim, row, part, world, plan)


def _dispatch(
    engine: Engine,
    mail: MailPort,
    claim: Claim,
    row: OperationRow,
    part: effects.EffectRow,
    world: World,
    plan: _Plan,
) -> Opened:
    """Record an attempt, with the moment after which nothing of it can still arrive."""
    chain, terms = world.chain, declared(engine, mail)
    deadline = chain.now + timedelta(seconds=engine.durations.first_byte_seconds)
    conclude = chain.now + terms.margin
    number = 1 + sum(1 for t in world.tries[row.key] if t.attempt.effect_id == part.id)
    attempt = Attempt(
        AttemptId(engine.mint()),
        part.id,
        number,
        AttemptStatus.DISPATCHED,
        mail.capability,
        chain.now,
        deadline,
        conclude,
        terms=terms.terms,
    )
    born = chain.birth(
        Machine.ATTEMPT,
        row.tenant_id,
        row.run_id,
        attempt.id,
        AttemptStatus.DISPATCHED,
        claim.owner,
        {
            "effect": str(part.id),
            "number": number,
            "epoch": claim.epoch,
            "capability": mail.capability.value,
            "payload_sha256": part.payload_digest.hex(),
        },
    )
    plan.attempts.append(
        effects.NewAttempt(
            row.tenant_id,
            row.id,
            attempt,
            claim.epoch,
            mail.provider,
            part.idempotency_key,
            part.payload_digest,
            born,
        )
    )
    others = [t.attempt.status for t in world.tries[row.key] if t.attempt.effect_id == part.id]
    moved = effect.decide_effect(part.status, [*others, AttemptStatus.DISPATCHED])
    assert isinstance(moved, Transition)
    plan.effect_moves.append(_effect_move(row, part, moved, chain, first_attempt_at=chain.now))
    return Opened(attempt, part)


def _effect_move(
    row: OperationRow,
    part: effects.EffectRow,
    transition: Transition[EffectStatus],
    chain: Chain,
    first_attempt_at: datetime | None = None,
) -> effects.EffectMove:
    entry = chain.move(
        Machine.EFFECT,
        row.tenant_id,
        row.run_id,
        part.id,
        part.seq,
        transition,
        row.lease_owner or "executor",
    )
    return effects.EffectMove(part, transition, entry, first_attempt_at)


def _move(
    row: OperationRow,
    transition: Transition[OperationStatus],
    plan: _Plan,
    chain: Chain,
    *,
    keeps_lease: bool = False,
    opened_at: datetime | None = None,
    ended_at: datetime | None = None,
    closed_version: int | None = None,
) -> None:
    entry = chain.move(
        Machine.OPERATION,
        row.tenant_id,
        row.run_id,
        row.id,
        row.seq,
        transition,
        row.lease_owner or "executor",
    )
    plan.operation_moves.append(
        operations.OperationMove(
            row,
            transition,
            entry,
            keeps_lease=keeps_lease,
            opened_at=opened_at,
            ended_at=ended_at,
            closed_version=closed_version,
        )
    )
    plan.touched.append(row)


def _approvers(consent: Approval) -> str:
    return ", ".join(who for who, vote in consent.votes if vote is Vote.APPROVE)


async def _apply(conn: Connection, plan: _Plan, world: World) -> None:
    """Write the plan; the tickets' versions are checked once more by the statement that closes."""
    chain = world.chain
    await tenants.want_identities(conn, plan.looks, chain.now)
    versions = await desk.close_tickets(conn, plan.closings, chain.now)
    for closing, version in zip(plan.closings, versions, strict=True):
        assert version == closing.version + 1, "the ticket is locked and its version was compared"
    await episodes.record_closes(conn, plan.closes)
    await endings.end_unopened(conn, plan.stale, "executor", chain)
    await approvals.move(conn, plan.approval_moves)
    await effects.move(conn, plan.effect_moves)
    await effects.open_attempts(conn, plan.attempts, chain.now)
    await effects.plan_recoveries(conn, plan.recoveries)
    await operations.move(conn, plan.operation_moves)
    await cards.want(
        conn,
        [(row.tenant_id, row.id, SubjectKind.OPERATION) for row in plan.touched],
        chain.now,
    )
    await journal.advance(conn, chain)
