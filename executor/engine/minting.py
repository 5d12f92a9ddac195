"""Mints an operation with its parts and its approval, each with the first row of its journal.

Nothing is written here: whoever calls has the locks that ``chain`` stands for, and inserts.
"""

from __future__ import annotations

from executor.domain.approval import Approval, ApprovalStatus
from executor.domain.effect import EffectStatus
from executor.domain.grant import Resource
from executor.domain.ids import ApprovalId, OperationId, PrincipalId, RunId, TenantId
from executor.domain.intent import Intent
from executor.domain.journal import Chain
from executor.domain.operation import OperationStatus
from executor.domain.payloads import JsonObject
from executor.domain.policy import Policy
from executor.domain.risk import NO_EMAIL, RiskFacts
from executor.domain.terms import Terms
from executor.domain.transition import Machine
from executor.engine.composing import Target
from executor.engine.engine import Engine
from executor.store import approvals, effects, operations


def new_operation(
    engine: Engine,
    chain: Chain,
    policy: Policy,
    run_key: tuple[TenantId, RunId],
    requester: PrincipalId,
    target: Target | None,
    intent: Intent,
    *,
    resource: Resource | None = None,
    risks: RiskFacts = NO_EMAIL,
    revision: int = 1,
    editor: PrincipalId | None = None,
    compensates: OperationId | None = None,
    replaces: OperationId | None = None,
    actor: PrincipalId | None = None,
) -> operations.NewOperation:
    """Mint the operation of an intent; ``actor`` is who made it, where the requester did not.

    ``replaces`` is the operation whose place it takes. Without a ``target`` it is about no ticket,
    and ``resource`` says what rights are asked for.
    """
    tenant, run_id = run_key
    id_ = OperationId(engine.mint())
    named = None
    if target is not None:
        ticket = target.ticket
        named = operations.TicketName(ticket.desk, ticket.id, ticket.version)
        resource = Resource(intent.kind, ticket.desk, ticket.id)
    assert resource is not None, "without a ticket it has to be said what rights are asked for"
    born: JsonObject = {
        "digest": intent.digest.hex(),
        "intent_key": intent.key,
        "revision": revision,
        **({} if replaces is None else {"replaces": str(replaces)}),
    }
    return operations.NewOperation(
        tenant,
        id_,
        run_id,
        intent,
        revision,
        requester,
        policy.version,
        resource,
        named,
        None if target is None else target.stamp,
        chain.birth(
            Machine.OPERATION,
            tenant,
            run_id,
            id_,
            OperationStatus.AWAITING,
            actor or requester,
            born,
        ),
        risks,
        compensates,
        editor,
        replaces,
    )


def new_effects(chain: Chain, minted: operations.NewOperation) -> list[effects.NewEffect]:
    """Mint the parts of an operation, in their order, by whoever made it."""
    return [
        effects.NewEffect(
            minted.tenant_id,
            minted.id,
            position,
            planned,
            chain.birth(
                Machine.EFFECT,
                minted.tenant_id,
                minted.run_id,
                planned.id,
                EffectStatus.PLANNED,
                minted.entry.actor,
                {"operation": str(minted.id), "kind": planned.kind.value},
            ),
        )
        for position, planned in enumerate(minted.intent.effects, start=1)
    ]


def new_approval(
    engine: Engine,
    chain: Chain,
    minted: operations.NewOperation,
    terms: Terms,
    told: JsonObject | None = None,
) -> approvals.NewApproval:
    """Open the approval of an operation; ``told`` goes into the journal with it."""
    consent = Approval(
        ApprovalId(engine.mint()),
        minted.id,
        ApprovalStatus.OPEN,
        minted.intent.digest,
        minted.content_revision,
        terms,
    )
    born = chain.birth(
        Machine.APPROVAL,
        minted.tenant_id,
        minted.run_id,
        consent.id,
        ApprovalStatus.OPEN,
        minted.entry.actor,
        {
            "operation": str(minted.id),
            "quorum": terms.quorum,
            "terms": terms.as_json(),
            **(told or {}),
        },
    )
    return approvals.NewApproval(minted.tenant_id, consent, born)
