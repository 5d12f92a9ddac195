"""T7: a run ends; what it has not opened is withdrawn, what it has opened is told truthfully.

Used by cancel, by every limit, and by the driver when the model is done. Locks: runs, operations,
approvals, cards, journal heads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from executor.domain import approval, identity, operation, run
from executor.domain.authority import Authority
from executor.domain.ids import PrincipalId, RunId, TenantId
from executor.domain.journal import Chain
from executor.domain.operation import IN_DOUBT, OperationStatus
from executor.domain.payloads import JsonObject
from executor.domain.policy import Permission, WhenTimeIsOver
from executor.domain.run import ENDED, RunStatus
from executor.domain.transition import Machine, NoChange, Reason, Refused, Transition
from executor.engine.engine import Engine
from executor.engine.failpoint import Commit
from executor.engine.rights import read_rights
from executor.store import (
    approvals,
    cards,
    journal,
    operation_lookups,
    operations,
    progress,
    runs,
    tenants,
)
from executor.store.cards import SubjectKind
from executor.store.connection import Connection
from executor.store.operations import OperationKey
from executor.store.people import read_identities
from executor.store.wakeups import Kind


@dataclass(frozen=True, slots=True)
class Stopped:
    """The run as the stop left it.

    ``sending`` numbers operations that had been opened before, ``done`` those that were done.
    """

    run_id: RunId
    number: int
    status: RunStatus
    withdrawn: tuple[int, ...]
    sending: tuple[int, ...]
    done: tuple[int, ...] = ()


RunKey = tuple[TenantId, RunId]


async def cancel(
    engine: Engine, tenant: TenantId, number: int, principal: PrincipalId
) -> Stopped | Refused:
    """Stop a run at a person's word.

    Opens its own transaction. A second cancel is refused with ``ALREADY_ENDED``, or returns the run
    as it is while something opened is not yet known. Who may not cancel is journaled, as whoever
    may not decide is. Raises ``CommitUnknown``.
    """
    async with engine.committing(Commit.CANCEL) as conn:
        policies = await tenants.share_policies(conn, [tenant])
        people = await read_identities(conn, [(tenant, principal)])
        rights = await read_rights(conn, policies, [(tenant, principal)])
        run_id = await runs.find(conn, tenant, number)
        policy = policies.get(tenant)
        if run_id is None or policy is None:
            return Refused(Reason.RUN_UNKNOWN, {"run": number})
        locked = await lock_run_with_operations(conn, [(tenant, run_id)])
        row = locked.runs[tenant, run_id]
        chain = await locked.chain(conn)
        objection = objection_to_cancelling(
            rights.authority(policy, chain.now), row.requester, principal
        ) or identity.objection(people.get((tenant, principal)), policy.slack.team, now=chain.now)
        if objection is not None:
            asked: JsonObject = {"asked": "cancel", "reason": objection.reason.value}
            refused = chain.note(tenant, run_id, run_id, "decision_refused", principal, asked)
            await journal.write_notes(conn, [refused])
            await journal.advance(conn, chain)
            return objection
        result = await stop_locked(conn, locked, row, Reason.CANCELLED, principal, chain)
        await journal.advance(conn, chain)
    engine.ring(Kind.CARDS)
    engine.ring(Kind.WORK)
    return result


def objection_to_cancelling(
    authority: Authority, requester: PrincipalId, principal: PrincipalId
) -> Refused | None:
    """Say why somebody may not stop a run: whoever asked for it may, and whoever may approve."""
    if principal == requester:
        return None
    refused = authority.objection(principal, Permission.APPROVE)
    if refused is not None and refused.reason is Reason.NOT_PERMITTED:
        return Refused(refused.reason, {"missing": Permission.CANCEL.value})
    return refused


@dataclass(frozen=True, slots=True)
class Locked:
    """Runs with all their operations and approvals, locked in order."""

    runs: dict[RunKey, runs.RunRow]
    operations: dict[OperationKey, operations.OperationRow]
    approvals: dict[OperationKey, approval.Approval]

    async def chain(self, conn: Connection) -> Chain:
        """Lock the cards, then the journal's heads, last of all, and read the time."""
        return await lock_cards_and_chain(
            conn, list(self.operations.values()), runs_too=list(self.runs)
        )


async def lock_cards_and_chain(
    conn: Connection,
    rows: Sequence[operations.OperationRow],
    *,
    runs_too: Sequence[RunKey] = (),
) -> Chain:
    """Take the last locks: the cards of operations and runs, then the journal's heads."""
    await cards.lock(conn, [*(row.key for row in rows), *runs_too])
    return await journal.lock_chain(
        conn, {*((row.tenant_id, row.run_id) for row in rows), *runs_too}
    )


async def lock_run_with_operations(
    conn: Connection, keys: Sequence[RunKey], also: Sequence[OperationKey] = ()
) -> Locked:
    """Lock runs, then the operations that belong to them and ``also``, then their approvals."""
    rows = await runs.lock(conn, keys)
    mine = await operation_lookups.of_runs(conn, rows)
    locked = await operations.lock(conn, [*((tenant, id_) for tenant, id_, *_ in mine), *also])
    return Locked(rows, locked, await approvals.lock(conn, list(locked)))


async def stop_locked(
    conn: Connection,
    locked: Locked,
    row: runs.RunRow,
    reason: Reason,
    actor: str,
    chain: Chain,
    summary: str | None = None,
) -> Stopped | Refused:
    """End a locked run other than by success, with everything of it that was not opened."""
    mine = [o for o in locked.operations.values() if (o.tenant_id, o.run_id) == row.key]
    in_doubt = [o for o in mine if o.status in IN_DOUBT]
    decision = run.decide(row.status, run.Stopped(reason, bool(in_doubt)))
    sending = tuple(o.number for o in in_doubt)
    done = tuple(o.number for o in mine if o.status is OperationStatus.SUCCEEDED)
    if isinstance(decision, Refused):
        return Refused(decision.reason, {"run": row.number, "status": row.status.value})
    if isinstance(decision, NoChange):
        return Stopped(row.id, row.number, row.status, (), sending, done)
    withdrawn = await withdraw_unopened(conn, locked, row, reason, actor, chain)
    await move_run(conn, row, decision, actor, chain, summary=summary)
    return Stopped(row.id, row.number, decision.target, withdrawn, sending, done)


async def complete_locked(
    conn: Connection, locked: Locked, row: runs.RunRow, summary: str, actor: str, chain: Chain
) -> None:
    """End a locked run successfully; every ending withdraws what was not opened."""
    decision = run.decide(row.status, run.Completed())
    if isinstance(decision, Transition):
        await withdraw_unopened(conn, locked, row, Reason.COMPLETED, actor, chain)
        await move_run(conn, row, decision, actor, chain, summary=summary)


async def move_run(
    conn: Connection,
    row: runs.RunRow,
    transition: Transition[RunStatus],
    actor: str,
    chain: Chain,
    *,
    summary: str | None = None,
    due_at: datetime | None = None,
    wants_card: bool = True,
) -> None:
    """Apply one transition of a locked run; it is told on its card, which is locked too.

    ``due_at`` is when a worker should look at it again by itself.
    """
    ended = transition.target in ENDED
    if ended and wants_card:
        await cards.want(conn, [(row.tenant_id, row.id, SubjectKind.RUN)], chain.now)
    elif not ended:
        await progress.want(conn, [row.key])
    entry = chain.move(Machine.RUN, row.tenant_id, row.id, row.id, row.seq, transition, actor)
    await runs.move(
        conn,
        [
            runs.RunMove(
                row,
                transition,
                entry,
                due_at=due_at,
                ended_at=chain.now if ended else None,
                summary=summary,
            )
        ],
    )


async def withdraw_unopened(
    conn: Connection,
    locked: Locked,
    row: runs.RunRow,
    reason: Reason,
    actor: str,
    chain: Chain,
) -> tuple[int, ...]:
    """Withdraw what the run has not opened and return the operations' numbers."""
    mine = [
        o
        for o in locked.operations.values()
        if (o.tenant_id, o.run_id) == row.key and o.status in operation.UNOPENED
    ]
    await end_unopened(
        conn,
        [(o, locked.approvals.get(o.key), operation.RunEnded(reason)) for o in mine],
        actor,
        chain,
    )
    return tuple(o.number for o in mine)


async def end_unopened(
    conn: Connection,
    endings: Sequence[tuple[operations.OperationRow, approval.Approval | None, operation.Event]],
    actor: str,
    chain: Chain,
    *,
    told: Mapping[OperationKey, JsonObject] | None = None,
) -> None:
    """End operations that were never opened, together with what is left of their approvals.

    The operations and approvals are locked, and so are the heads in ``chain``. ``told`` is what the
    journal alone keeps of an ending, by operation.
    """
    moves: list[operations.OperationMove] = []
    approval_moves: list[approvals.ApprovalMove] = []
    for row, consent, event in endings:
        decision = operation.decide(row.status, event)
        if not isinstance(decision, Transition):
            continue
        if consent is not None:
            withdrawn = decision.target is OperationStatus.WITHDRAWN
            ended = approval.decide(consent, _approval_event(event, withdrawn), now=chain.now)
            if isinstance(ended, approval.Moved) and ended.transition is not None:
                approval_moves.append(
                    approval_move(row, consent, ended.approval, ended.transition, actor, chain)
                )
        kept = replace(decision, detail={**decision.detail, **(told or {}).get(row.key, {})})
        entry = chain.move(
            Machine.OPERATION, row.tenant_id, row.run_id, row.id, row.seq, kept, actor
        )
        moves.append(operations.OperationMove(row, decision, entry, ended_at=chain.now))
    await cards.want(
        conn, [(m.row.tenant_id, m.row.id, SubjectKind.OPERATION) for m in moves], chain.now
    )
    await approvals.move(conn, approval_moves)
    await operations.move(conn, moves)


def _approval_event(event: operation.Event, withdrawn: bool) -> approval.Event:
    if isinstance(event, operation.TimeRanOut):
        return approval.TimePassed()
    return approval.OperationEnded(withdrawn)


def approval_move(
    row: operations.OperationRow,
    before: approval.Approval,
    after: approval.Approval,
    transition: Transition[approval.ApprovalStatus],
    actor: str,
    chain: Chain,
) -> approvals.ApprovalMove:
    """Chain one move of an approval into its operation's run."""
    entry = chain.move(
        Machine.APPROVAL, row.tenant_id, row.run_id, before.id, before.seq, transition, actor
    )
    live = after.status in (approval.ApprovalStatus.OPEN, approval.ApprovalStatus.GRANTED)
    return approvals.ApprovalMove(
        row.tenant_id, before, after, transition, entry, None if live else chain.now
    )


async def expire(engine: Engine, keys: Sequence[OperationKey]) -> int:
    """End operations whose time to decide, or to use, is over; returns how many.

    Approvals of repeats end as well: their time is over, or the doubt that they are about. Opens
    its own transaction. What somebody opened or decided meanwhile is left as it is.
    """
    async with engine.committing(Commit.EXPIRE) as conn:
        rows = await operations.lock(conn, keys)
        consents = await approvals.lock(conn, list(rows))
        repeats = await approvals.repeats_under_way(conn, list(rows))
        chain = await lock_cards_and_chain(conn, list(rows.values()))
        endings, unused = [], []
        for key, row in rows.items():
            if row.status not in operation.UNOPENED:
                if key in repeats and (ended := _unused_repeat(row, repeats[key], chain)):
                    unused.append(ended)
                continue
            consent = consents.get(key)
            if consent is None:
                continue
            passed = approval.decide(consent, approval.TimePassed(), now=chain.now)
            if isinstance(passed, approval.Moved) and passed.transition is not None:
                endings.append((row, consent, time_ran_out(consent)))
        await end_unopened(conn, endings, "clock", chain)
        await approvals.move(conn, unused)
        await cards.want(
            conn,
            [(m.tenant_id, m.before.operation_id, SubjectKind.OPERATION) for m in unused],
            chain.now,
        )
        await journal.advance(conn, chain)
    engine.ring(Kind.CARDS)
    return len(endings) + len(unused)


def time_ran_out(consent: approval.Approval) -> operation.TimeRanOut:
    """Say what the end of its time does to an operation; ``consent`` is as it was before."""
    if consent.status is approval.ApprovalStatus.GRANTED:
        return operation.TimeRanOut(Reason.TIME_TO_USE_OVER)
    stops = consent.terms.when_time_is_over is WhenTimeIsOver.STOP_RUN
    return operation.TimeRanOut(Reason.EXPIRED, stops)


def _unused_repeat(
    row: operations.OperationRow, repeat: approval.Approval, chain: Chain
) -> approvals.ApprovalMove | None:
    """End what would let something be tried once more, where nothing comes of it any more."""
    decided = approval.decide(repeat, approval.TimePassed(), now=chain.now)
    if not isinstance(decided, approval.Moved) and row.status not in IN_DOUBT:
        decided = approval.decide(repeat, approval.OperationEnded(withdrawn=False), now=chain.now)
    if not isinstance(decided, approval.Moved) or decided.transition is None:
        return None
    return approval_move(row, repeat, decided.approval, decided.transition, "clock", chain)


async def stop_for_time(engine: Engine, key: RunKey) -> None:
    """End a run whose wall time, or whose time to wait, is over, once. Opens its own transaction.

    Whoever has woken it meanwhile, or put it back to wait, has come first.
    """
    async with engine.committing(Commit.END_RUN) as conn:
        locked = await lock_run_with_operations(conn, [key])
        chain = await locked.chain(conn)
        row = locked.runs.get(key)
        reason = None if row is None else _time_over(row, chain.now)
        if row is None or reason is None:
            return
        await stop_locked(conn, locked, row, reason, "clock", chain)
        await journal.advance(conn, chain)
    engine.ring(Kind.CARDS)


def _time_over(row: runs.RunRow, now: datetime) -> Reason | None:
    if now >= row.deadline_at:
        return Reason.TIME_LIMIT
    if row.parked_until is not None and now >= row.parked_until:
        return Reason.PARKED_TOO_LONG
    return None
