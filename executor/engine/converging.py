"""What a proposal comes to, by its intent key; one transaction's decisions, in the order of its
proposals.

None live mints one; live and equal links to it; live and different in the same run with nothing
dispatched supersedes it; live and different in another run conflicts. What a person has rejected is
answered from the record: for the same closing of a ticket at the same version, exactly the same
content is put before people once, whichever run proposes it and whoever asked for that run. It
counts as new when the ticket has moved, for its version is part of the content. Everything is
locked by ``accept``, which also writes what is decided here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from executor.domain import operation
from executor.domain.approval import Approval
from executor.domain.ids import OperationId, RunId, TenantId
from executor.domain.intent import Intent
from executor.domain.journal import Chain
from executor.domain.operation import UNOPENED
from executor.domain.payloads import JsonObject
from executor.domain.policy import Policy
from executor.domain.risk import RiskFacts
from executor.domain.terms import terms_for
from executor.domain.transition import Reason, Refused
from executor.engine.composing import Target
from executor.engine.engine import Engine
from executor.engine.minting import new_approval, new_effects, new_operation
from executor.engine.tool_results import refusal_result, rejected_before
from executor.store import approvals, effects, operations, proposals, revisions, runs
from executor.store.connection import Connection


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


async def record_answered(
    conn: Connection,
    engine: Engine,
    run_key: tuple[TenantId, RunId],
    called: Sequence[tuple[int, int]],
    results: Sequence[AcceptResult],
    first: int,
    now: datetime,
) -> None:
    """Record what calls were answered with at once as steps from ``first`` on, secrets hidden.

    ``called`` names step and ordinal of each call.
    """
    answers = [
        (call, engine.secrets.hide_in(result.result))
        for call, result in zip(called, results, strict=True)
        if isinstance(result, Answered)
    ]
    for number, (call, told) in enumerate(answers, start=first):
        await runs.record_step(
            conn, run_key, runs.Step(number, "tool", call, {"result": told}, now)
        )


@dataclass(slots=True)
class Acceptance:
    """What one transaction has decided so far; later proposals of the step decide on it."""

    live: dict[str, operations.OperationRow]
    consents: dict[operations.OperationKey, Approval]
    succeeded: dict[str, operations.OperationRow]
    rejected: dict[tuple[str, bytes], revisions.Rejected]
    minted: dict[str, operations.NewOperation] = field(default_factory=dict)
    new_effects: list[effects.NewEffect] = field(default_factory=list)
    new_approvals: list[approvals.NewApproval] = field(default_factory=list)
    consented: list[tuple[operations.NewOperation, Approval]] = field(default_factory=list)
    proposals: list[proposals.Proposal] = field(default_factory=list)
    superseded: list[tuple[operations.OperationRow, Approval | None, operation.Event]] = field(
        default_factory=list
    )


def converge(
    engine: Engine,
    policy: Policy,
    row: runs.RunRow,
    target: Target,
    state: Acceptance,
    called: tuple[int, int],
    intent: Intent,
    risks: RiskFacts,
    chain: Chain,
) -> AcceptResult:
    """Decide by intent key what a proposal comes to; ``called`` names its step and ordinal."""
    twin = state.minted.get(intent.key)
    if twin is not None:
        # Two calls of one step: the first one is the operation, whatever the second one says.
        if twin.intent.content_digest == intent.content_digest:
            return _link(state, row, called, twin.id, linked=False)
        return Answered(refusal_result(Refused(Reason.CONFLICTS_WITH, {"same_step": True})))
    live = state.live.get(intent.key)
    if live is not None and live.content_digest == intent.content_digest:
        return _link(state, row, called, live.id, linked=live.run_id != row.id)
    before = state.rejected.get((intent.key, intent.content_digest))
    if before is not None:
        return Answered(rejected_before(before.number, before.reason, before.detail))
    if live is not None and (live.run_id != row.id or live.status not in UNOPENED):
        detail: JsonObject = {"operation": live.number, "status": live.status.value}
        return Answered(refusal_result(Refused(Reason.CONFLICTS_WITH, detail)))
    minted = _mint(engine, policy, row, target, state, called, intent, risks, live, chain)
    if live is not None:
        state.superseded.append(
            (live, state.consents.get(live.key), operation.Superseded(str(minted)))
        )
    return Accepted(minted, linked=False)


def _mint(
    engine: Engine,
    policy: Policy,
    row: runs.RunRow,
    target: Target,
    state: Acceptance,
    called: tuple[int, int],
    intent: Intent,
    risks: RiskFacts,
    earlier: operations.OperationRow | None,
    chain: Chain,
) -> OperationId:
    minted = new_operation(
        engine,
        chain,
        policy,
        row.key,
        row.requester,
        target,
        intent,
        risks=risks,
        revision=1 if earlier is None else earlier.content_revision + 1,
        replaces=None if earlier is None else earlier.id,
    )
    state.minted[intent.key] = minted
    state.new_effects += new_effects(chain, minted)
    terms = terms_for(policy, intent.kind, risks)
    opened = new_approval(engine, chain, minted, terms, {"by_policy": terms.asks_nobody})
    state.new_approvals.append(opened)
    if terms.asks_nobody:
        state.consented.append((minted, opened.approval))
    _link(state, row, called, minted.id, linked=False)
    return minted.id


def _link(
    state: Acceptance,
    row: runs.RunRow,
    called: tuple[int, int],
    operation_id: OperationId,
    *,
    linked: bool,
) -> Accepted:
    state.proposals.append(
        proposals.Proposal(row.tenant_id, row.id, *called, operation_id, row.requester, linked)
    )
    return Accepted(operation_id, linked)
