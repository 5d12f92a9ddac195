"""A repeat is approved on its own: the same digest, after one attempt, by as many as policy asks.

The first person who says *send again* opens the approval with that vote; until the quorum is
reached nobody knows more than before, and the attempt stays unknown. Whatever settles the doubt
otherwise ends the approval, and so does its time. It lies under the operation's lock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from executor.domain import approval
from executor.domain.approval import Approval, ApprovalStatus, Vote
from executor.domain.effect import EffectStatus
from executor.domain.ids import ApprovalId, AttemptId, PrincipalId, TenantId
from executor.domain.interest import Interest
from executor.domain.journal import Chain
from executor.domain.payloads import JsonObject
from executor.domain.policy import Policy
from executor.domain.secret_text import as_kept
from executor.domain.terms import terms_for
from executor.domain.transition import Machine, NoChange, Refused
from executor.engine import endings
from executor.engine.engine import Engine
from executor.engine.report import State
from executor.engine.rights import Rights, read_rights
from executor.store import approvals
from executor.store.connection import Connection
from executor.store.operations import OperationKey, OperationRow

LONGEST_NOTE = 1_000


@dataclass(frozen=True, slots=True)
class Yes:
    """One person's vote for a repeat after ``attempt``, with what that person was shown."""

    principal: PrincipalId
    attempt: AttemptId
    note: str
    view_digest: bytes | None
    shown_at: JsonObject
    request_hash: bytes | None


@dataclass(slots=True)
class Repeats:
    """The approvals of repeats under way, as the words before have left them."""

    conn: Connection
    engine: Engine
    chain: Chain
    under_way: dict[OperationKey, Approval]
    asked: Mapping[OperationKey, Sequence[tuple[PrincipalId, bool]]]
    rights: Rights

    def open_for(self, row: OperationRow, attempt: AttemptId) -> Approval | None:
        """Return the open approval of a repeat after this attempt whose time is not over."""
        found = self.under_way.get(row.key)
        if found is None or found.status is not ApprovalStatus.OPEN or found.repeats != attempt:
            return None
        over = approval.decide(found, approval.TimePassed(), now=self.chain.now)
        return None if isinstance(over, approval.Moved) else found

    def judge(self, row: OperationRow, policy: Policy, yes: Yes) -> NoChange | Refused | None:
        """Say why a vote adds nothing, or ``None``; nobody counts twice."""
        found = self.open_for(row, yes.attempt)
        if found is None:
            return None
        decided = approval.decide(found, self._cast(row, policy, found, yes), now=self.chain.now)
        return None if isinstance(decided, approval.Moved) else decided

    async def vote(self, row: OperationRow, policy: Policy, yes: Yes) -> tuple[Approval, int]:
        """Record a vote that ``judge`` has let, opening the approval with the first one.

        Returns the approval and how many more people have to say the same.
        """
        before = self.open_for(row, yes.attempt)
        if before is None:
            await self.end(row, yes.principal)
            before = await self._open(row, policy, yes)
        cast = self._cast(row, policy, before, yes)
        decided = approval.decide(before, cast, now=self.chain.now)
        assert isinstance(decided, approval.Moved), decided
        await approvals.record_decisions(self.conn, [_decision(row, before, yes)], self.chain.now)
        if decided.transition is not None:
            move = endings.approval_move(
                row, before, decided.approval, decided.transition, yes.principal, self.chain
            )
            await approvals.move(self.conn, [move])
        self.under_way[row.key] = decided.approval
        return decided.approval, max(0, cast.still_needed)

    def _cast(
        self, row: OperationRow, policy: Policy, consent: Approval, yes: Yes
    ) -> approval.VoteCast:
        """Count what would be lacking with this vote, by the rules of then and by those of now."""
        terms = consent.terms.under(policy, row.kind, row.risks)
        missing = self.rights.authority(policy, self.chain.now).still_needed(
            terms.requirements,
            [*consent.approving, yes.principal],
            row.resource,
            Interest(row.requester, self.asked.get(row.key, ()), row.editor).people,
        )
        return approval.VoteCast(
            yes.principal, Vote.APPROVE, row.digest, row.content_revision, yes.note, missing
        )

    async def end(self, row: OperationRow, actor: str) -> None:
        """End what is under way for a repeat, if anything: it is about what is no longer so."""
        found = self.under_way.pop(row.key, None)
        if found is None:
            return
        ended = approval.decide(found, approval.TimePassed(), now=self.chain.now)
        if not isinstance(ended, approval.Moved):
            ended = approval.decide(
                found, approval.OperationEnded(withdrawn=False), now=self.chain.now
            )
        assert isinstance(ended, approval.Moved)
        assert ended.transition is not None
        await approvals.move(
            self.conn,
            [
                endings.approval_move(
                    row, found, ended.approval, ended.transition, actor, self.chain
                )
            ],
        )

    async def _open(self, row: OperationRow, policy: Policy, yes: Yes) -> Approval:
        """Open an approval of the same digest; its time to decide starts, for it was shown."""
        opened = Approval(
            ApprovalId(self.engine.mint()),
            row.id,
            ApprovalStatus.OPEN,
            row.digest,
            row.content_revision,
            terms_for(policy, row.kind, row.risks),
            repeats=yes.attempt,
        )
        born = self.chain.birth(
            Machine.APPROVAL,
            row.tenant_id,
            row.run_id,
            opened.id,
            ApprovalStatus.OPEN,
            yes.principal,
            {
                "operation": str(row.id),
                "quorum": opened.quorum,
                "terms": opened.terms.as_json(),
                "repeats": str(yes.attempt),
            },
        )
        new = approvals.NewApproval(row.tenant_id, opened, born)
        await approvals.insert(self.conn, [new], self.chain.now)
        shown = approval.decide(opened, approval.Presented(), now=self.chain.now)
        assert isinstance(shown, approval.Moved)
        await approvals.present(self.conn, [(row.tenant_id, shown.approval)])
        return shown.approval


async def repeats_of(
    conn: Connection,
    engine: Engine,
    chain: Chain,
    rows: Sequence[OperationRow],
    policies: Mapping[TenantId, Policy],
    asked: Mapping[OperationKey, Sequence[tuple[PrincipalId, bool]]],
    speakers: Sequence[tuple[TenantId, PrincipalId]] = (),
) -> Repeats:
    """Read what is under way for locked operations, and the rights of ``speakers`` and voters.

    ``asked`` names who asked for each operation: their yes does not count.
    """
    under_way = await approvals.repeats_under_way(conn, [row.key for row in rows])
    voters = [(key[0], who) for key, found in under_way.items() for who in found.approving]
    rights = await read_rights(conn, policies, [*speakers, *voters])
    return Repeats(conn, engine, chain, under_way, asked, rights)


async def end_overtaken(repeats: Repeats, state: State, actor: str) -> None:
    """End what is under way for what is now known to be done."""
    for key, found in list(repeats.under_way.items()):
        done = {p.id for p in state.parts[key] if p.status is EffectStatus.APPLIED}
        if any(
            t.attempt.id == found.repeats for t in state.tries[key] if t.attempt.effect_id in done
        ):
            await repeats.end(state.rows[key], actor)


def _decision(row: OperationRow, consent: Approval, yes: Yes) -> approvals.Decision:
    return approvals.Decision(
        row.tenant_id,
        consent.id,
        yes.principal,
        Vote.APPROVE,
        as_kept(yes.note, LONGEST_NOTE),
        row.digest,
        row.content_revision,
        yes.view_digest,
        yes.shown_at,
        yes.request_hash,
    )
