"""T1 for tools of servers: a call that may change something becomes an operation, in one commit.

Two calls are two effects, also where they say the same, since only whoever asks knows whether once
was enough; so each has a key of its own. What people have rejected in this run is answered from the
record, and what still waits word for word is joined. Locks: policies, the run, its operations and
approvals, cards, journal heads.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from executor.domain.authority import Authority
from executor.domain.closing import refuse_lost, refuse_secrets
from executor.domain.effect import EffectKind
from executor.domain.errors import InvalidContent
from executor.domain.grant import Resource
from executor.domain.ids import EffectId, OperationId, RunId, TenantId
from executor.domain.intent import (
    CALL_TOOL,
    Intent,
    PlannedEffect,
    content_digest,
    intent_document,
)
from executor.domain.journal import Chain
from executor.domain.operation import UNOPENED, OperationStatus
from executor.domain.payloads import JsonObject, canonical
from executor.domain.policy import Policy
from executor.domain.risk import NO_EMAIL
from executor.domain.terms import terms_for
from executor.domain.tool_rights import tool_objection
from executor.domain.transition import Reason, Refused
from executor.engine import endings
from executor.engine.accept import lock_working_run, write_minted
from executor.engine.converging import Acceptance, Accepted, AcceptResult, Answered, record_answered
from executor.engine.engine import Engine
from executor.engine.failpoint import Commit
from executor.engine.minting import new_approval, new_effects, new_operation
from executor.engine.outside_tools import AskedCall
from executor.engine.promises import promise
from executor.engine.rights import read_rights
from executor.engine.tool_port import declared, provider_of
from executor.engine.tool_results import refusal_result, rejected_before
from executor.store import approvals, journal, operations, progress, proposals, runs, tenants
from executor.store.connection import Connection
from executor.store.proposals import ProposalRow
from executor.store.wakeups import Kind


async def accept_tool_calls(
    engine: Engine,
    run_key: tuple[TenantId, RunId],
    epoch: int,
    asked: Sequence[AskedCall],
    next_step: int,
) -> list[AcceptResult]:
    """Accept the tool calls of one step of a run, in order, in one commit.

    Opens its own transaction. Answers given at once are recorded as steps from ``next_step`` on.
    Raises ``StaleEpoch`` when the lease is lost or the run no longer works, ``CommitUnknown``.
    """
    tenant = run_key[0]
    async with engine.committing(Commit.ACCEPT) as conn:
        policy = (await tenants.share_policies(conn, [tenant]))[tenant]
        row = await lock_working_run(conn, run_key, epoch)
        scene = await _lock(conn, engine, policy, row)
        results = [scene.decide(item) for item in asked]
        called = [(item.step, item.ordinal) for item in asked]
        await record_answered(conn, engine, run_key, called, results, next_step, scene.chain.now)
        await progress.want(conn, [run_key])
        await write_minted(conn, scene.state, scene.chain)
        await journal.advance(conn, scene.chain)
    engine.ring(Kind.CARDS)
    return results


@dataclass(frozen=True, slots=True)
class _Scene:
    """A run with what it has proposed so far, locked."""

    engine: Engine
    row: runs.RunRow
    authority: Authority
    earlier: Sequence[ProposalRow]
    live: frozenset[UUID]
    state: Acceptance
    chain: Chain

    def decide(self, item: AskedCall) -> AcceptResult:
        """Decide what one call comes to; ``state`` takes what has to be written."""
        outside = item.outside
        refused = tool_objection(
            self.authority, self.row.requester, outside.server, outside.tool.name
        )
        if refused is not None:
            return Answered(refusal_result(refused))
        try:
            intent = compose_call(self.engine.mint, self.authority.policy, self.row, item)
        except InvalidContent as error:
            detail = {"field": error.field, "problem": error.problem, "remedy": error.remedy}
            return Answered(refusal_result(Refused(Reason.CONTENT_INVALID, detail)))
        same = [p for p in self.earlier if _content(p) == intent.content_digest]
        for proposal in same:
            if proposal.status is OperationStatus.REJECTED:
                return Answered(rejected_before(proposal.number, proposal.reason, proposal.detail))
        for proposal in same:
            if proposal.operation_id in self.live and proposal.step != item.step:
                return self._join(item, proposal)
        return self._mint(item, intent)

    def _join(self, item: AskedCall, proposal: ProposalRow) -> Accepted:
        self._link(item, proposal.operation_id)
        return Accepted(proposal.operation_id, linked=False)

    def _mint(self, item: AskedCall, intent: Intent) -> Accepted:
        policy, state = self.authority.policy, self.state
        minted = new_operation(
            self.engine,
            self.chain,
            policy,
            self.row.key,
            self.row.requester,
            None,
            intent,
            resource=Resource(CALL_TOOL, item.outside.server, item.outside.tool.name),
        )
        state.minted[intent.key] = minted
        state.new_effects += new_effects(self.chain, minted)
        terms = terms_for(policy, CALL_TOOL, NO_EMAIL)
        told: JsonObject = {"by_policy": terms.asks_nobody}
        opened = new_approval(self.engine, self.chain, minted, terms, told)
        state.new_approvals.append(opened)
        if terms.asks_nobody:
            state.consented.append((minted, opened.approval))
        self._link(item, minted.id)
        return Accepted(minted.id, linked=False)

    def _link(self, item: AskedCall, operation: OperationId) -> None:
        row = self.row
        self.state.proposals.append(
            proposals.Proposal(
                row.tenant_id,
                row.id,
                item.step,
                item.ordinal,
                operation,
                row.requester,
                linked=False,
            )
        )


async def _lock(conn: Connection, engine: Engine, policy: Policy, row: runs.RunRow) -> _Scene:
    earlier = [p for p in await proposals.of_run(conn, row.key) if p.kind == CALL_TOOL]
    waiting = [(row.tenant_id, p.operation_id) for p in earlier if p.status in UNOPENED]
    locked = await operations.lock(conn, waiting)
    await approvals.lock(conn, list(locked))
    live = frozenset(o.id for o in locked.values() if o.status in UNOPENED)
    # A rejection under way was waited for.
    earlier = [p for p in await proposals.of_run(conn, row.key) if p.kind == CALL_TOOL]
    rights = await read_rights(conn, {row.tenant_id: policy}, [(row.tenant_id, row.requester)])
    chain = await endings.lock_cards_and_chain(conn, list(locked.values()), runs_too=[row.key])
    authority = rights.authority_to_propose(policy, chain.now)
    return _Scene(engine, row, authority, earlier, live, Acceptance({}, {}, {}, {}), chain)


def compose_call(
    mint: Callable[[], UUID], policy: Policy, row: runs.RunRow, item: AskedCall
) -> Intent:
    """Make the intent of *call this tool with these arguments*. Raises ``InvalidContent``."""
    outside = item.outside
    payload = canonical({"tool": outside.tool.name, "arguments": item.arguments})
    said = [("arguments", payload.decode())]
    refuse_lost(said)
    refuse_secrets(said)
    call: JsonObject = {
        "server": outside.server,
        "tool": outside.tool.name,
        "tool_digest": outside.tool.digest(),
        "arguments": item.arguments,
        "cost_microusd": outside.cost_microusd,
    }
    declaration = declared(outside.server)
    planned = PlannedEffect(
        EffectId(mint()),
        EffectKind.TOOL_CALL,
        declaration.capability,
        provider_of(outside.server),
        payload,
        {"tool_digest": outside.tool.digest()},
        {
            "provider": provider_of(outside.server),
            "payload_sha256": hashlib.sha256(payload).hexdigest(),
        },
        promise(declaration),
    )
    document = intent_document(
        CALL_TOOL,
        tenant=row.tenant_id,
        requested_by=row.requester,
        policy_version=policy.version,
        about={"tool_call": call},
        effects=(planned,),
        templates={},
    )
    place = f"{outside.server}:{outside.tool.name}:{row.id}:{item.step}:{item.ordinal}"
    return Intent(CALL_TOOL, f"{CALL_TOOL}:{place}", document, (planned,))


def _content(proposal: ProposalRow) -> bytes:
    return content_digest(json.loads(proposal.intent))
