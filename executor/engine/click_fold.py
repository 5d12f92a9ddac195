"""What the clicks of one transaction have come to so far, and how it is written at its end.

Clicks on one approval are folded in order, each deciding on what the one before left; so is the
end of a run that one of them stops, with everything of it that was not opened.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar
from uuid import UUID

from executor.domain import approval, operation, run
from executor.domain.approval import Approval
from executor.domain.ids import ApprovalId, PrincipalId
from executor.domain.journal import Chain, JournalEntry
from executor.domain.operation import IN_DOUBT, UNOPENED
from executor.domain.payloads import JsonObject
from executor.domain.run import ENDED, RunStatus
from executor.domain.transition import Machine, Reason, Transition
from executor.engine import endings
from executor.engine.click import Click, RunStopped
from executor.engine.endings import RunKey
from executor.store import approvals, cards, journal, modal_views, operations
from executor.store.cards import Notice, SubjectKind
from executor.store.connection import Connection
from executor.store.operations import OperationKey, OperationRow
from executor.store.runs import RunRow

MoveT = TypeVar("MoveT")


@dataclass(slots=True)
class Fold:
    """What was locked and read, as the clicks before have left it, and what they have moved.

    ``runs`` are those that a click would stop; all operations of such a run are in ``rows``.
    """

    runs: dict[RunKey, RunRow]
    rows: dict[OperationKey, OperationRow]
    consents: dict[OperationKey, Approval]
    postings: dict[UUID, cards.Posting]
    modals: dict[UUID, modal_views.ModalView]
    places: dict[cards.CardKey, cards.CardPlace] = field(default_factory=dict)
    approval_moves: list[approvals.ApprovalMove] = field(default_factory=list)
    operation_moves: list[operations.OperationMove] = field(default_factory=list)
    run_moves: list[tuple[RunRow, Transition[RunStatus], PrincipalId]] = field(default_factory=list)
    presented: dict[OperationKey, Approval] = field(default_factory=dict)
    decisions: dict[tuple[ApprovalId, PrincipalId], approvals.Decision] = field(
        default_factory=dict
    )
    notes: list[JournalEntry] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    touched: set[OperationKey] = field(default_factory=set)

    def run_of(self, key: OperationKey) -> RunRow | None:
        """Return the run that a click on this operation could stop, if it goes on."""
        row = self.rows.get(key)
        found = None if row is None else self.runs.get((row.tenant_id, row.run_id))
        return None if found is None or found.status in ENDED or not found.driven else found

    def note(
        self, click: Click, row: OperationRow, event: str, detail: JsonObject, chain: Chain
    ) -> None:
        """Keep in the journal what was said about an approval and moved nothing."""
        said: JsonObject = {"vote": click.vote.value, **detail}
        self.notes.append(
            chain.note(click.tenant_id, row.run_id, click.approval_id, event, click.principal, said)
        )

    def move(
        self,
        row: OperationRow,
        before: Approval,
        decided: approval.Moved,
        event: operation.Event,
        actor: str,
        chain: Chain,
    ) -> None:
        """Move an approval and its operation together, and let later clicks see it."""
        assert decided.transition is not None
        self.approval_moves.append(
            endings.approval_move(row, before, decided.approval, decided.transition, actor, chain)
        )
        self.consents[row.key] = decided.approval
        self.touched.add(row.key)
        moved = operation.decide(row.status, event)
        if not isinstance(moved, Transition):
            return
        entry = chain.move(
            Machine.OPERATION, row.tenant_id, row.run_id, row.id, row.seq, moved, actor
        )
        approved = moved.target is operation.OperationStatus.APPROVED
        self.operation_moves.append(
            operations.OperationMove(
                row,
                moved,
                entry,
                due_at=chain.now if approved else None,
                ended_at=None if approved else chain.now,
            )
        )
        self.rows[row.key] = replace(row, status=moved.target, seq=row.seq + 1)

    def stop_run(self, key: OperationKey, actor: PrincipalId, chain: Chain) -> RunStopped | None:
        """End the run of an operation that was rejected, with all of it that was not opened."""
        row = self.run_of(key)
        if row is None:
            return None
        mine = [o for o in self.rows.values() if (o.tenant_id, o.run_id) == row.key]
        sending = tuple(o.number for o in mine if o.status in IN_DOUBT)
        reason = Reason.REJECTED_AND_STOPPED
        decision = run.decide(row.status, run.Stopped(reason, bool(sending)))
        if not isinstance(decision, Transition):
            return RunStopped(row.number, sending)
        for other in mine:
            consent = self.consents.get(other.key)
            if other.status not in UNOPENED or consent is None:
                continue
            ended = approval.decide(consent, approval.OperationEnded(True), now=chain.now)
            assert isinstance(ended, approval.Moved), "what was not opened has a live approval"
            self.move(other, consent, ended, operation.RunEnded(reason), actor, chain)
        self.run_moves.append((row, decision, actor))
        self.runs[row.key] = replace(row, status=decision.target, seq=row.seq + 1)
        return RunStopped(row.number, sending)

    async def write(self, conn: Connection, chain: Chain) -> None:
        """Write everything, in the transaction that holds the locks."""
        shown = [(tenant, consent) for (tenant, _), consent in self.presented.items()]
        await approvals.present(conn, shown)
        await approvals.record_decisions(conn, list(self.decisions.values()), chain.now)
        await journal.write_notes(conn, self.notes)
        for some in _each_once(self.approval_moves, lambda move: move.before.id):
            await approvals.move(conn, some)
        for moves in _each_once(self.operation_moves, lambda move: move.row.key):
            await operations.move(conn, moves)
        for row, transition, actor in self.run_moves:
            await endings.move_run(conn, row, transition, actor, chain)
        await cards.want(
            conn, [(tenant, id_, SubjectKind.OPERATION) for tenant, id_ in self.touched], chain.now
        )
        await cards.queue_notices(conn, self.notices, chain.now)
        await journal.advance(conn, chain)


def _each_once(
    moves: Sequence[MoveT], subject: Callable[[MoveT], Hashable]
) -> Sequence[Sequence[MoveT]]:
    """Split moves, in order, so that none of the parts moves one record twice.

    One statement sees each row as it was before it; what was granted and then withdrawn in one
    commit needs two.
    """
    parts: list[list[MoveT]] = []
    seen: Counter[Hashable] = Counter()
    for move in moves:
        moved = seen[subject(move)]
        seen[subject(move)] += 1
        if moved == len(parts):
            parts.append([])
        parts[moved].append(move)
    return parts
