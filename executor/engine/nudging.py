"""Reminds people of approvals that wait, and tells others where nobody decides.

A nudge is a message in the thread of the operation's card. It decides nothing: what nobody has
decided in time expires as it would without one. Locks: policies, operations, approvals, cards,
journal heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from executor.domain.approval import Approval, ApprovalStatus
from executor.domain.ids import ApprovalId, TenantId
from executor.domain.journal import Chain, JournalEntry
from executor.domain.nudge import Nudge, NudgeKind, due, schedule
from executor.domain.policy import Policy
from executor.engine.endings import lock_cards_and_chain
from executor.engine.engine import Engine
from executor.engine.failpoint import Commit
from executor.store import approvals, cards, clock, journal, nudges, operations, tenants
from executor.store.cards import SubjectKind
from executor.store.nudges import NewNudge
from executor.store.operations import OperationKey, OperationRow
from executor.store.wakeups import Kind

ACTOR = "clock"


async def nudge(engine: Engine, keys: Sequence[OperationKey]) -> int:
    """Make the nudges of these operations that are due; returns how many. Own transaction.

    What was decided meanwhile is left alone; what was due several times is told once.
    """
    new: list[NewNudge] = []
    async with engine.committing(Commit.NUDGE) as conn:
        policies = await tenants.share_policies(conn, {tenant for tenant, _ in keys})
        rows = await operations.lock(conn, keys)
        consents = await approvals.lock(conn, list(rows))
        over = await nudges.made(conn, [(key[0], its.id) for key, its in consents.items()])
        chain = await lock_cards_and_chain(conn, list(rows.values()))
        counts: list[tuple[TenantId, ApprovalId, int, datetime | None]] = []
        notes: list[JournalEntry] = []
        for key, consent in consents.items():
            row, policy = rows[key], policies.get(key[0])
            if consent.status is not ApprovalStatus.OPEN or consent.presented_at is None:
                counts.append((key[0], consent.id, over[consent.id], None))
                continue
            planned = schedule(consent.terms, consent.presented_at)
            ripe, next_at = due(planned, over[consent.id], chain.now)
            passed = sum(1 for one in planned if one.due_at <= chain.now)
            counts.append((key[0], consent.id, max(passed, over[consent.id]), next_at))
            for one in ripe:
                made = _made(engine, row, consent, policy, one)
                new.append(made)
                notes.append(_note(row, made, chain))
        await nudges.count(conn, counts)
        await nudges.insert(conn, new, chain.now)
        await journal.write_notes(conn, notes)
        told = [(n.tenant_id, n.id, SubjectKind.NUDGE) for n in new]
        about = [(n.tenant_id, n.operation_id, SubjectKind.OPERATION) for n in new]
        await cards.want(conn, [*told, *about], chain.now)
        await journal.advance(conn, chain)
    if new:
        engine.ring(Kind.CARDS)
    return len(new)


async def end_nudges(engine: Engine, most: int) -> None:
    """Let reminders of what does not wait any more say so. Opens its own transaction."""
    async with engine.database.transaction() as conn:
        over = await nudges.end(conn, most)
        if not over:
            return
        told = [(tenant, id_, SubjectKind.NUDGE) for tenant, id_ in over]
        await cards.want(conn, told, await clock.now(conn))
    engine.ring(Kind.CARDS)


def _made(
    engine: Engine, row: OperationRow, consent: Approval, policy: Policy | None, one: Nudge
) -> NewNudge:
    if one.kind is NudgeKind.ESCALATION:
        whom = consent.terms.escalate_to
    else:
        whom = () if policy is None else _whose_votes(row, consent, policy)
    return NewNudge(row.tenant_id, engine.mint(), row.id, consent.id, one.kind, whom)


def _whose_votes(row: OperationRow, consent: Approval, policy: Policy) -> tuple[str, ...]:
    """Name everybody, by the policy, whose vote the approval could still use."""
    terms = consent.terms.under(policy, row.kind, row.risks)
    named: dict[str, None] = {}
    for who in (who for requirement in terms.requirements for who in requirement.of):
        members = (
            policy.members_of(who.removeprefix("role:")) if who.startswith("role:") else (who,)
        )
        named |= dict.fromkeys(() if members == "everyone" else members)
    voted = {who.rpartition(":")[2] for who, _ in consent.votes}
    asked = row.requester.rpartition(":")[2]
    return tuple(who for who in named if who not in voted and who != asked)


def _note(row: OperationRow, made: NewNudge, chain: Chain) -> JournalEntry:
    return chain.note(
        row.tenant_id,
        row.run_id,
        made.approval_id,
        "nudged",
        ACTOR,
        {"kind": made.kind.value, "whom": list(made.whom)},
    )
