"""T1: a proposal becomes an operation, or converges with one, or is refused; all in one commit.

By intent key: none live mints one; live and equal links to it; live and different in the same run
with nothing dispatched supersedes it; live and different in another run conflicts; succeeded
returns its result, and so does what was rejected word for word (see ``converging``). An outside
ticket is looked at before the transaction, and decided on while that look is fresh. Locks:
policies, runs, tickets, episodes, operations, approvals, cards, journal heads.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from executor.domain.address import parse_mailbox
from executor.domain.authority import Authority
from executor.domain.closing import ProposeClosing
from executor.domain.errors import InvalidContent, StaleEpoch
from executor.domain.grant import Resource
from executor.domain.ids import RunId, TenantId, policy_principal
from executor.domain.intent import CLOSE_TICKET
from executor.domain.journal import Chain
from executor.domain.operation import LIVE, OperationStatus
from executor.domain.payloads import JsonValue
from executor.domain.policy import Permission, Policy
from executor.domain.risk import assess
from executor.domain.run import RunStatus
from executor.domain.stamp import DeskVersion
from executor.domain.ticket import TicketStatus
from executor.domain.transition import Reason, Refused
from executor.engine import endings
from executor.engine.closure_email import ClosureEmails
from executor.engine.composing import Target, compose_closing
from executor.engine.converging import Acceptance, AcceptResult, Answered, converge, record_answered
from executor.engine.engine import Engine
from executor.engine.episode_keys import closing_keys
from executor.engine.failpoint import Commit
from executor.engine.policy_consent import consent_by_policy
from executor.engine.providers import Providers
from executor.engine.revalidation import notification_objection
from executor.engine.rights import read_rights
from executor.engine.sighting import TOO_SLOW, Sight, see_all
from executor.engine.tool_results import proposal_result, refusal_result
from executor.store import (
    approvals,
    cards,
    desk,
    effects,
    journal,
    operation_lookups,
    operations,
    outside_tickets,
    progress,
    proposals,
    revisions,
    runs,
    tenants,
)
from executor.store.cards import SubjectKind
from executor.store.connection import Connection
from executor.store.wakeups import Kind

T = TypeVar("T")

MOST_LOOKS = 3
"""Looks at outside tickets for one step; a look that is too old when it is decided on is void."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One proposal of one tool call. ``version_read`` is what this run last read of the ticket.

    With ``as_it_stands`` it is about the version that the ticket has when it is accepted.
    """

    step: int
    ordinal: int
    proposal: ProposeClosing
    version_read: DeskVersion | None
    as_it_stands: bool = False


@dataclass(frozen=True, slots=True)
class Work:
    """Proposals, and what they are accepted with."""

    engine: Engine
    providers: Providers
    emails: ClosureEmails
    asked: Sequence[Asked]


Sights = Mapping[str, Sight]


class LookedTooLongAgo(Exception):
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
    work = Work(engine, providers, emails, asked)

    async def once(sights: Sights | None, last_look: bool) -> list[AcceptResult]:
        return await _accept(work, run_key, epoch, next_step, sights, last_look=last_look)

    results = await looked(engine, providers, [a.proposal.ticket_id for a in asked], once)
    engine.ring(Kind.CARDS)
    return results


async def looked(
    engine: Engine,
    providers: Providers,
    ticket_ids: Sequence[str],
    once: Callable[[Sights | None, bool], Awaitable[T]],
) -> T:
    """Look at outside tickets and do something on it, again as long as the look was too long ago.

    Without an outside desk there are no sights. The last look is decided on, whatever its age.
    """
    for looks_left in reversed(range(MOST_LOOKS)):
        sights = None
        if providers.desk is not None:
            sights = await see_all(engine, providers.desk, ticket_ids)
        try:
            return await once(sights, not looks_left)
        except LookedTooLongAgo:
            continue
    raise AssertionError("the last look is decided on, whatever its age")


async def _accept(
    work: Work,
    run_key: tuple[TenantId, RunId],
    epoch: int,
    next_step: int,
    sights: Sights | None,
    *,
    last_look: bool,
) -> list[AcceptResult]:
    tenant = run_key[0]
    async with work.engine.committing(Commit.ACCEPT) as conn:
        policy = (await tenants.share_policies(conn, [tenant]))[tenant]
        row = await lock_working_run(conn, run_key, epoch)
        scene = await lock_proposals(conn, work, policy, row, sights, last_look=last_look)
        results, state = scene.decide(scene.chain)
        called = [(item.step, item.ordinal) for item in work.asked]
        await record_answered(
            conn, work.engine, run_key, called, results, next_step, scene.chain.now
        )
        await progress.want(conn, [run_key])
        await write_accepted(conn, scene, state)
    return results


@dataclass(frozen=True, slots=True)
class ProposalScene:
    """Proposals of one run with everything around them locked; ``known`` is what there is of it."""

    work: Work
    row: runs.RunRow
    authority: Authority
    targets: Mapping[str, Target]
    keys: Mapping[str, str]
    contacts: frozenset[str]
    known: Acceptance
    unread: Mapping[str, Answered]
    sights: Sights
    chain: Chain

    def decide(self, chain: Chain) -> tuple[list[AcceptResult], Acceptance]:
        """Decide about every proposal, in order, on ``chain``; nothing is written."""
        known = self.known
        state = Acceptance(known.live, known.consents, known.succeeded, known.rejected)
        return [
            self.unread.get(item.proposal.ticket_id) or _decide(self, state, item, chain)
            for item in self.work.asked
        ], state


async def lock_proposals(
    conn: Connection,
    work: Work,
    policy: Policy,
    row: runs.RunRow,
    sights: Sights | None,
    *,
    last_look: bool,
) -> ProposalScene:
    """Take the locks that follow the run's; raises ``LookedTooLongAgo`` unless it is the last look.

    ``row`` is locked, or is that of a run that nobody can see yet.
    """
    tenant = row.tenant_id
    targets = await _lock_targets(conn, tenant, work, sights)
    rights = await read_rights(conn, {tenant: policy}, [(tenant, row.requester)])
    contacts = await effects.known_recipients(conn, tenant, _addressed(work.asked, targets))
    keys = await closing_keys(conn, tenant, work.providers.desk_name, targets)
    known = await _lock_operations(conn, tenant, list(keys.values()))
    chain = await endings.lock_cards_and_chain(
        conn, [*known.live.values(), *known.succeeded.values()], runs_too=[row.key]
    )
    return ProposalScene(
        work,
        row,
        rights.authority_to_propose(policy, chain.now),
        targets,
        keys,
        contacts,
        known,
        _unread(sights or {}, chain, last_look=last_look),
        sights or {},
        chain,
    )


async def lock_working_run(
    conn: Connection, run_key: tuple[TenantId, RunId], epoch: int
) -> runs.RunRow:
    """Lock a run by id and compare the epoch under that lock; ``StaleEpoch`` if it is not ours."""
    row = (await runs.lock(conn, [run_key])).get(run_key)
    if row is None or row.status is not RunStatus.RUNNING or row.lease_epoch != epoch:
        raise StaleEpoch(epoch, -1 if row is None else row.lease_epoch)
    return row


async def _lock_targets(
    conn: Connection, tenant: TenantId, work: Work, sights: Sights | None
) -> dict[str, Target]:
    """Lock the tickets of the built-in desk; those of an outside one were seen before."""
    if sights is None:
        wanted = [item.proposal.ticket_id for item in work.asked]
        locked = await desk.lock_tickets(conn, tenant, wanted)
        return {id_: Target(ticket) for id_, ticket in locked.items()}
    return {
        id_: Target(sight.observation.ticket, sight.observation)
        for id_, sight in sights.items()
        if sight.observation is not None
    }


def _unread(sights: Sights, chain: Chain, *, last_look: bool) -> dict[str, Answered]:
    """Answer for the tickets that the desk did not tell of in time."""
    answers = {}
    for id_, sight in sights.items():
        if sight.is_usable(chain.now):
            continue
        if sight.problem is None and not last_look:
            raise LookedTooLongAgo
        problem = sight.problem or TOO_SLOW
        refused = Refused(Reason.DESK_UNAVAILABLE, {"ticket": id_, "problem": problem})
        answers[id_] = Answered(refusal_result(refused))
    return answers


async def _lock_operations(conn: Connection, tenant: TenantId, keys: Sequence[str]) -> Acceptance:
    named = await operation_lookups.of_keys(conn, [(tenant, key) for key in keys])
    rows = await operations.lock(conn, [(t, id_) for t, id_, *_ in named])
    consents = await approvals.lock(conn, list(rows))
    live = {r.intent_key: r for r in rows.values() if r.status in LIVE}
    done = {r.intent_key: r for r in rows.values() if r.status is OperationStatus.SUCCEEDED}
    rejected = await revisions.rejected_of_keys(conn, tenant, keys)
    return Acceptance(live, consents, done, rejected)


def _decide(scene: ProposalScene, state: Acceptance, item: Asked, chain: Chain) -> AcceptResult:
    work, row, policy = scene.work, scene.row, scene.authority.policy
    target = scene.targets.get(item.proposal.ticket_id)
    # Asked first: who may not ask is not told either whether there is such a ticket.
    objection = _objection(scene, item.proposal.ticket_id, target)
    if objection is not None:
        return Answered(refusal_result(objection))
    if target is None:
        return Answered(
            refusal_result(Refused(Reason.TICKET_UNKNOWN, {"ticket": item.proposal.ticket_id}))
        )
    key = scene.keys[target.ticket.id]
    done = state.succeeded.get(key)
    if done is not None and key not in state.live:
        return Answered(proposal_result(done.status, done.number, Reason.ALREADY_DONE, {}))
    refused = _refuse(scene.authority, work.providers, target, item)
    if refused is not None:
        return Answered(refusal_result(refused))
    try:
        intent, email = compose_closing(
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
    risks = assess(
        email,
        target.ticket,
        item.proposal.language,
        own_domains=policy.email.domains,
        contacts=scene.contacts,
    )
    called = (item.step, item.ordinal)
    return converge(work.engine, policy, row, target, state, called, intent, risks, chain)


def _addressed(asked: Sequence[Asked], targets: Mapping[str, Target]) -> list[str]:
    """Name every address that a proposal might write to; what is none is refused later."""
    written = [a for item in asked for a in (*(item.proposal.to or ()), *item.proposal.cc)]
    written += [target.ticket.customer_email for target in targets.values()]
    found = []
    for address in written:
        with suppress(InvalidContent):
            found.append(parse_mailbox(address, field="to").ascii_address)
    return found


def _objection(scene: ProposalScene, asked: str, target: Target | None) -> Refused | None:
    """Say why the requester may not ask to close this ticket, whether or not there is one."""
    desk_name, id_ = scene.work.providers.desk_name, asked
    if target is not None:
        desk_name, id_ = target.ticket.desk, target.ticket.id
    resource = Resource(CLOSE_TICKET, desk_name, id_)
    return scene.authority.objection(scene.row.requester, Permission.REQUEST, resource)


def _refuse(
    authority: Authority, providers: Providers, target: Target, item: Asked
) -> Refused | None:
    ticket = target.ticket
    if ticket.status is TicketStatus.CLOSED:
        return Refused(Reason.TICKET_CLOSED, {"ticket": ticket.id, "version": ticket.version})
    read = target.version if item.as_it_stands else item.version_read
    if read is None:
        return Refused(Reason.VERSION_NOT_READ, {"ticket": ticket.id})
    if read != target.version:
        detail: dict[str, JsonValue] = {"ticket": ticket.id, "version": ticket.version}
        if isinstance(read, int):
            detail["read"] = read
        return Refused(Reason.VERSION_CHANGED, detail)
    return notification_objection(authority.policy, providers.desk)


async def write_accepted(conn: Connection, scene: ProposalScene, state: Acceptance) -> None:
    """Write what was decided; superseded ones leave their key before new ones take it."""
    row, chain = scene.row, scene.chain
    await endings.end_unopened(conn, state.superseded, row.requester, chain)
    await write_minted(conn, state, chain)
    seen = [kept for sight in scene.sights.values() for kept in sight.seen_by(row.tenant_id)]
    await outside_tickets.keep(conn, seen)
    await journal.advance(conn, chain)


async def write_minted(conn: Connection, state: Acceptance, chain: Chain) -> None:
    """Write the operations that were minted, and which tool calls wait for which operation."""
    minted = list(state.minted.values())
    if minted:
        await operations.insert(conn, minted, chain.now)
        await effects.insert(conn, state.new_effects)
        await approvals.insert(conn, state.new_approvals, chain.now)
        who = policy_principal(minted[0].policy_version)
        await consent_by_policy(conn, chain, state.consented, who)
    if state.proposals:
        await proposals.record(conn, state.proposals, chain.now)
        touched = {(p.tenant_id, p.operation_id, SubjectKind.OPERATION) for p in state.proposals}
        await cards.want(conn, touched, chain.now)
