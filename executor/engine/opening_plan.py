"""What one opening will write, collected while it decides and applied in one transaction.

Every part of an operation is opened the same way: a transactional one is applied together with its
record, any other gets an attempt, recorded before its first byte leaves.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import assert_never

from executor.domain import approval, effect, operation
from executor.domain.approval import Approval, Vote
from executor.domain.closing import REOPENING_NOTE
from executor.domain.effect import Attempt, AttemptStatus, EffectKind, EffectStatus
from executor.domain.ids import AttemptId, PrincipalId, TenantId
from executor.domain.intent import episode_of
from executor.domain.journal import JournalEntry
from executor.domain.operation import OperationStatus
from executor.domain.payloads import JsonObject
from executor.domain.raising import Raising
from executor.domain.stamp import DeskVersion, Stamp
from executor.domain.transition import Machine, Transition
from executor.engine import endings
from executor.engine.effect_costs import hold_for_attempt
from executor.engine.engine import Engine
from executor.engine.limits import raise_limits, raising_of
from executor.engine.providers import Account
from executor.engine.recovery_plan import declared
from executor.engine.world import World
from executor.store import (
    approvals,
    cards,
    desk,
    effects,
    episodes,
    journal,
    operations,
    outside_tickets,
)
from executor.store.cards import SubjectKind
from executor.store.connection import Connection
from executor.store.operations import DeskSilence, OperationKey, OperationRow
from executor.store.outside_tickets import SeenTicket
from executor.store.people import want_groups, want_identities

DESK_SILENT = "desk_silent"
"""The journal's note that an outside desk did not tell, so that nothing was opened."""


@dataclass(slots=True)
class Plan:
    """What one transaction will write."""

    world: World
    closings: list[desk.Closing] = field(default_factory=list)
    reopenings: list[desk.Reopening] = field(default_factory=list)
    raises: list[tuple[TenantId, Raising]] = field(default_factory=list)
    closes: list[episodes.Close] = field(default_factory=list)
    closed_stamps: list[tuple[OperationKey, Stamp]] = field(default_factory=list)
    effect_moves: list[effects.EffectMove] = field(default_factory=list)
    attempts: list[effects.NewAttempt] = field(default_factory=list)
    recoveries: list[effects.RecoveryPlan] = field(default_factory=list)
    approval_moves: list[approvals.ApprovalMove] = field(default_factory=list)
    operation_moves: list[operations.OperationMove] = field(default_factory=list)
    endings: list[operations.OperationMove] = field(default_factory=list)
    stale: list[tuple[OperationRow, Approval | None, operation.Event]] = field(default_factory=list)
    checks: dict[OperationKey, JsonObject] = field(default_factory=dict)
    touched: list[OperationRow] = field(default_factory=list)
    looks: list[tuple[TenantId, PrincipalId]] = field(default_factory=list)
    group_looks: list[tuple[TenantId, str]] = field(default_factory=list)
    silences: list[DeskSilence] = field(default_factory=list)
    notes: list[JournalEntry] = field(default_factory=list)
    seen: list[SeenTicket] = field(default_factory=list)

    def consume(self, row: OperationRow, consent: Approval, actor: str) -> None:
        """Use up the approval under which this opening happens; the checks have let it."""
        used = approval.decide(consent, approval.Used(), now=self.world.chain.now)
        assert isinstance(used, approval.Moved)
        assert used.transition is not None
        self.approval_moves.append(
            endings.approval_move(
                row, consent, used.approval, used.transition, actor, self.world.chain
            )
        )

    def void_unused(self, row: OperationRow, consent: Approval | None) -> None:
        """End an approval of a repeat that is not opened; one that was consumed stays as it is."""
        if consent is None:
            return
        chain = self.world.chain
        void = approval.decide(consent, approval.OperationEnded(withdrawn=False), now=chain.now)
        if isinstance(void, approval.Moved) and void.transition is not None:
            self.approval_moves.append(
                endings.approval_move(
                    row, consent, void.approval, void.transition, "executor", chain
                )
            )

    def keep_close(self, row: OperationRow, version: DeskVersion) -> None:
        """Keep what our close of a ticket has produced, in its episode."""
        ticket = (row.tenant_id, row.desk, row.ticket_id)
        self.closes.append(episodes.Close(ticket, episode_of(row.intent_key), version))

    def apply_part(
        self, row: OperationRow, part: effects.EffectRow, consent: Approval
    ) -> int | None:
        """Let a transactional part happen in this commit; returns the version that it closed at."""
        closed: int | None = None
        match part.kind:
            case EffectKind.TICKET_CLOSE:
                self.closings.append(_closing(row, consent))
                closed = row.ticket_version + 1
                self.keep_close(row, closed)
            case EffectKind.TICKET_REOPEN:
                self.reopenings.append(_reopening(row, consent))
            case EffectKind.BUDGET_RAISE:
                self.raises.append((row.tenant_id, raising_of(row)))
            case EffectKind.TICKET_NOTE | EffectKind.EMAIL_SEND | EffectKind.TOOL_CALL:
                raise AssertionError(f"{part.kind} is never transactional")
            case _:
                assert_never(part.kind)
        applied = Transition(part.status, EffectStatus.APPLIED, "applied")
        self.move_effect(row, part, applied)
        return closed

    def dispatch(
        self,
        engine: Engine,
        account: Account,
        row: OperationRow,
        part: effects.EffectRow,
        actor: str,
        epoch: int,
        *,
        told: JsonObject | None = None,
    ) -> Attempt:
        """Record an attempt, with the moment after which nothing of it can still arrive.

        ``told`` goes into the journal with it: what was checked, where nothing else of it tells.
        """
        chain, terms = self.world.chain, declared(engine, account)
        tries = [t for t in self.world.tries[row.key] if t.attempt.effect_id == part.id]
        attempt = Attempt(
            AttemptId(engine.mint()),
            part.id,
            len(tries) + 1,
            AttemptStatus.DISPATCHED,
            terms.capability,
            chain.now,
            chain.now + timedelta(seconds=engine.durations.first_byte_seconds),
            chain.now + terms.margin,
            terms=terms.terms,
        )
        born = chain.birth(
            Machine.ATTEMPT,
            row.tenant_id,
            row.run_id,
            attempt.id,
            AttemptStatus.DISPATCHED,
            actor,
            {
                "effect": str(part.id),
                "number": attempt.number,
                "epoch": epoch,
                "capability": terms.capability.value,
                "payload_sha256": part.payload_digest.hex(),
                **(told or {}),
            },
        )
        self.attempts.append(
            effects.NewAttempt(
                row.tenant_id,
                row.id,
                attempt,
                epoch,
                account.name,
                part.idempotency_key,
                part.payload_digest,
                born,
            )
        )
        policy = self.world.policies[row.tenant_id]
        hold_for_attempt(engine, self.world.purse, policy, row, part, attempt, chain)
        others = [t.attempt.status for t in tries]
        moved = effect.decide_effect(part.status, [*others, AttemptStatus.DISPATCHED])
        assert isinstance(moved, Transition)
        self.move_effect(row, part, moved, first_attempt_at=chain.now)
        return attempt

    def move_effect(
        self,
        row: OperationRow,
        part: effects.EffectRow,
        transition: Transition[EffectStatus],
        first_attempt_at: datetime | None = None,
    ) -> None:
        """Move one part."""
        entry = self.world.chain.move(
            Machine.EFFECT,
            row.tenant_id,
            row.run_id,
            part.id,
            part.seq,
            transition,
            row.lease_owner or "executor",
        )
        self.effect_moves.append(effects.EffectMove(part, transition, entry, first_attempt_at))

    def move(
        self,
        row: OperationRow,
        transition: Transition[OperationStatus],
        *,
        keeps_lease: bool = False,
        opened_at: datetime | None = None,
        ended_at: datetime | None = None,
        closed_version: int | None = None,
    ) -> None:
        """Move one operation; the journal also keeps what was checked."""
        detail = {**transition.detail, **self.checks.get(row.key, {})}
        entry = self.world.chain.move(
            Machine.OPERATION,
            row.tenant_id,
            row.run_id,
            row.id,
            row.seq,
            replace(transition, detail=detail),
            row.lease_owner or "executor",
        )
        self.operation_moves.append(
            operations.OperationMove(
                row,
                transition,
                entry,
                keeps_lease=keeps_lease,
                opened_at=opened_at,
                ended_at=ended_at,
                closed_version=closed_version,
            )
        )
        self.touched.append(row)

    def finish(self, row: OperationRow) -> None:
        """End an operation that is being opened and of which nothing is left to be done."""
        opened = replace(row, status=OperationStatus.EXECUTING, seq=row.seq + 1)
        done = operation.EffectsMoved([EffectStatus.APPLIED])
        ended = operation.decide(opened.status, done)
        assert isinstance(ended, Transition)
        chain = self.world.chain
        entry = chain.move(
            Machine.OPERATION,
            row.tenant_id,
            row.run_id,
            row.id,
            opened.seq,
            ended,
            row.lease_owner or "executor",
        )
        self.endings.append(operations.OperationMove(opened, ended, entry, ended_at=chain.now))

    def wait_for_desk(self, row: OperationRow, since: datetime, problem: str) -> None:
        """Say that the operation waits for its desk; the journal keeps when that began."""
        self.silences.append(DeskSilence(row.key, since, problem))
        self.touched.append(row)
        if row.desk_silent_since is None:
            self.notes.append(
                self.world.chain.note(
                    row.tenant_id,
                    row.run_id,
                    row.id,
                    DESK_SILENT,
                    row.lease_owner or "executor",
                    {"desk": row.desk, "problem": problem},
                )
            )

    def desk_has_told(self, row: OperationRow) -> None:
        """Say that the operation does not wait for its desk any more."""
        if row.desk_silent_since is not None:
            self.silences.append(DeskSilence(row.key, None, None))
            self.touched.append(row)

    async def apply(self, conn: Connection) -> None:
        """Write it all; a ticket's version is checked once more by the statement that closes it."""
        chain = self.world.chain
        await want_identities(conn, self.looks, chain.now)
        await want_groups(conn, self.group_looks, chain.now)
        versions = await desk.close_tickets(conn, self.closings, chain.now)
        for closing, version in zip(self.closings, versions, strict=True):
            assert version == closing.version + 1, "the ticket is locked and was compared"
        await desk.reopen_tickets(conn, self.reopenings, chain.now)
        await raise_limits(conn, self.raises)
        await episodes.record_closes(conn, self.closes)
        await operations.record_closed(conn, self.closed_stamps)
        await operations.record_desk_silence(conn, self.silences)
        await endings.end_unopened(conn, self.stale, "executor", chain, told=self.checks)
        await approvals.move(conn, self.approval_moves)
        await effects.move(conn, self.effect_moves)
        await effects.open_attempts(conn, self.attempts, chain.now)
        await effects.plan_recoveries(conn, self.recoveries)
        if self.world.purse is not None:
            await self.world.purse.write(conn, chain)
        await operations.move(conn, self.operation_moves)
        await operations.move(conn, self.endings)
        await journal.write_notes(conn, self.notes)
        await cards.want(
            conn,
            [(row.tenant_id, row.id, SubjectKind.OPERATION) for row in self.touched],
            chain.now,
        )
        await outside_tickets.keep(conn, self.seen)
        await journal.advance(conn, chain)


def _approvers(consent: Approval) -> str:
    return ", ".join(who for who, vote in consent.votes if vote is Vote.APPROVE)


def _reopening(row: OperationRow, consent: Approval) -> desk.Reopening:
    return desk.Reopening(
        row.tenant_id,
        row.ticket_id,
        row.ticket_version,
        _approvers(consent),
        REOPENING_NOTE,
        row.id,
    )


def _closing(row: OperationRow, consent: Approval) -> desk.Closing:
    return desk.Closing(
        row.tenant_id,
        row.ticket_id,
        row.ticket_version,
        _approvers(consent),
        f"Closed by Signoff, op_{row.number}, digest {row.digest.hex()[:16]}.",
        row.id,
    )
