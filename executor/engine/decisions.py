"""T3: clicks become votes, many in one commit; what was clicked is looked up, never taken from the
click.

Votes on one approval are folded in order, each deciding on what the one before left. The hash of a
signed request is inserted in this commit and no other, so that a redelivery after a crash is not
mistaken for one that was handled. Locks: policies, operations, approvals, cards, journal heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from executor.domain import approval, identity, operation
from executor.domain.approval import Approval, Vote
from executor.domain.errors import CommitUnknown
from executor.domain.identity import Identity
from executor.domain.ids import ApprovalId, PrincipalId, TenantId
from executor.domain.journal import Chain, JournalEntry
from executor.domain.payloads import JsonObject, storable_text
from executor.domain.policy import Permission, Policy
from executor.domain.transition import Machine, NoChange, Reason, Refused, Transition
from executor.engine import endings
from executor.engine.click import Click, ClickResult, NotConfirmed, Recorded, answer
from executor.engine.engine import Engine
from executor.engine.failpoint import Commit
from executor.store import approvals, cards, journal, operations, proposals, tenants
from executor.store.cards import Notice, PostingOutcome, SubjectKind
from executor.store.connection import Connection
from executor.store.operations import OperationKey, OperationRow
from executor.store.wakeups import Kind

LONGEST_NOTE = 1_000


@dataclass(slots=True)
class _Fold:
    """What one transaction has decided so far, per operation."""

    rows: dict[OperationKey, OperationRow]
    consents: dict[OperationKey, Approval]
    places: dict[tuple[TenantId, UUID], cards.CardPlace]
    postings: dict[UUID, cards.Posting]
    approval_moves: list[approvals.ApprovalMove]
    operation_moves: list[operations.OperationMove]
    presented: dict[OperationKey, Approval]
    decisions: dict[tuple[ApprovalId, PrincipalId], approvals.Decision]
    notes: list[JournalEntry]
    notices: list[Notice]
    touched: set[OperationKey]


async def decide_clicks(engine: Engine, clicks: Sequence[Click]) -> list[ClickResult]:
    """Record clicks in one commit and say what each came to.

    Opens its own transaction. The same signed request again changes nothing. Refusals are
    journaled. Raises ``CommitUnknown`` when the answer to COMMIT was lost: see ``decide`` for
    reading back.
    """
    async with engine.committing(Commit.DECIDE) as conn:
        fresh = await approvals.remember_requests(
            conn, [(c.tenant_id, c.request_hash) for c in clicks]
        )
        policies = await tenants.share_policies(conn, {c.tenant_id for c in clicks})
        fold = await _lock(conn, clicks)
        asked = await proposals.requesters_of(conn, list(fold.rows))
        people = await tenants.read_identities(conn, {(c.tenant_id, c.principal) for c in clicks})
        chain = await endings.lock_cards_and_chain(conn, list(fold.rows.values()))
        fold.places = await cards.lock(conn, [c.key for c in clicks])
        results: list[ClickResult] = []
        for click in clicks:
            if (click.tenant_id, click.request_hash) not in fresh:
                results.append(NoChange(Reason.ALREADY_VOTED))
                continue
            fresh.discard((click.tenant_id, click.request_hash))
            result = await _one(
                conn,
                engine,
                click,
                fold,
                policies.get(click.tenant_id),
                asked.get(click.key, []),
                people.get((click.tenant_id, click.principal)),
                chain,
            )
            results.append(result)
            row = fold.rows.get(click.key)
            said = answer(result, None) if row is None else answer(result, row.number, row.kind)
            if said is not None:
                fold.notices.append(
                    Notice(click.tenant_id, engine.mint(), click.channel, click.user_id, said)
                )
        await _apply(conn, fold, chain)
    engine.ring(Kind.WORK)
    engine.ring(Kind.CARDS)
    return results


async def read_back(engine: Engine, click: Click) -> ClickResult:
    """After ``CommitUnknown``: say whether this click's own vote is stored, and what it came to.

    A refusal leaves no vote behind, so its absence proves nothing. Opens its own transaction.
    """
    try:
        async with engine.database.transaction() as conn:
            # Waits for the transaction in doubt, if it is still under way.
            await operations.lock(conn, [click.key])
            consent = (await approvals.lock(conn, [click.key])).get(click.key)
            stored = await approvals.decision_of(
                conn, click.tenant_id, click.approval_id, click.principal
            )
    except CommitUnknown:
        return NotConfirmed()
    if consent is None or stored is None or stored[1] != click.request_hash:
        return NotConfirmed()
    votes = sum(1 for _, vote in consent.votes if vote is Vote.APPROVE)
    decided = consent.status is not approval.ApprovalStatus.OPEN
    return Recorded(stored[0], votes, consent.quorum, decided)


async def _lock(conn: Connection, clicks: Sequence[Click]) -> _Fold:
    rows = await operations.lock(conn, {c.key for c in clicks})
    consents = await approvals.lock(conn, list(rows))
    postings = await cards.postings(conn, {(c.tenant_id, c.nonce) for c in clicks})
    return _Fold(rows, consents, {}, postings, [], [], {}, {}, [], [], set())


async def _one(
    conn: Connection,
    engine: Engine,
    click: Click,
    fold: _Fold,
    policy: Policy | None,
    asked: Sequence[tuple[PrincipalId, bool]],
    person: Identity | None,
    chain: Chain,
) -> ClickResult:
    row, consent = fold.rows.get(click.key), fold.consents.get(click.key)
    if row is None or consent is None or policy is None:
        return Refused(Reason.CONTENT_CHANGED)
    if consent.id != click.approval_id:
        # Whatever else it was opened for later, an old Approve decides nothing of it.
        opened = row.status not in operation.UNOPENED
        return Refused(operation.refusal_for(row.status) if opened else Reason.CONTENT_CHANGED)
    consent = await _present(conn, click, consent, fold, chain)
    expired = approval.decide(consent, approval.TimePassed(), now=chain.now)
    if isinstance(expired, approval.Moved):
        consent = _expire(row, consent, expired, fold, chain)
        row = fold.rows[click.key]
    event = approval.VoteCast(
        click.principal,
        click.vote,
        click.digest,
        click.content_revision,
        click.note,
        _objection(policy, person, asked, click, fold, chain),
    )
    decision = approval.decide(consent, event, now=chain.now)
    if isinstance(decision, approval.Moved):
        return _record(click, row, consent, decision, fold, chain)
    if isinstance(decision, Refused):
        _note(click, row, "decision_refused", {"reason": decision.reason.value}, fold, chain)
        return Refused(decision.reason, {**decision.detail, **_who_decided(consent)})
    return decision


def _objection(
    policy: Policy,
    person: Identity | None,
    asked: Sequence[tuple[PrincipalId, bool]],
    click: Click,
    fold: _Fold,
    chain: Chain,
) -> Refused | None:
    """Say why this person may not decide this; anybody permitted may reject their own request."""
    about_the_person = policy.objection(click.principal, Permission.APPROVE) or identity.objection(
        person, policy.slack.team, now=chain.now
    )
    if about_the_person is not None:
        return about_the_person
    if click.vote is Vote.APPROVE:
        for requester, linked in asked:
            if requester == click.principal:
                return Refused(Reason.LINKED_REQUEST if linked else Reason.OWN_REQUEST)
    return None if _shown(click, fold) is not None else Refused(Reason.NOT_SHOWN)


def _shown(click: Click, fold: _Fold) -> bytes | None:
    """Return the digest of the view that was clicked, or ``None`` if it is no message of ours.

    A message is ours when it is the card's stored place, or when its nonce is that of a recorded
    posting of this card: one whose answer was lost, or that was delivered twice, may stand in
    Slack beside the one we know.
    """
    place, posting = fold.places.get(click.key), fold.postings.get(click.nonce)
    if place is not None and (place.channel, place.ts) == (click.channel, click.message_ts):
        return place.view_digest
    if (
        posting is not None
        and posting.subject_id == click.operation_id
        and posting.channel == click.channel
        and posting.outcome is not PostingOutcome.REFUSED
    ):
        return posting.view_digest
    return None


async def _present(
    conn: Connection, click: Click, consent: Approval, fold: _Fold, chain: Chain
) -> Approval:
    """Do T2 inside T3 for a click on a message whose posting's answer was lost.

    Only a message whose nonce is that of a recorded posting is adopted: nobody else can make one.
    """
    place, posting = fold.places.get(click.key), fold.postings.get(click.nonce)
    if place is None or place.ts is not None or posting is None or _shown(click, fold) is None:
        return consent
    await cards.end_posting(
        conn, click.tenant_id, click.nonce, PostingOutcome.POSTED, click.message_ts
    )
    await cards.place(
        conn,
        click.key,
        channel=click.channel,
        ts=click.message_ts,
        view_digest=posting.view_digest,
        content_revision=posting.content_revision,
    )
    fold.places[click.key] = replace(
        place,
        channel=click.channel,
        ts=click.message_ts,
        view_digest=posting.view_digest,
        content_revision=posting.content_revision,
    )
    fold.touched.add(click.key)
    shown = approval.decide(consent, approval.Presented(), now=chain.now)
    if isinstance(shown, approval.Moved):
        fold.consents[click.key] = fold.presented[click.key] = shown.approval
        return shown.approval
    return consent


def _expire(
    row: OperationRow, consent: Approval, expired: approval.Moved, fold: _Fold, chain: Chain
) -> Approval:
    """Record that the time was over before this click, whether or not a sweep has come by."""
    granted = consent.status is approval.ApprovalStatus.GRANTED
    reason = Reason.TIME_TO_USE_OVER if granted else Reason.EXPIRED
    _move(row, consent, expired, operation.TimeRanOut(reason), "clock", fold, chain)
    return expired.approval


def _record(
    click: Click,
    row: OperationRow,
    consent: Approval,
    decision: approval.Moved,
    fold: _Fold,
    chain: Chain,
) -> Recorded:
    view_digest = _shown(click, fold)
    note = storable_text(click.note)[:LONGEST_NOTE]
    fold.decisions[consent.id, click.principal] = approvals.Decision(
        click.tenant_id,
        consent.id,
        click.principal,
        click.vote,
        note,
        click.digest,
        click.content_revision,
        view_digest,
        {"channel": click.channel, "ts": click.message_ts},
        click.request_hash,
    )
    said: JsonObject = {
        "vote": click.vote.value,
        "digest": click.digest.hex(),
        "revision": click.content_revision,
        "view_digest": view_digest.hex() if view_digest else None,
        "ts": click.message_ts,
        "note": note,
    }
    _note(click, row, "voted", said, fold, chain)
    fold.consents[click.key] = decision.approval
    # A vote below the quorum changes the card as well: it shows who has voted.
    fold.touched.add(click.key)
    if decision.transition is not None:
        event: operation.Event = (
            operation.Denied(click.principal, note)
            if click.vote is Vote.REJECT
            else operation.Granted()
        )
        _move(row, consent, decision, event, click.principal, fold, chain)
    votes = sum(1 for _, vote in decision.approval.votes if vote is Vote.APPROVE)
    return Recorded(click.vote, votes, consent.quorum, decision.transition is not None)


def _move(
    row: OperationRow,
    before: Approval,
    decided: approval.Moved,
    event: operation.Event,
    actor: str,
    fold: _Fold,
    chain: Chain,
) -> None:
    """Move an approval and its operation together, and let later clicks of the group see it."""
    assert decided.transition is not None
    fold.approval_moves.append(
        endings.approval_move(row, before, decided.approval, decided.transition, actor, chain)
    )
    fold.consents[row.key] = decided.approval
    fold.touched.add(row.key)
    moved = operation.decide(row.status, event)
    if not isinstance(moved, Transition):
        return
    entry = chain.move(Machine.OPERATION, row.tenant_id, row.run_id, row.id, row.seq, moved, actor)
    approved = moved.target is operation.OperationStatus.APPROVED
    fold.operation_moves.append(
        operations.OperationMove(
            row,
            moved,
            entry,
            due_at=chain.now if approved else None,
            ended_at=None if approved else chain.now,
        )
    )
    fold.rows[row.key] = replace(row, status=moved.target, seq=row.seq + 1)


def _note(
    click: Click, row: OperationRow, event: str, detail: JsonObject, fold: _Fold, chain: Chain
) -> None:
    fold.notes.append(
        chain.note(
            click.tenant_id,
            row.run_id,
            click.approval_id,
            event,
            click.principal,
            {"vote": click.vote.value, **detail},
        )
    )


def _who_decided(consent: Approval) -> JsonObject:
    """Name who decided, for the sentence that the late clicker reads."""
    wanted = Vote.REJECT if consent.status is approval.ApprovalStatus.DENIED else Vote.APPROVE
    return {"by": [principal for principal, vote in consent.votes if vote is wanted]}


async def _apply(conn: Connection, fold: _Fold, chain: Chain) -> None:
    await approvals.present(
        conn, [(tenant, consent) for (tenant, _), consent in fold.presented.items()]
    )
    await approvals.record_decisions(conn, list(fold.decisions.values()), chain.now)
    await journal.write_notes(conn, fold.notes)
    await approvals.move(conn, fold.approval_moves)
    await operations.move(conn, fold.operation_moves)
    await cards.want(
        conn, [(tenant, id_, SubjectKind.OPERATION) for tenant, id_ in fold.touched], chain.now
    )
    await cards.queue_notices(conn, fold.notices, chain.now)
    await journal.advance(conn, chain)
