"""The policy's own consent, where it asks for no person: a decision like any other."""

from __future__ import annotations

from collections.abc import Sequence

from executor.domain import approval, operation
from executor.domain.approval import Approval, Vote
from executor.domain.ids import PrincipalId
from executor.domain.journal import Chain
from executor.domain.transition import Machine, Transition
from executor.engine import endings
from executor.store import approvals, operations
from executor.store.connection import Connection


async def consent_by_policy(
    conn: Connection,
    chain: Chain,
    minted: Sequence[tuple[operations.NewOperation, Approval]],
    who: PrincipalId,
) -> None:
    """Let the policy consent to what was minted in this transaction; all of it is due then.

    ``who`` is the policy as a principal. The operations are locked; ``chain`` holds their heads.
    """
    if not minted:
        return
    rows = await operations.lock(conn, [(new.tenant_id, new.id) for new, _ in minted])
    votes, consents, moves = [], [], []
    for new, consent in minted:
        row = rows[new.tenant_id, new.id]
        decided = approval.decide(consent, approval.PolicyConsents(who), now=chain.now)
        assert isinstance(decided, approval.Moved)
        assert decided.transition is not None
        votes.append(_vote(new, consent, who))
        consents.append(
            endings.approval_move(row, consent, decided.approval, decided.transition, who, chain)
        )
        granted = operation.decide(row.status, operation.Granted())
        assert isinstance(granted, Transition)
        entry = chain.move(
            Machine.OPERATION, row.tenant_id, row.run_id, row.id, row.seq, granted, who
        )
        moves.append(operations.OperationMove(row, granted, entry, due_at=chain.now))
    await approvals.record_decisions(conn, votes, chain.now)
    await approvals.move(conn, consents)
    await operations.move(conn, moves)


def _vote(new: operations.NewOperation, consent: Approval, who: PrincipalId) -> approvals.Decision:
    return approvals.Decision(
        new.tenant_id,
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
