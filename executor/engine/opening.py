"""T4: the point of no return. Everything is checked again under locks; then, in the same commit,
transactional parts are applied, the approval is consumed, and the first external attempt is
recorded.

What commits before it (a cancel, a revocation, a new version, an expiry, a policy change) prevents
the effect; what commits after it is told "already sending". Later effects and retries are opened
here too, with the checks that still make sense for them: our own close has moved the version, and
the approval is consumed by this operation. An outside ticket was looked at right before; where that
look is too old, or the desk did not tell, nothing is decided. Locks: policies, runs, tickets,
operations, approvals, effects and attempts, cards, journal heads; then the time is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from executor.domain import operation
from executor.domain.approval import ApprovalStatus
from executor.domain.effect import (
    Attempt,
    AttemptStatus,
    Capability,
    EffectKind,
    EffectStatus,
    statuses_that_tell,
)
from executor.domain.operation import OperationStatus
from executor.domain.payloads import JsonObject, JsonValue
from executor.domain.policy_servers import ServerSection
from executor.domain.ticket import BUILTIN_DESK
from executor.domain.transition import Reason, Refused, Transition
from executor.engine import revalidation
from executor.engine.engine import Engine
from executor.engine.failpoint import Commit
from executor.engine.opening_plan import Plan
from executor.engine.outside_target import learnt_stamp
from executor.engine.providers import Providers
from executor.engine.recovery_plan import repeat_objection
from executor.engine.revalidation import Check, CheckName
from executor.engine.sighting import TOO_SLOW, Sight, wait_for_desk
from executor.engine.world import lock_world
from executor.store import effects, operations, tenants
from executor.store.operations import OperationKey, OperationRow
from executor.store.wakeups import Kind

LONGEST_IDENTITY_WAIT = timedelta(seconds=15)
"""The longest wait between two tries while people are looked at; a look is good for a minute."""


@dataclass(frozen=True, slots=True)
class Claim:
    """An operation that a worker holds."""

    key: OperationKey
    owner: str
    epoch: int


@dataclass(frozen=True, slots=True)
class Ready:
    """A claimed operation, and what was seen of its ticket if that is at an outside desk."""

    claim: Claim
    sight: Sight | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """An attempt that is recorded and may be called before its deadline.

    ``servers`` are those of the policy under which it was opened.
    """

    attempt: Attempt
    effect: effects.EffectRow
    servers: Mapping[str, ServerSection] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NotOpened:
    """Nothing was opened: the operation ended, or there is nothing left to open."""

    reason: Refused | None = None


@dataclass(frozen=True, slots=True)
class PutOff:
    """Nothing was decided: somebody's identity has to be looked at first, or a ticket.

    ``wait`` is how long to leave it; ``None``: as long as an identity takes.
    """

    wait: timedelta | None = None


@dataclass(frozen=True, slots=True)
class LostLease:
    """The lease is somebody else's now; nothing was changed."""


OpenResult = Opened | NotOpened | PutOff | LostLease


async def open_attempts(
    engine: Engine, providers: Providers, ready: Sequence[Ready]
) -> list[OpenResult]:
    """Open the next attempt of each claimed operation, or end it with the reason; one commit.

    Opens its own transaction. An operation with nothing left to open is ``NotOpened``. Raises
    ``CommitUnknown``: then ``read_back`` tells what may be called.
    """
    async with engine.committing(Commit.OPEN) as conn:
        sights = {r.claim.key: r.sight for r in ready if r.sight is not None}
        plan = Plan(await lock_world(conn, [r.claim.key for r in ready], sights))
        results = [_decide(engine, providers, item, plan) for item in ready]
        await plan.apply(conn)
    engine.ring(Kind.CARDS)
    if plan.looks or plan.group_looks:
        engine.ring(Kind.IDENTITIES)
    return results


async def read_back(engine: Engine, claim: Claim) -> OpenResult:
    """After ``CommitUnknown``: return the attempt only if it is stored with the own epoch."""
    async with engine.database.transaction() as conn:
        policies = await tenants.share_policies(conn, [claim.key[0]])
        rows = await operations.lock(conn, [claim.key])
        row = rows.get(claim.key)
        if row is None or (row.lease_owner, row.lease_epoch) != (claim.owner, claim.epoch):
            return LostLease()
        parts = (await effects.of_operations(conn, [claim.key]))[claim.key]
        for found in (await effects.attempts_of(conn, [claim.key]))[claim.key]:
            if found.attempt.status is AttemptStatus.DISPATCHED and found.epoch == claim.epoch:
                part = next(p for p in parts if p.id == found.attempt.effect_id)
                return Opened(found.attempt, part, policies[claim.key[0]].servers)
    return PutOff()


def _decide(engine: Engine, providers: Providers, ready: Ready, plan: Plan) -> OpenResult:
    claim, world = ready.claim, plan.world
    row = world.rows.get(claim.key)
    if row is None or (row.lease_owner, row.lease_epoch) != (claim.owner, claim.epoch):
        return LostLease()
    first = row.status is OperationStatus.APPROVED
    if not first and row.status is not OperationStatus.EXECUTING:
        return NotOpened()
    part = _next_part(world.parts[claim.key])
    if part is None:
        return NotOpened()
    refused = _objection(engine, providers, row, part, plan, first=first)
    if refused is not None and refused.reason is Reason.IDENTITY_UNKNOWN:
        not_told = _not_looked_at(engine, row, refused, plan, first=first)
        if isinstance(not_told, PutOff):
            return not_told
    if refused is None and row.is_about_a_ticket and row.desk != BUILTIN_DESK:
        put_off = _unseen(engine, row, ready.sight, plan, first=first)
        if isinstance(put_off, PutOff):
            return put_off
        refused = put_off
    if ready.sight is not None:
        plan.seen += ready.sight.seen_by(row.tenant_id)
    plan.desk_has_told(row)
    if refused is not None:
        return _refuse(row, refused, plan, first=first)
    _keep_learnt_stamp(row, ready.sight, plan)
    if first:
        return _open_first(engine, providers, claim, row, plan)
    return _open_later(engine, providers, claim, row, part, plan)


def _next_part(parts: Sequence[effects.EffectRow]) -> effects.EffectRow | None:
    """Return the first part that is not done, if it may be tried (again)."""
    for part in parts:
        if part.status in (EffectStatus.APPLIED, EffectStatus.SKIPPED):
            continue
        if part.status is EffectStatus.DISPATCHED:
            return None
        return part
    return None


def _objection(
    engine: Engine,
    providers: Providers,
    row: OperationRow,
    part: effects.EffectRow,
    plan: Plan,
    *,
    first: bool,
) -> Refused | None:
    """Make every check, keep them for the journal, and return why nothing may be opened."""
    world = plan.world
    made = revalidation.checks(providers, row, world, first=first)
    refused = revalidation.first_refusal(made)
    if part.status is EffectStatus.UNKNOWN:
        tries = [t for t in world.tries[row.key] if t.attempt.effect_id == part.id]
        again, asked = repeat_objection(engine, providers, part, tries, refused, world.chain.now)
        plan.recoveries += asked
        if refused is None or again is not refused:
            made = (*made, Check(CheckName.REPEAT, again))
        refused = again
    plan.checks[row.key] = revalidation.told(made)
    return refused


def _not_looked_at(
    engine: Engine, row: OperationRow, refused: Refused, plan: Plan, *, first: bool
) -> PutOff | Refused:
    """Wait until Slack has told who people are; a later opening waits no longer than for a desk.

    It counts from when somebody first asked for that look, or from what was done last.
    """
    world, (who, groups) = plan.world, revalidation.whom_to_look_at(refused)
    now = world.chain.now
    found = [
        *(world.people.get((row.tenant_id, person)) for person in who),
        *(world.rights.groups.get((row.tenant_id, group)) for group in groups),
    ]
    asked = [seen.wanted_at for seen in found if seen and seen.wanted_at]
    done = [t.reported_at for t in world.tries[row.key] if t.reported_at]
    since = max([min(asked, default=now), *done])
    if not first and now >= since + world.consents[row.key].use_within:
        return refused
    plan.looks += [(row.tenant_id, person) for person in who]
    plan.group_looks += [(row.tenant_id, group) for group in groups]
    shortest = timedelta(seconds=engine.durations.identity_retry_seconds)
    return PutOff(max(shortest, min(now - since, LONGEST_IDENTITY_WAIT)))


def _unseen(
    engine: Engine, row: OperationRow, sight: Sight | None, plan: Plan, *, first: bool
) -> PutOff | Refused | None:
    """Put off what cannot be decided because the ticket was not seen; ``None``: it was.

    The first opening waits until its time to use is over, which ends it; a later one for as long,
    counted from when the desk fell silent: its turn may come days after the first.
    """
    now = plan.world.chain.now
    if sight is not None and sight.is_usable(now):
        return None
    if sight is None:
        return PutOff(timedelta(seconds=engine.durations.retry_seconds))
    # A look that was too old when it came here tells as little as none.
    problem = sight.problem or TOO_SLOW
    since = row.desk_silent_since or now
    if not first and now >= since + plan.world.consents[row.key].use_within:
        return Refused(Reason.DESK_UNAVAILABLE, {"problem": problem})
    plan.wait_for_desk(row, since, problem)
    return PutOff(wait_for_desk(engine, since, now, sight.retry_after))


def _refuse(row: OperationRow, refused: Refused, plan: Plan, *, first: bool) -> NotOpened:
    """End the operation: stale where nothing was done, else with the truth about its parts."""
    world = plan.world
    if first:
        event: operation.Event = (
            operation.TimeRanOut(refused.reason)
            if refused.reason is Reason.TIME_TO_USE_OVER
            else operation.RevalidationFailed(refused)
        )
        plan.stale.append((row, world.consents.get(row.key), event))
        return NotOpened(refused)
    plan.void_unused(row, world.consents.get(row.key))
    parts = world.parts[row.key]
    # What is still unknown may turn out to be done, and then the rest has its turn.
    in_doubt = any(part.status is EffectStatus.UNKNOWN for part in parts)
    kinds: list[tuple[EffectKind, EffectStatus]] = []
    for part in parts:
        status = part.status
        if status is EffectStatus.PLANNED and not in_doubt:
            skipped = Transition(status, EffectStatus.SKIPPED, "not_opened", refused.reason)
            plan.move_effect(row, part, skipped)
            status = EffectStatus.SKIPPED
        kinds.append((part.kind, status))
    detail: dict[str, JsonValue] = {
        **row.detail,
        **refused.detail,
        "not_opened": refused.reason.value,
    }
    event = operation.EffectsMoved(statuses_that_tell(kinds), detail=detail)
    decision = operation.decide(row.status, event)
    if isinstance(decision, Transition):
        ended = Transition(decision.source, decision.target, decision.event, refused.reason, detail)
        unknown = decision.target is OperationStatus.UNKNOWN
        plan.move(row, ended, ended_at=None if unknown else world.chain.now)
    return NotOpened(refused)


def _keep_learnt_stamp(row: OperationRow, sight: Sight | None, plan: Plan) -> None:
    """Keep the version that our close made, where its answer did not tell and a reading did."""
    if sight is None or row.closed_stamp is not None:
        return
    stamp = learnt_stamp(sight, plan.world.parts[row.key])
    if stamp is not None:
        plan.closed_stamps.append((row.key, stamp))
        plan.keep_close(row, stamp)


def _open_first(
    engine: Engine, providers: Providers, claim: Claim, row: OperationRow, plan: Plan
) -> OpenResult:
    """Consume the approval, apply what is transactional, and record the first attempt."""
    consent = plan.world.consents[row.key]
    plan.consume(row, consent, claim.owner)
    opened: OpenResult = NotOpened()
    closed_version = None
    for part in plan.world.parts[row.key]:
        if part.capability is not Capability.TRANSACTIONAL:
            opened = _dispatch(engine, providers, claim, row, part, plan)
            break
        closed_version = plan.apply_part(row, part, consent)
    decision = operation.decide(row.status, operation.Opened())
    assert isinstance(decision, Transition)
    plan.move(
        row,
        decision,
        keeps_lease=True,
        opened_at=plan.world.chain.now,
        closed_version=closed_version,
    )
    if isinstance(opened, NotOpened):
        plan.finish(row)
    return opened


def _open_later(
    engine: Engine,
    providers: Providers,
    claim: Claim,
    row: OperationRow,
    part: effects.EffectRow,
    plan: Plan,
) -> OpenResult:
    plan.touched.append(row)
    consent = plan.world.consents[row.key]
    if consent.status is ApprovalStatus.GRANTED:
        plan.consume(row, consent, claim.owner)
    told = plan.checks[row.key]
    return _dispatch(engine, providers, claim, row, part, plan, told=told)


def _dispatch(
    engine: Engine,
    providers: Providers,
    claim: Claim,
    row: OperationRow,
    part: effects.EffectRow,
    plan: Plan,
    *,
    told: JsonObject | None = None,
) -> Opened:
    servers = plan.world.policies[row.tenant_id].servers
    account = providers.account_for(part.kind, part.provider, servers)
    assert account is not None, "the check of the provider has let it"
    attempt = plan.dispatch(engine, account, row, part, claim.owner, claim.epoch, told=told)
    return Opened(attempt, part, servers)
