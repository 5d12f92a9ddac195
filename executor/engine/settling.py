"""A person's word settles what no machine can: many in one commit, on the attempt they were shown.

It was sent, it was not, it was not and shall be sent again, or it is left as it is. A word is
recorded as the evidence of the attempt and folded as a report is, so that a proof that comes later
still wins over it. *Send again* is a vote on an approval of its own, of the same digest: the
attempt stays unknown until as many people as the policy asks have said it. The repeat is opened by
a worker, with every check that a repeat has to pass. A word never voids a reservation.

Locks: policies, runs, tickets, operations, approvals, effects and attempts, cards, journal heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from executor.domain import identity, operation
from executor.domain.approval import ApprovalStatus
from executor.domain.effect import AttemptStatus, EffectKind, EffectStatus, Outcome, OutcomeKind
from executor.domain.errors import CommitUnknown
from executor.domain.identity import Identity
from executor.domain.ids import PrincipalId, TenantId, is_operator
from executor.domain.operation import OperationStatus
from executor.domain.payloads import JsonObject, JsonValue
from executor.domain.policy import Permission, Policy
from executor.domain.secret_text import as_kept
from executor.domain.terms import terms_for
from executor.domain.transition import Machine, NoChange, Reason, Refused, Transition
from executor.engine import revalidation
from executor.engine.click import NotConfirmed
from executor.engine.engine import Engine
from executor.engine.failpoint import Commit
from executor.engine.repeat_approval import LONGEST_NOTE, Repeats, Yes, repeats_of
from executor.engine.report import Report, State, fold
from executor.engine.sending_again import Circumstances, objection_to_repeating
from executor.engine.word import (
    NOTE,
    SAID,
    SAID_BY,
    WORD_GIVEN,
    WORD_REFUSED,
    Given,
    MayBeGiven,
    Said,
    Word,
    WordResult,
    answer,
)
from executor.engine.world import World, lock_world
from executor.store import approvals, cards, effects, journal, operations
from executor.store.cards import CardPlace, Notice, SubjectKind
from executor.store.connection import Connection
from executor.store.operations import OperationRow
from executor.store.people import read_identities
from executor.store.wakeups import Kind


@dataclass(slots=True)
class _Hearing:
    """Everything that one transaction has locked, as the words before have left it."""

    conn: Connection
    engine: Engine
    world: World
    state: State
    people: dict[tuple[TenantId, PrincipalId], Identity]
    places: dict[cards.CardKey, CardPlace]
    repeats: Repeats


async def settle(engine: Engine, words: Sequence[Word]) -> list[WordResult]:
    """Record words in one commit and say what each came to.

    Opens its own transaction. The same signed request again changes nothing, nor does a person who
    asks only for the form. Refusals are journaled. Raises ``CommitUnknown`` when the answer to
    COMMIT was lost: see ``read_back``.
    """
    async with engine.committing(Commit.SETTLE) as conn:
        signed = [(w.tenant_id, w.request_hash) for w in words if w.request_hash is not None]
        fresh = await approvals.remember_requests(conn, signed)
        world = await lock_world(conn, list({w.key for w in words}))
        people = await read_identities(conn, {(w.tenant_id, w.principal) for w in words})
        places = await cards.lock(conn, list(world.rows))
        state = State(world.rows, world.parts, world.tries)
        repeats = await repeats_of(
            conn,
            engine,
            world.chain,
            list(world.rows.values()),
            world.policies,
            world.asked,
            [(w.tenant_id, w.principal) for w in words],
        )
        hearing = _Hearing(conn, engine, world, state, people, places, repeats)
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
        said_of = {w.key for w, r in zip(words, results, strict=True) if r != MayBeGiven()}
        touched = [(t, id_, SubjectKind.OPERATION) for t, id_ in world.rows if (t, id_) in said_of]
        await cards.want(conn, touched, now)
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
            missing = entry.detail.get("still_needed")
            return Given(
                word.said,
                row.status,
                EffectKind(str(entry.detail.get("effect"))),
                missing if isinstance(missing, int) else 0,
            )
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
    yes = _yes(hearing, word)
    if word.said is Said.SEND_AGAIN:
        counted = hearing.repeats.judge(row, policy, yes)
        if isinstance(counted, Refused):
            await _note(hearing, word, row, WORD_REFUSED, {"reason": counted.reason.value})
        if counted is not None:
            return counted
    if word.only_asks:
        return MayBeGiven()
    effect = _part_in_doubt(hearing, row).kind
    missing = 0
    match word.said:
        case Said.SENT:
            await _note(hearing, word, row, WORD_GIVEN, {"effect": effect.value})
            await _settle(hearing, word, row, OutcomeKind.APPLIED)
        case Said.NOT_SENT:
            await _note(hearing, word, row, WORD_GIVEN, {"effect": effect.value})
            await _settle(hearing, word, row, OutcomeKind.NOT_APPLIED)
        case Said.SEND_AGAIN:
            missing = await _send_again(hearing, word, row, policy, yes, effect)
        case Said.LEAVE:
            await _note(hearing, word, row, WORD_GIVEN, {"effect": effect.value})
    return Given(word.said, hearing.world.rows[word.key].status, effect, missing)


async def _send_again(
    hearing: _Hearing,
    word: Word,
    row: OperationRow,
    policy: Policy,
    yes: Yes,
    effect: EffectKind,
) -> int:
    """Count one person's yes; once enough said it, it was not sent and a worker sends it again."""
    consent, missing = await hearing.repeats.vote(row, policy, yes)
    told: JsonObject = {"effect": effect.value, "still_needed": missing, "quorum": consent.quorum}
    await _note(hearing, word, row, WORD_GIVEN, told)
    if consent.status is ApprovalStatus.GRANTED:
        for attempt in _unknown_attempts(hearing, row):
            await _record(hearing, word, attempt, OutcomeKind.NOT_APPLIED)
        await _reopen(hearing, word)
    return missing


async def _settle(hearing: _Hearing, word: Word, row: OperationRow, kind: OutcomeKind) -> None:
    """Let a word be the end of a doubt: of the newest attempt if it was sent, else of all."""
    unknown = _unknown_attempts(hearing, row)
    await hearing.repeats.end(row, word.principal)
    for attempt in unknown[-1:] if kind is OutcomeKind.APPLIED else unknown:
        await _record(hearing, word, attempt, kind)


def _yes(hearing: _Hearing, word: Word) -> Yes:
    place = hearing.places.get(word.key)
    return Yes(
        word.principal,
        word.attempt_id,
        word.note,
        None if place is None else place.view_digest,
        {"channel": word.channel, "ts": word.message_ts},
        word.request_hash,
    )


def _objection(hearing: _Hearing, word: Word, row: OperationRow, policy: Policy) -> Refused | None:
    """Say why this word does not count, or ``None``: the person first, then what it is about."""
    who = _objection_to(hearing, word, row, policy)
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
    authority = hearing.repeats.rights.authority(policy, hearing.world.chain.now)
    requirements = terms_for(policy, row.kind, row.risks).requirements
    interested = hearing.world.interest(row).objection_to_approving(
        authority, word.principal, requirements, row.resource
    )
    return interested or objection_to_repeating(_circumstances(hearing.world, row, policy))


def _objection_to(
    hearing: _Hearing, word: Word, row: OperationRow, policy: Policy
) -> Refused | None:
    """Say why this person may not speak; whoever holds the database's credentials may settle."""
    if is_operator(word.principal):
        if word.request_hash is None and word.said is not Said.SEND_AGAIN:
            return None
        return Refused(Reason.NOT_PERMITTED, {"missing": Permission.APPROVE.value})
    person = hearing.people.get((word.tenant_id, word.principal))
    now = hearing.world.chain.now
    requirements = terms_for(policy, row.kind, row.risks).requirements
    return hearing.repeats.rights.authority(policy, now).objection_to_voting(
        word.principal, requirements, row.resource
    ) or identity.objection(person, policy.slack.team, now=now)


def _circumstances(world: World, row: OperationRow, policy: Policy) -> Circumstances:
    run = world.runs.get((row.tenant_id, row.run_id))
    authority = world.authority(policy)
    return Circumstances(
        requester=revalidation.requester_objection(authority, row.requester, row.resource),
        run=None if run is None else run.status,
        desk=None if row.target is None else row.desk,
        ticket=None if row.target is None else world.tickets.get((row.tenant_id, row.ticket_id)),
        ticket_id=None if row.target is None else row.ticket_id,
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
        evidence[NOTE] = as_kept(word.note, LONGEST_NOTE)
    report = Report(
        word.key,
        attempt.attempt.id,
        Outcome(kind, evidence),
        word.principal,
        reason=Reason.SAID_NOT_SENT,
        goes_on=word.said is Said.SEND_AGAIN,
    )
    await fold(hearing.conn, hearing.engine, report, hearing.state, hearing.world.chain)


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
        said["note"] = as_kept(word.note, LONGEST_NOTE)
    if word.request_hash is not None:
        said["request"] = word.request_hash.hex()
    entry = hearing.world.chain.note(
        row.tenant_id, row.run_id, word.attempt_id, event, word.principal, said
    )
    await journal.write_notes(hearing.conn, [entry])
