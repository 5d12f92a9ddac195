"""What a reopening has come to ends its run, and ends the closing as compensated or left.

Decided where runs are woken, in the same commit, with the run locked before its operations: either
of the two operations may have ended. A reopening that has nothing left to undo, for the email was
sent after all, is out of date. Proof that comes after the reopening changes nothing any more: it is
recorded, and an operator hears of it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from executor.domain import compensation, operation
from executor.domain.journal import Chain
from executor.domain.operation import IN_DOUBT, UNOPENED, OperationStatus
from executor.domain.transition import Machine, NoChange, Reason, Refused, Transition
from executor.engine import endings, undriven
from executor.engine.endings import Locked
from executor.store import cards, operations
from executor.store.cards import SubjectKind
from executor.store.compensations import ReopeningNames
from executor.store.connection import Connection
from executor.store.operations import OperationRow

_log = logging.getLogger(__name__)

ACTOR = "executor"


async def conclude_all(
    conn: Connection, locked: Locked, about: Sequence[ReopeningNames], chain: Chain
) -> None:
    """Conclude reopenings whose runs, closings and approvals are locked; see this module."""
    for names in about:
        reopening = locked.operations[names.key]
        closing = locked.operations[names.closing_key]
        if compensation.is_overtaken(closing.status, reopening.status):
            await _end_overtaken(conn, locked, reopening, closing, chain)
            # Its own end is looked at when it is woken for, like any other.
            continue
        await _conclude(conn, reopening, closing, chain)
        if reopening.status not in UNOPENED | IN_DOUBT:
            # One that was stopped is ended by the waking.
            run_row = locked.runs[reopening.tenant_id, reopening.run_id]
            await undriven.complete(conn, chain, run_row)


async def _conclude(
    conn: Connection, reopening: OperationRow, closing: OperationRow, chain: Chain
) -> None:
    """Move the closing to what its reopening came to, once that is known."""
    outcome = compensation.Reopening(
        str(reopening.id), reopening.number, reopening.status, reopening.reason
    )
    event = compensation.conclude(closing.status, outcome)
    if isinstance(event, NoChange):
        done = reopening.status is OperationStatus.SUCCEEDED
        if done and closing.status is OperationStatus.SUCCEEDED:
            _log.error(
                "op_%d opened ticket %s again, and the email of op_%d was sent after all "
                "(tenant %s): somebody has to look",
                reopening.number,
                reopening.ticket_id,
                closing.number,
                closing.tenant_id,
            )
        return
    await operations.move(conn, [ended(closing, event, chain)])
    await cards.want(conn, [(closing.tenant_id, closing.id, SubjectKind.OPERATION)], chain.now)


def ended(
    closing: OperationRow, event: operation.Undone | operation.LeftSo, chain: Chain
) -> operations.OperationMove:
    """End a partial closing; why its email was not sent stays the reason of its row."""
    moved = operation.decide(closing.status, event)
    assert isinstance(moved, Transition)
    entry = chain.move(
        Machine.OPERATION,
        closing.tenant_id,
        closing.run_id,
        closing.id,
        closing.seq,
        moved,
        ACTOR,
    )
    kept = replace(moved, reason=None, detail={**closing.detail, **moved.detail})
    return operations.OperationMove(closing, kept, entry, ended_at=chain.now)


async def _end_overtaken(
    conn: Connection,
    locked: Locked,
    reopening: OperationRow,
    closing: OperationRow,
    chain: Chain,
) -> None:
    why = Refused(
        Reason.NOTHING_TO_UNDO,
        {"operation": closing.number, "status": closing.status.value},
    )
    event = operation.RevalidationFailed(why)
    consent = locked.approvals.get(reopening.key)
    await endings.end_unopened(conn, [(reopening, consent, event)], ACTOR, chain)
