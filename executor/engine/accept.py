"""T1: a proposal becomes an operation, or converges with one, or is refused; all in one commit.

By intent key: none live mints one; live and equal links to it; live and different in the same run
with nothing dispatched supersedes it; live and different in another run conflicts; succeeded
returns its result. An outside ticket is looked at before the transaction, and decided on while that
look is fresh. Locks: policies, runs, tickets, episodes, operations, approvals, cards, journal
heads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from executor.domain.closing import ProposeClosing
from executor.domain.errors import InvalidContent, StaleEpoch
from executor.domain.ids import RunId, TenantId
from executor.domain.intent import close_key
from executor.domain.journal import Chain
from executor.domain.operation import LIVE, OperationStatus
from executor.domain.payloads import JsonValue
from executor.domain.policy import Permission, Policy
from executor.domain.run import RunStatus
from executor.domain.stamp import DeskVersion, Stamp
from executor.domain.ticket import TicketStatus
from executor.domain.transition import Reason, Refused
from executor.engine import endings
from executor.engine.closure_email import ClosureEmails
from executor.engine.composing import Target, compose_closing
from executor.engine.converging import Acceptance, AcceptResult, Answered, converge
from executor.engine.engine import Engine
from executor.engine.failpoint import Commit
from executor.engine.providers import Providers
from executor.engine.revalidation import notification_objection
from executor.engine.sighting import TOO_SLOW, Sight, see_all
from executor.engine.tool_results import proposal_result, refusal_result
from executor.store import (
    approvals,
    cards,
    desk,
    effects,
    episodes,
    journal,
    operations,
    outside_tickets,
    proposals,
    runs,
    tenants,
)
from executor.store.cards import SubjectKind
from executor.store.connection import Connection
from executor.store.wakeups import Kind

MOST_LOOKS = 3
"""Looks at outside tickets for one step; a look that is too old when it is decided on is void."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One proposal of one tool call. ``version_read`` is what this run last read of the ticket."""

    step: int
    ordinal: int
    proposal: ProposeClosing
    version_read: DeskVersion | None


class _LookedTooLongAgo(Exception):
    """The outside tickets have to be looked at again; nothing was decided."""


async def accept(
    engine: Engine,
    providers: Providers,
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
    work = _Work(engine, providers, emails, run_key, epoch, asked, next_step)
    for looks_left in reversed(range(MOST_LOOKS)):
        sights: Mapping[str, Sight] | None = None
        if providers.desk is not None:
            wanted = [item.proposal.ticket_id for item in asked]
            sights = await see_all(engine, providers.desk, wanted)
        try:
            results = await _accept(work, sights, last_look=not looks_left)
        except _LookedTooLongAgo:
            continue
        engine.ring(Kind.CARDS)
        return results
    raise AssertionError("the last look is decided on, whatever its age")


@dataclass(frozen=True, slots=True)
class _Work:
    """What the proposals of one step are accepted with."""

    engine: Engine
    providers: Providers
    emails: ClosureEmails
    run_key: tuple[TenantId, RunId]
    epoch: int
    asked: Sequence[Asked]
    next_step: int


async def _accept(
    work: _Work, sights: Mapping[str, Sight] | None, *, last_look: bool
) -> list[AcceptResult]:
    tenant, engine = work.run_key[0], work.engine
    async with engine.committing(Commit.ACCEPT) as conn:
        policy = (await tenants.share_policies(conn, [tenant]))[tenant]
        row = await lock_working_run(conn, work.run_key, work.epoch)
        targets = await _lock_targets(conn, work, sights)
        keys = await _keys(conn, tenant, work.providers.desk_name, targets)
        state = await _lock_operations(conn, tenant, list(keys.values()))
        chain = await endings.lock_cards_and_chain(
            conn,
            [*state.live.values(), *state.succeeded.values()],
            runs_too=[work.run_key],
        )
        unread = _unread(sights or {}, chain, last_look=last_look)
        results: list[AcceptResult] = []
        next_step = work.next_step
        for item in work.asked:
            outcome = unread.get(item.proposal.ticket_id) or _decide(
                work, policy, row, targets, keys, state, item, chain
            )
            if isinstance(outcome, Answered):
                await runs.record_step(
                    conn,
                    work.run_key,
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
        await _apply(conn, state, row, chain, sights or {})
    return results


async def lock_working_run(
    conn: Connection, run_key: tuple[TenantId, RunId], epoch: int
) -> runs.RunRow:
    """Lock a run by id and compare the epoch under that lock; ``StaleEpoch`` if it is not ours."""
    row = (await runs.lock(conn, [run_key])).get(run_key)
    if row is None or row.status is not RunStatus.RUNNING or row.lease_epoch != epoch:
        raise StaleEpoch(epoch, -1 if row is None else row.lease_epoch)
    return row


async def _lock_targets(
    conn: Connection, work: _Work, sights: Mapping[str, Sight] | None
) -> dict[str, Target]:
    """Lock the tickets of the built-in desk; those of an outside one were seen before."""
    if sights is None:
        wanted = [item.proposal.ticket_id for item in work.asked]
        locked = await desk.lock_tickets(conn, work.run_key[0], wanted)
        return {id_: Target(ticket) for id_, ticket in locked.items()}
    return {
        id_: Target(sight.observation.ticket, sight.observation)
        for id_, sight in sights.items()
        if sight.observation is not None
    }


def _unread(sights: Mapping[str, Sight], chain: Chain, *, last_look: bool) -> dict[str, Answered]:
    """Answer for the tickets that the desk did not tell of in time."""
    answers = {}
    for id_, sight in sights.items():
        if sight.is_usable(chain.now):
            continue
        if sight.problem is None and not last_look:
            raise _LookedTooLongAgo
        problem = sight.problem or TOO_SLOW
        refused = Refused(Reason.DESK_UNAVAILABLE, {"ticket": id_, "problem": problem})
        answers[id_] = Answered(refusal_result(refused))
    return answers


async def _keys(
    conn: Connection, tenant: TenantId, desk_name: str, targets: Mapping[str, Target]
) -> dict[str, str]:
    """Name each ticket's closing in its current episode, counting a new one where it came back.

    The count's lock stands for that of an outside ticket.
    """
    counts = await episodes.lock(conn, [(tenant, desk_name, id_) for id_ in targets])
    keys = {}
    for (_, _, ticket_id), episode in counts.items():
        number = episode.number
        if _came_back(targets[ticket_id], episode.closed):
            number += 1
            await episodes.begin(conn, (tenant, desk_name, ticket_id), number)
        keys[ticket_id] = close_key(desk_name, ticket_id, number)
    return keys


def _came_back(target: Target, closed: DeskVersion | None) -> bool:
    """Say whether the ticket is open again at a version later than our own close of it."""
    if closed is None or target.ticket.status is not TicketStatus.OPEN:
        return False
    if isinstance(closed, Stamp):
        return target.stamp is not None and target.stamp.comes_after(closed)
    return target.stamp is None and target.ticket.version > closed


async def _lock_operations(conn: Connection, tenant: TenantId, keys: Sequence[str]) -> Acceptance:
    named = await operations.of_keys(conn, [(tenant, key) for key in keys])
    rows = await operations.lock(conn, [(t, id_) for t, id_, *_ in named])
    consents = await approvals.lock(conn, list(rows))
    live = {r.intent_key: r for r in rows.values() if r.status in LIVE}
    done = {r.intent_key: r for r in rows.values() if r.status is OperationStatus.SUCCEEDED}
    return Acceptance(live, consents, done)


def _decide(
    work: _Work,
    policy: Policy,
    row: runs.RunRow,
    targets: Mapping[str, Target],
    keys: dict[str, str],
    state: Acceptance,
    item: Asked,
    chain: Chain,
) -> AcceptResult:
    target = targets.get(item.proposal.ticket_id)
    if target is None:
        return Answered(
            refusal_result(Refused(Reason.TICKET_UNKNOWN, {"ticket": item.proposal.ticket_id}))
        )
    key = keys[target.ticket.id]
    done = state.succeeded.get(key)
    if done is not None and key not in state.live:
        return Answered(proposal_result(done.status, done.number, Reason.ALREADY_DONE, {}))
    refused = _refuse(policy, work.providers, row, target, item)
    if refused is not None:
        return Answered(refusal_result(refused))
    try:
        intent = compose_closing(
            work.engine.mint,
            work.providers,
            work.emails,
            policy,
            row,
            target,
            key,
            item.proposal,
        )
    except InvalidContent as error:
        detail = {"field": error.field, "problem": error.problem, "remedy": error.remedy}
        return Answered(refusal_result(Refused(Reason.CONTENT_INVALID, detail)))
    called = (item.step, item.ordinal)
    return converge(work.engine, policy, row, target, state, called, intent, chain)


def _refuse(
    policy: Policy, providers: Providers, row: runs.RunRow, target: Target, item: Asked
) -> Refused | None:
    objection = policy.objection(row.requester, Permission.REQUEST)
    if objection is not None:
        return objection
    ticket = target.ticket
    if ticket.status is TicketStatus.CLOSED:
        return Refused(Reason.TICKET_CLOSED, {"ticket": ticket.id, "version": ticket.version})
    if item.version_read is None:
        return Refused(Reason.VERSION_NOT_READ, {"ticket": ticket.id})
    if item.version_read != target.version:
        detail: dict[str, JsonValue] = {"ticket": ticket.id, "version": ticket.version}
        if isinstance(item.version_read, int):
            detail["read"] = item.version_read
        return Refused(Reason.VERSION_CHANGED, detail)
    return notification_objection(policy, providers.desk)


async def _apply(
    conn: Connection,
    state: Acceptance,
    row: runs.RunRow,
    chain: Chain,
    sights: Mapping[str, Sight],
) -> None:
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
    seen = [kept for sight in sights.values() for kept in sight.seen_by(row.tenant_id)]
    await outside_tickets.keep(conn, seen)
    await journal.advance(conn, chain)
