"""Asking the agent about what waits for a decision: recorded in one commit, answered by its run.

The run, which waits, is woken to answer. The approval stays open and its time goes on: a question
decides nothing. Locks: policies, runs, operations, approvals, cards, journal heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import assert_never
from uuid import UUID

from executor.domain import approval, identity, operation
from executor.domain.approval import Approval
from executor.domain.authority import Authority
from executor.domain.errors import CommitUnknown
from executor.domain.identity import Identity
from executor.domain.ids import OperationId, PrincipalId, TenantId
from executor.domain.journal import Chain, JournalEntry
from executor.domain.operation import OperationStatus
from executor.domain.payloads import JsonObject
from executor.domain.run import ENDED, RunStatus
from executor.domain.secret_text import as_kept
from executor.domain.transition import NoChange, Reason, Refused
from executor.engine import endings
from executor.engine.click import NotConfirmed, refused_answer
from executor.engine.endings import RunKey
from executor.engine.engine import Engine
from executor.engine.failpoint import Commit
from executor.engine.rights import read_rights
from executor.store import (
    approvals,
    cards,
    journal,
    operation_lookups,
    operations,
    questions,
    runs,
    tenants,
)
from executor.store.cards import Notice, SubjectKind
from executor.store.connection import Connection
from executor.store.operations import OperationKey, OperationRow
from executor.store.people import read_identities
from executor.store.questions import NewQuestion
from executor.store.runs import RunRow
from executor.store.wakeups import Kind

LONGEST_QUESTION = 1_000
QUESTION_ASKED, QUESTION_REFUSED = "question_asked", "question_refused"
"""The journal's notes about questions of people."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One person's question; ``request_hash`` is that of the signed request.

    ``channel`` and ``user_id`` are where that person is answered privately.
    """

    tenant_id: TenantId
    operation_id: OperationId
    principal: PrincipalId
    question: str
    channel: str
    user_id: str
    request_hash: bytes

    @property
    def key(self) -> OperationKey:
        """The operation that is asked about."""
        return self.tenant_id, self.operation_id


@dataclass(frozen=True, slots=True)
class Asked:
    """The question is stored and goes to the agent; so many more may follow."""

    left: int


AskResult = Asked | NoChange | Refused | NotConfirmed


def answer(result: AskResult, number: int | None) -> JsonObject | None:
    """Spell the private answer as it is queued; ``None`` where there is nothing new to say."""
    match result:
        case Asked(left=left):
            return {"kind": "asked", "left": left, "operation": number}
        case Refused():
            return refused_answer(result, number)
        case NoChange() | NotConfirmed():
            return None
        case _:
            assert_never(result)


async def ask(engine: Engine, asks: Sequence[Ask]) -> list[AskResult]:
    """Record questions in one commit and wake the runs that are to answer them.

    Opens its own transaction. The same signed request again changes nothing, nor does the same
    question of the same person while it is open. Refusals are journaled. Raises ``CommitUnknown``
    when the answer to COMMIT was lost: see ``read_back``.
    """
    async with engine.committing(Commit.ASK) as conn:
        fresh = await approvals.remember_requests(
            conn, [(a.tenant_id, a.request_hash) for a in asks]
        )
        hearing = await _lock(conn, engine, asks)
        results: list[AskResult] = []
        for one in asks:
            if (one.tenant_id, one.request_hash) not in fresh:
                results.append(NoChange())
                continue
            fresh.discard((one.tenant_id, one.request_hash))
            result = hearing.hear(one)
            results.append(result)
            row = hearing.rows.get(one.key)
            said = answer(result, None if row is None else row.number)
            if said is not None:
                hearing.notices.append(
                    Notice(one.tenant_id, engine.mint(), one.channel, one.user_id, said)
                )
        await hearing.write(conn)
    engine.ring(Kind.WORK)
    engine.ring(Kind.CARDS)
    return results


async def read_back(engine: Engine, asked: Ask) -> AskResult:
    """After ``CommitUnknown``: say whether this very question is stored.

    Opens its own transaction.
    """
    try:
        async with engine.database.transaction() as conn:
            # Waits for the transaction in doubt, if it is still under way.
            await operations.lock(conn, [asked.key])
            stored = await questions.of_request(conn, asked.tenant_id, asked.request_hash)
    except CommitUnknown:
        return NotConfirmed()
    return Asked(0) if stored else NotConfirmed()


async def objection_to_asking(
    engine: Engine, tenant: TenantId, principal: PrincipalId, operation_id: OperationId
) -> Refused | None:
    """Say why this person could not ask now, before a form is opened; opens a transaction.

    A courtesy: it is asked again, under locks, when the question comes.
    """
    one = Ask(tenant, operation_id, principal, "", "", "", b"")
    async with engine.database.transaction() as conn:
        hearing = await _lock(conn, engine, [one])
    return hearing.objection(one)


async def _lock(conn: Connection, engine: Engine, asks: Sequence[Ask]) -> _Hearing:
    keys = {a.key for a in asks}
    policies = await tenants.share_policies(conn, {a.tenant_id for a in asks})
    named = await operation_lookups.peek(conn, keys)
    locked = await runs.lock(conn, {(n.tenant_id, n.run_id) for n in named})
    rows = await operations.lock(conn, keys)
    consents = await approvals.lock(conn, list(rows))
    speakers = {(a.tenant_id, a.principal) for a in asks}
    people = await read_identities(conn, speakers)
    rights = await read_rights(conn, policies, speakers)
    earlier = await questions.of_operations(conn, list(rows))
    chain = await endings.lock_cards_and_chain(conn, list(rows.values()))
    authorities = {t: rights.authority(policy, chain.now) for t, policy in policies.items()}
    asked = {
        key: [_Earlier(q.asked_by, q.question, q.closed_at is None) for q in found]
        for key, found in earlier.items()
    }
    return _Hearing(engine, chain, authorities, locked, rows, consents, people, asked)


@dataclass(frozen=True, slots=True)
class _Earlier:
    """One question of an operation, as the next one is measured by it."""

    by: PrincipalId
    text: str
    is_open: bool


@dataclass(slots=True)
class _Hearing:
    """What one transaction has locked and read, and what it has been asked so far."""

    engine: Engine
    chain: Chain
    authorities: dict[TenantId, Authority]
    runs: dict[RunKey, RunRow]
    rows: dict[OperationKey, OperationRow]
    consents: dict[OperationKey, Approval]
    people: dict[tuple[TenantId, PrincipalId], Identity]
    asked: dict[OperationKey, list[_Earlier]]
    new: list[NewQuestion] = field(default_factory=list)
    notes: list[JournalEntry] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)

    def hear(self, one: Ask) -> AskResult:
        """Judge one question on what the ones before have left, and keep it."""
        text = as_kept(one.question, LONGEST_QUESTION)
        earlier = self._earlier(one)
        question = _Earlier(one.principal, text, is_open=True)
        if question in earlier:
            # Somebody who saw no answer to the form has sent it again, as another request.
            return NoChange()
        row, refused = self.rows.get(one.key), self.objection(one)
        if row is None or refused is not None:
            refused = refused or Refused(Reason.CONTENT_CHANGED)
            if row is not None:
                why = {**refused.detail, "reason": refused.reason.value}
                self._note(one, row, row.id, QUESTION_REFUSED, why)
            return refused
        id_ = self.engine.mint()
        self.new.append(
            NewQuestion(
                one.tenant_id, id_, row.run_id, row.id, one.principal, text, one.request_hash
            )
        )
        self.asked[one.key] = [*earlier, question]
        self._note(one, row, id_, QUESTION_ASKED, {"operation": str(row.id), "question": text})
        most = self.authorities[one.tenant_id].policy.run.max_questions
        return Asked(most - len(earlier) - 1)

    def objection(self, one: Ask) -> Refused | None:
        """Say why somebody may not ask now: the person first, then what it is about."""
        row, consent = self.rows.get(one.key), self.consents.get(one.key)
        authority = self.authorities.get(one.tenant_id)
        if row is None or consent is None or authority is None:
            return Refused(Reason.CONTENT_CHANGED)
        about_the_person = self._objection_to(one, row, consent, authority)
        if about_the_person is not None:
            return about_the_person
        if row.status is not OperationStatus.AWAITING:
            return Refused(operation.refusal_for(row.status))
        passed = approval.decide(consent, approval.TimePassed(), now=self.chain.now)
        if isinstance(passed, approval.Moved):
            return Refused(Reason.EXPIRED)
        nobody = _objection_of(self.runs.get((row.tenant_id, row.run_id)))
        if nobody is not None:
            return nobody
        most = authority.policy.run.max_questions
        asked = len(self._earlier(one))
        return None if asked < most else Refused(Reason.QUESTION_LIMIT, {"most": most})

    def _earlier(self, one: Ask) -> list[_Earlier]:
        return self.asked.get(one.key, [])

    def _objection_to(
        self, one: Ask, row: OperationRow, consent: Approval, authority: Authority
    ) -> Refused | None:
        """Whoever may decide may ask, and whoever asked for the run."""
        terms = consent.terms.under(authority.policy, row.kind, row.risks)
        may_not = (
            None
            if one.principal == row.requester
            else authority.objection_to_voting(one.principal, terms.requirements, row.resource)
        )
        person = self.people.get((one.tenant_id, one.principal))
        return may_not or identity.objection(
            person, authority.policy.slack.team, now=self.chain.now
        )

    async def write(self, conn: Connection) -> None:
        """Write everything, in the transaction that holds the locks."""
        if self.new:
            await questions.insert(conn, self.new, self.chain.now)
            # One that works just now looks for questions before it waits again.
            await runs.make_due(conn, {(q.tenant_id, q.run_id) for q in self.new}, self.chain.now)
            await cards.want(
                conn,
                [(q.tenant_id, q.operation_id, SubjectKind.OPERATION) for q in self.new],
                self.chain.now,
            )
        await journal.write_notes(conn, self.notes)
        await cards.queue_notices(conn, self.notices, self.chain.now)
        await journal.advance(conn, self.chain)

    def _note(
        self, one: Ask, row: OperationRow, entity: UUID, event: str, detail: JsonObject
    ) -> None:
        self.notes.append(
            self.chain.note(one.tenant_id, row.run_id, entity, event, one.principal, detail)
        )


def _objection_of(run: RunRow | None) -> Refused | None:
    """Say why a run answers nobody: no model works it, or it does not go on."""
    if run is None or not run.driven:
        return Refused(Reason.NOBODY_TO_ASK)
    if run.status is RunStatus.PAUSED:
        return Refused(Reason.RUN_HELD)
    if run.status is RunStatus.CANCELLING or run.status in ENDED:
        return Refused(Reason.RUN_ENDING)
    return None
