"""Mints the operation that opens a ticket again, in a run of its own that nobody drives.

The policy asks for it; whoever asked for the closing counts as having asked for this as well, and
may not be the one who approves it. Where the policy asks no person, its own consent is a decision
on the same approval. Runs in the caller's transaction, which holds the closing's lock.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from executor.domain.ids import (
    OperationId,
    PrincipalId,
    RunId,
    operation_label,
    policy_principal,
)
from executor.domain.intent import REOPEN_TICKET
from executor.domain.policy import Policy
from executor.domain.risk import NO_EMAIL
from executor.domain.terms import terms_for
from executor.engine import undriven
from executor.engine.composing import Target
from executor.engine.composing_reopening import compose_reopening
from executor.engine.engine import Engine
from executor.engine.minting import new_approval, new_effects, new_operation
from executor.engine.policy_consent import consent_by_policy
from executor.engine.providers import Providers
from executor.engine.world import World
from executor.store import approvals, cards, effects, journal, operations, proposals
from executor.store.cards import SubjectKind
from executor.store.connection import Connection
from executor.store.operations import OperationRow

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
    terms = terms_for(policy, REOPEN_TICKET, NO_EMAIL)
    if by_policy:
        terms = replace(terms, requirements=(), step_up=False)
    opened = new_approval(engine, world.chain, minted, terms, {"by_policy": by_policy})
    await approvals.insert(conn, [opened], world.chain.now)
    await proposals.record(conn, _asked(world, closing, minted), world.chain.now)
    if by_policy:
        await consent_by_policy(conn, world.chain, [(minted, opened.approval)], requester)
    await cards.want(conn, [(minted.tenant_id, minted.id, SubjectKind.OPERATION)], world.chain.now)
    return Proposed(minted.id, number)


async def _start_run(
    conn: Connection, world: World, closing: OperationRow, policy: Policy, run_id: RunId
) -> None:
    """Start the run and let it wait for its one operation; nobody drives it."""
    goal = (
        f"decide whether ticket {closing.ticket_id} is opened again, for the email of "
        f"{operation_label(closing.number)} was not sent"
    )
    await undriven.start_waiting(
        conn,
        world.chain,
        policy,
        (closing.tenant_id, run_id),
        goal=goal,
        requester=policy_principal(policy.version),
        origin=ORIGIN.format(closing=closing.id),
    )


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
