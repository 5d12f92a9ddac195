"""A person's word settles what no machine can: many in one commit, on the attempt they were shown.

It was sent, it was not, it was not and shall be sent again, or it is left as it is. A word is
recorded as the evidence of the attempt and folded as a report is, so that a proof that comes later
still wins over it. *Send again* is an approval of its own, of the same digest; the repeat is opened
by a worker, with every check that a repeat has to pass. A word never voids a reservation.

Locks: policies, runs, tickets, operations, approvals, effects and attempts, cards, journal heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from executor.domain import approval, identity, operation
from executor.domain.approval import Approval, ApprovalStatus, Vote
from executor.domain.effect import AttemptStatus, EffectStatus, Outcome, OutcomeKind
from executor.domain.errors import CommitUnknown
from executor.domain.identity import Identity
from executor.domain.ids import ApprovalId, PrincipalId, TenantId, is_operator
from executor.domain.operation import OperationStatus
from executor.domain.payloads import JsonObject, JsonValue, storable_text
from executor.domain.policy import Permission, Policy
from executor.domain.transition import Machine, NoChange, Reason, Refused, Transition
from executor.engine import endings, revalidation
from executor.engine.click import NotConfirmed
from executor.engine.engine import Engine
from executor.engine.failpoint import Commit
from executor.engine.report import Report, State, fold
from executor.engine.revalidation import World
from executor.engine.sending_again import Circumstances, objection_to_repeating
from executor.engine.word import (
    SAID,
    SAID_BY,
    WORD_GIVEN,
    WORD_REFUSED,
    Given,
    Said,
    Word,
    WordResult,
    answer,
)
from executor.store import approvals, cards, effects, journal, operations, tenants
from executor.store.cards import CardPlace, Notice, SubjectKind
from executor.store.connection import Connection
from executor.store.operations import OperationRow
from executor.store.wakeups import Kind

LONGEST_NOTE = 1_000


@dataclass(slots=True)
class _Hearing:
    """Everything that one transaction has locked, as the words before have left it."""

    conn: Connection
    engine: Engine
    world: World
    state: State
    people: dict[tuple[TenantId, PrincipalId], Identity]
    places: dict[cards.CardKey, CardPlace]


async def settle(engine: Engine, words: Sequence[Word]) -> list[WordResult]:
    """Record words in one commit and say what each came to.

    Opens its own transaction. The same signed request again changes nothing. Refusals are
    journaled. Raises ``CommitUnknown`` when the answer to COMMIT was lost: see ``read_back``.
    """
    async with engine.committing(Commit.SETTLE) as conn:
        signed = [(w.tenant_id, w.request_hash) for w in words if w.request_hash is not None]
        fresh = await approvals.remember_requests(conn, signed)
        world = await revalidation.lock_world(conn, list({w.key for w in words}))
        people = await tenants.read_identities(conn, {(w.tenant_id, w.principal) for w in words})
        places = await cards.lock(conn, list(world.rows))
        state = State(world.rows, world.parts, world.tries)
        hearing = _Hearing(conn, engine, world, state, people, places)
        results: list[WordResult] = []
        notices: list[Notice] = []
        for word in words:
            if word.request_hash is not None:
                request = (word.tenant_id, word.request_hash)
                if request not in fresh:
                    results.append(NoChange())
                    continue
                fresh.discard(request)
            result = await _hear(hearing, word)
            results.append(result)
            row = world.rows.get(word.key)
            said = answer(result, None if row is None else row.number)
            if said is not None and word.user_id:
                notices.append(
                    Notice(word.tenant_id, engine.mint(), word.channel, word.user_id, said)
                )
        now = world.chain.now
        await cards.want(conn, [(t, id_, SubjectKind.OPERATION) for t, id_ in world.rows], now)
        await cards.queue_notices(conn, notices, now)
        await journal.advance(conn, world.chain)
    engine.ring(Kind.WORK)
    engine.ring(Kind.CARDS)
    return results


async def read_back(engine: Engine, word: Word) -> WordResult:
    """After ``CommitUnknown``: say whether this very word is stored.

    Opens its own transaction. A word without a signed request cannot be told from another one.
    """
    try:
        async with engine.database.transaction() as conn:
            # Waits for the transaction in doubt, if it is still under way.
            row = (await operations.lock(conn, [word.key])).get(word.key)
            if row is None or word.request_hash is None:
                return NotConfirmed()
            entries, _ = await journal.read_chain(conn, row.tenant_id, row.run_id)
    except CommitUnknown:
        return NotConfirmed()
    request = word.request_hash.hex()
    for entry, _ in entries:
        if entry.event == WORD_GIVEN and entry.detail.get("request") == request:
            return Given(word.said, row.status)
    return NotConfirmed()


async def _hear(hearing: _Hearing, word: Word) -> WordResult:
    """Judge one word on what the ones before have left, and carry it out."""
    row = hearing.world.rows.get(word.key)
    policy = hearing.world.policies.get(word.tenant_id)
    if row is None or policy is None:
        return Refused(Reason.CONTENT_CHANGED)
    refused = _objection(hearing, word, row, policy)
    if refused is not None:
        await _note(hearing, word, row, WORD_REFUSED, {"reason": refused.reason.value})
        return refused
    await _note(hearing, word, row, WORD_GIVEN, {})
    match word.said:
        case Said.SENT:
            newest = _unknown_attempts(hearing, row)[-1]
            await _record(hearing, word, newest, OutcomeKind.APPLIED)
        case Said.NOT_SENT | Said.SEND_AGAIN:
            for attempt in _unknown_attempts(hearing, row):
                await _record(hearing, word, attempt, OutcomeKind.NOT_APPLIED)
            if word.said is Said.SEND_AGAIN:
                await _approve_repeat(hearing, word, row, policy)
                await _reopen(hearing, word)
        case Said.LEAVE:
            pass
    return Given(word.said, hearing.world.rows[word.key].status)


def _objection(hearing: _Hearing, word: Word, row: OperationRow, policy: Policy) -> Refused | None:
    """Say why this word does not count, or ``None``: the person first, then what it is about."""
    who = _objection_to(hearing, word, policy)
    if who is not None:
        return who
    if row.status is not OperationStatus.UNKNOWN:
        return Refused(operation.refusal_for(row.status))
    part = _part_in_doubt(hearing, row)
    newest = [t for t in hearing.state.tries[row.key] if t.attempt.effect_id == part.id][-1]
    if newest.attempt.id != word.attempt_id:
        return Refused(Reason.ATTEMPT_CHANGED)
    if word.said is not Said.SEND_AGAIN:
        return None
    for requester, linked in hearing.world.asked.get(row.key, []):
        if requester == word.principal:
            return Refused(Reason.LINKED_REQUEST if linked else Reason.OWN_REQUEST)
    return objection_to_repeating(_circumstances(hearing.world, row, policy))


def _objection_to(hearing: _Hearing, word: Word, policy: Policy) -> Refused | None:
    """Say why this person may not speak; whoever holds the database's credentials may settle."""
    if is_operator(word.principal):
        if word.request_hash is None and word.said is not Said.SEND_AGAIN:
            return None
        return Refused(Reason.NOT_PERMITTED, {"missing": Permission.APPROVE.value})
    person = hearing.people.get((word.tenant_id, word.principal))
    return policy.objection(word.principal, Permission.APPROVE) or identity.objection(
        person, policy.slack.team, now=hearing.world.chain.now
    )


def _circumstances(world: World, row: OperationRow, policy: Policy) -> Circumstances:
    run = world.runs.get((row.tenant_id, row.run_id))
    return Circumstances(
        policy=policy,
        requester=row.requester,
        run=None if run is None else run.status,
        ticket=world.tickets.get((row.tenant_id, row.ticket_id)),
        ticket_id=row.ticket_id,
        closed_version=row.closed_version,
        already_done=(row.tenant_id, row.intent_key) in world.succeeded,
    )


def _part_in_doubt(hearing: _Hearing, row: OperationRow) -> effects.EffectRow:
    return next(p for p in hearing.state.parts[row.key] if p.status is EffectStatus.UNKNOWN)


def _unknown_attempts(hearing: _Hearing, row: OperationRow) -> list[effects.AttemptRow]:
    """List the attempts that nobody knows of, oldest first; all of them were shown."""
    part = _part_in_doubt(hearing, row)
    return [
        t
        for t in hearing.state.tries[row.key]
        if t.attempt.effect_id == part.id and t.attempt.status is AttemptStatus.UNKNOWN
    ]


async def _record(
    hearing: _Hearing, word: Word, attempt: effects.AttemptRow, kind: OutcomeKind
) -> None:
    """Record the word as the evidence of one attempt, and let effect and operation follow."""
    evidence: dict[str, JsonValue] = {SAID_BY: word.principal, SAID: word.said.value}
    if word.note:
        evidence["note"] = storable_text(word.note)[:LONGEST_NOTE]
    report = Report(
        word.key,
        attempt.attempt.id,
        Outcome(kind, evidence),
        word.principal,
        reason=Reason.SAID_NOT_SENT,
        goes_on=word.said is Said.SEND_AGAIN,
    )
    await fold(hearing.conn, hearing.engine, report, hearing.state, hearing.world.chain)


async def _approve_repeat(hearing: _Hearing, word: Word, row: OperationRow, policy: Policy) -> None:
    """Open an approval of the same digest and grant it by this person; its time to use starts."""
    conn, chain = hearing.conn, hearing.world.chain
    opened = Approval(
        ApprovalId(hearing.engine.mint()),
        row.id,
        ApprovalStatus.OPEN,
        row.digest,
        row.content_revision,
        1,
        timedelta(seconds=policy.approval.decide_within_seconds),
        timedelta(seconds=policy.approval.use_within_seconds),
    )
    born = chain.birth(
        Machine.APPROVAL,
        row.tenant_id,
        row.run_id,
        opened.id,
        ApprovalStatus.OPEN,
        word.principal,
        {"operation": str(row.id), "quorum": opened.quorum, "repeat": True},
    )
    await approvals.insert(conn, [approvals.NewApproval(row.tenant_id, opened, born)], chain.now)
    shown = approval.decide(opened, approval.Presented(), now=chain.now)
    assert isinstance(shown, approval.Moved)
    await approvals.present(conn, [(row.tenant_id, shown.approval)])
    vote = approval.VoteCast(
        word.principal, Vote.APPROVE, row.digest, row.content_revision, word.note
    )
    granted = approval.decide(shown.approval, vote, now=chain.now)
    assert isinstance(granted, approval.Moved)
    assert granted.transition is not None, "one vote is enough"
    place = hearing.places.get(word.key)
    decision = approvals.Decision(
        row.tenant_id,
        opened.id,
        word.principal,
        Vote.APPROVE,
        storable_text(word.note)[:LONGEST_NOTE],
        row.digest,
        row.content_revision,
        None if place is None else place.view_digest,
        {"channel": word.channel, "ts": word.message_ts},
        word.request_hash,
    )
    await approvals.record_decisions(conn, [decision], chain.now)
    move = endings.approval_move(
        row, shown.approval, granted.approval, granted.transition, word.principal, chain
    )
    await approvals.move(conn, [move])


async def _reopen(hearing: _Hearing, word: Word) -> None:
    """Let a worker open the repeat: it is due now."""
    chain, row = hearing.world.chain, hearing.world.rows[word.key]
    again = operation.decide(row.status, operation.SentAgain())
    assert isinstance(again, Transition)
    entry = chain.move(
        Machine.OPERATION, row.tenant_id, row.run_id, row.id, row.seq, again, word.principal
    )
    await operations.move(
        hearing.conn, [operations.OperationMove(row, again, entry, due_at=chain.now)]
    )
    hearing.world.rows[word.key] = replace(row, status=again.target, seq=row.seq + 1)


async def _note(
    hearing: _Hearing, word: Word, row: OperationRow, event: str, detail: JsonObject
) -> None:
    said: dict[str, JsonValue] = {"said": word.said.value, **detail}
    if word.note:
        said["note"] = storable_text(word.note)[:LONGEST_NOTE]
    if word.request_hash is not None:
        said["request"] = word.request_hash.hex()
    entry = hearing.world.chain.note(
        row.tenant_id, row.run_id, word.attempt_id, event, word.principal, said
    )
    await journal.write_notes(hearing.conn, [entry])
