"""Mints the operation that asks for a higher limit, in a run of its own that nobody drives.

The policy asks for it; whoever asked for a run that is paused counts as having asked for this as
well, and may not be the one who approves it. Runs in the caller's transaction, which holds the
locks of the accounts.
"""

from __future__ import annotations

from executor.domain.grant import Resource
from executor.domain.ids import OperationId, PrincipalId, RunId, policy_principal, run_label
from executor.domain.intent import RAISE_BUDGET
from executor.domain.journal import Chain
from executor.domain.policy import Policy
from executor.domain.raising import Limit, Raising
from executor.domain.risk import NO_EMAIL
from executor.domain.terms import terms_for
from executor.engine import undriven
from executor.engine.composing_raise import PROVIDER, compose_raise
from executor.engine.engine import Engine
from executor.engine.minting import new_approval, new_effects, new_operation
from executor.store import approvals, cards, effects, journal, operations, proposals
from executor.store.cards import SubjectKind
from executor.store.connection import Connection
from executor.store.operations import OperationKey, OperationRow

ORIGIN = "raise:{run}"


async def ask_for_more(
    conn: Connection,
    engine: Engine,
    chain: Chain,
    policy: Policy,
    raising: Raising,
    asker: PrincipalId,
) -> OperationId:
    """Mint the raise of one limit, for a run that ``asker`` has asked for; see this module.

    One under the same key that is live already: ``DuplicateKey``.
    """
    tenant, requester = policy.tenant_id, policy_principal(policy.version)
    run_key = (tenant, RunId(engine.mint()))
    born = await journal.lock_chain(conn, [run_key])
    chain.heads.update(born.heads)
    await undriven.start_waiting(
        conn,
        chain,
        policy,
        run_key,
        goal=f"decide whether {_spelled(raising.limit)} may cost more",
        requester=requester,
        origin=ORIGIN.format(run=run_key[1]),
    )
    minted = new_operation(
        engine,
        chain,
        policy,
        run_key,
        requester,
        None,
        compose_raise(engine.mint, policy, requester, raising),
        resource=Resource(RAISE_BUDGET, PROVIDER, raising.limit.thing),
    )
    await operations.insert(conn, [minted], chain.now)
    await effects.insert(conn, new_effects(chain, minted))
    terms = terms_for(policy, RAISE_BUDGET, NO_EMAIL)
    opened = new_approval(engine, chain, minted, terms)
    await approvals.insert(conn, [opened], chain.now)
    await proposals.add_askers(conn, (tenant, minted.id), run_key[1], [asker], chain.now)
    await cards.want(conn, [(tenant, minted.id, SubjectKind.OPERATION)], chain.now)
    return minted.id


async def join(conn: Connection, chain: Chain, row: OperationRow, asker: PrincipalId) -> None:
    """Let one more run wait for a raise that is locked; whoever asked for the run asks for it."""
    key: OperationKey = row.key
    asked = (await proposals.requesters_of(conn, [key])).get(key, [])
    if asker not in {who for who, _ in asked}:
        await proposals.add_askers(conn, key, row.run_id, [asker], chain.now)
    await cards.want(conn, [(*key, SubjectKind.OPERATION)], chain.now)


def _spelled(limit: Limit) -> str:
    if limit.day is not None:
        return f"all runs of {limit.day.isoformat()}"
    assert limit.run is not None, "it is a run's limit or a day's"
    return run_label(limit.run)
