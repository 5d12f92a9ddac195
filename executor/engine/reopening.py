"""Mints the operation that opens a ticket again, in a run of its own that nobody drives.

The policy asks for it; whoever asked for the closing counts as having asked for this as well, and
may not be the one who approves it. Where the policy asks no person, its own consent is a decision
on the same approval. Runs in the caller's transaction, which holds the closing's lock.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

from executor.domain import approval, operation, run
from executor.domain.approval import Approval, Vote
from executor.domain.errors import LostRace
from executor.domain.ids import (
    OperationId,
    PrincipalId,
    RunId,
    operation_label,
    policy_principal,
)
from executor.domain.payloads import digest
from executor.domain.policy import Policy
from executor.domain.run import RunStatus
from executor.domain.transition import Machine, Transition
from executor.engine import endings
from executor.engine.composing import Target
from executor.engine.composing_reopening import compose_reopening
from executor.engine.engine import Engine
from executor.engine.minting import new_approval, new_effects, new_operation
from executor.engine.providers import Providers
from executor.engine.revalidation import World
from executor.store import approvals, cards, effects, journal, operations, proposals, runs
from executor.store.cards import SubjectKind
from executor.store.connection import Connection
from executor.store.operations import OperationRow

ACTOR = "executor"
ORIGIN = "compensation:{closing}"


@dataclass(frozen=True, slots=True)
class Proposed:
    """The reopening that was minted."""

    id: OperationId
    number: int


async def propose(
    conn: Connection,
    engine: Engine,
    providers: Providers,
    world: World,
    closing: OperationRow,
    target: Target,
    by_policy: bool,
) -> Proposed:
    """Mint the reopening of ``closing``, whose ticket is ``target``; see this module."""
    policy = world.policies[closing.tenant_id]
    requester = policy_principal(policy.version)
    intent = compose_reopening(engine.mint, providers.desk, policy, requester, closing, target)
    run_id = RunId(engine.mint())
    born = await journal.lock_chain(conn, [(closing.tenant_id, run_id)])
    world.chain.heads.update(born.heads)
    await _start_run(conn, world, closing, policy, run_id)
    minted = new_operation(
        engine,
        world.chain,
        policy,
        (closing.tenant_id, run_id),
        requester,
        target,
        intent,
        compensates=closing.id,
    )
    number = (await operations.insert(conn, [minted], world.chain.now))[minted.id]
    await effects.insert(conn, new_effects(world.chain, minted))
    # By as many people as always, or by the policy alone.
    quorum = 1 if by_policy else policy.approval.quorum
    opened = new_approval(engine, world.chain, policy, minted, quorum, {"by_policy": by_policy})
    await approvals.insert(conn, [opened], world.chain.now)
    await proposals.record(conn, _asked(world, closing, minted), world.chain.now)
    if by_policy:
        await _consent(conn, world, minted, opened.approval)
    await cards.want(conn, [(minted.tenant_id, minted.id, SubjectKind.OPERATION)], world.chain.now)
    return Proposed(minted.id, number)


async def _start_run(
    conn: Connection, world: World, closing: OperationRow, policy: Policy, run_id: RunId
) -> None:
    """Start the run and let it wait for its one operation; nobody drives it."""
    tenant, chain = closing.tenant_id, world.chain
    origin, requester = ORIGIN.format(closing=closing.id), policy_principal(policy.version)
    goal = (
        f"decide whether ticket {closing.ticket_id} is opened again, for the email of "
        f"{operation_label(closing.number)} was not sent"
    )
    new = runs.NewRun(
        tenant,
        run_id,
        goal,
        requester,
        origin,
        digest({"goal": goal, "requester": requester}),
        {},
        policy.version,
        chain.now + timedelta(seconds=policy.run.max_seconds),
        chain.birth(
            Machine.RUN,
            tenant,
            run_id,
            run_id,
            RunStatus.QUEUED,
            ACTOR,
            {"goal": goal, "origin_key": origin},
        ),
        driven=False,
    )
    if run_id not in await runs.insert_runs(conn, [new], chain.now):
        raise LostRace("insert_runs", 1)
    row = (await runs.lock(conn, [(tenant, run_id)]))[tenant, run_id]
    for event in (run.Claimed(), run.MustWait()):
        moved = run.decide(row.status, event)
        assert isinstance(moved, Transition)
        await endings.move_run(conn, row, moved, ACTOR, chain)
        row = replace(row, status=moved.target, seq=row.seq + 1)


def _asked(
    world: World, closing: OperationRow, minted: operations.NewOperation
) -> list[proposals.Proposal]:
    """Name whoever asked for the closing: none of them may approve this on their own."""
    people = sorted({who for who, _ in world.asked.get(closing.key, [])} | {closing.requester})
    return [
        proposals.Proposal(
            minted.tenant_id,
            minted.run_id,
            1,
            ordinal,
            minted.id,
            PrincipalId(who),
            linked=False,
        )
        for ordinal, who in enumerate(people, start=1)
    ]


async def _consent(
    conn: Connection, world: World, minted: operations.NewOperation, consent: Approval
) -> None:
    """Let the policy consent: a decision on the approval, and the operation is due."""
    chain, who = world.chain, minted.requester
    [row] = (await operations.lock(conn, [(minted.tenant_id, minted.id)])).values()
    decided = approval.decide(consent, approval.PolicyConsents(who), now=chain.now)
    assert isinstance(decided, approval.Moved)
    assert decided.transition is not None
    vote = approvals.Decision(
        minted.tenant_id,
        consent.id,
        who,
        Vote.APPROVE,
        "",
        consent.digest,
        consent.content_revision,
        None,
        {},
        None,
    )
    await approvals.record_decisions(conn, [vote], chain.now)
    await approvals.move(
        conn,
        [endings.approval_move(row, consent, decided.approval, decided.transition, who, chain)],
    )
    granted = operation.decide(row.status, operation.Granted())
    assert isinstance(granted, Transition)
    entry = chain.move(Machine.OPERATION, row.tenant_id, row.run_id, row.id, row.seq, granted, who)
    await operations.move(conn, [operations.OperationMove(row, granted, entry, due_at=chain.now)])
