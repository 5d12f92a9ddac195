"""T3: clicks become votes, many in one commit; what was clicked is looked up, never taken from the
click.

Votes on one approval are folded in order, each deciding on what the one before left. The hash of a
signed request is inserted in this commit and no other, so that a redelivery after a crash is not
mistaken for one that was handled. Locks: policies, the runs that a rejection would stop,
operations, approvals, cards, journal heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from executor.domain import approval, identity, operation
from executor.domain.approval import Approval, Vote
from executor.domain.authority import Authority
from executor.domain.errors import CommitUnknown
from executor.domain.identity import Identity
from executor.domain.ids import PrincipalId, TenantId
from executor.domain.interest import Interest
from executor.domain.journal import Chain
from executor.domain.payloads import JsonObject
from executor.domain.secret_text import as_kept
from executor.domain.terms import Terms
from executor.domain.transition import NoChange, Reason, Refused
from executor.engine import endings
from executor.engine.click import Click, ClickResult, NotConfirmed, Recorded, answer
from executor.engine.click_fold import Fold
from executor.engine.clicked_view import clicked_view
from executor.engine.engine import Engine
from executor.engine.failpoint import Commit
from executor.engine.rights import read_rights
from executor.store import (
    approvals,
    cards,
    modal_views,
    operation_lookups,
    operations,
    proposals,
    tenants,
)
from executor.store.cards import Notice, PostingOutcome
from executor.store.connection import Connection
from executor.store.operations import OperationRow
from executor.store.people import read_identities
from executor.store.wakeups import Kind

LONGEST_NOTE = 1_000


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
        people = await read_identities(conn, {(c.tenant_id, c.principal) for c in clicks})
        rights = await read_rights(conn, policies, _voters(clicks, fold))
        chain = await endings.lock_cards_and_chain(
            conn, list(fold.rows.values()), runs_too=list(fold.runs)
        )
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
                rights.of(policies.get(click.tenant_id), chain.now),
                asked.get(click.key, []),
                people.get((click.tenant_id, click.principal)),
                chain,
            )
            results.append(result)
            said = _answer(click, result, fold)
            if said is not None:
                fold.notices.append(
                    Notice(click.tenant_id, engine.mint(), click.channel, click.user_id, said)
                )
        await fold.write(conn, chain)
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
    decided = consent.status is not approval.ApprovalStatus.OPEN
    lacking = 0 if decided else consent.quorum - len(consent.approving)
    return Recorded(stored[0], max(0, lacking), decided)


async def _lock(conn: Connection, clicks: Sequence[Click]) -> Fold:
    """Lock what was clicked; runs first, with all their operations, where one may be stopped."""
    clicked, stopping = {c.key for c in clicks}, [c.key for c in clicks if c.stops_run]
    postings = await cards.postings(conn, {(c.tenant_id, c.nonce) for c in clicks})
    modals = await modal_views.by_nonce(
        conn, {(c.tenant_id, c.modal) for c in clicks if c.modal is not None}
    )
    if not stopping:
        rows = await operations.lock(conn, clicked)
        return Fold({}, rows, await approvals.lock(conn, list(rows)), postings, modals)
    named = await operation_lookups.peek(conn, stopping)
    locked = await endings.lock_run_with_operations(
        conn, list({(n.tenant_id, n.run_id) for n in named}), also=list(clicked)
    )
    return Fold(locked.runs, locked.operations, locked.approvals, postings, modals)


def _answer(click: Click, result: ClickResult, fold: Fold) -> JsonObject | None:
    """Spell the private answer, which also says of a run that it was not stopped after all."""
    row = fold.rows.get(click.key)
    if row is None:
        return answer(result, None)
    run = fold.run_of(click.key) if click.stops_run else None
    return answer(result, row.number, row.kind, None if run is None else run.number)


async def _one(
    conn: Connection,
    engine: Engine,
    click: Click,
    fold: Fold,
    authority: Authority | None,
    asked: Sequence[tuple[PrincipalId, bool]],
    person: Identity | None,
    chain: Chain,
) -> ClickResult:
    row, consent = fold.rows.get(click.key), fold.consents.get(click.key)
    if row is None or consent is None or authority is None:
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
    terms = consent.terms.under(authority.policy, row.kind, row.risks)
    interest = Interest(row.requester, asked, row.editor)
    case = _Case(click, row, authority, person, interest, terms)
    event = _vote(case, consent, fold)
    decision = approval.decide(consent, event, now=chain.now)
    if isinstance(decision, approval.Moved):
        return _record(case, consent, event, decision, fold, chain)
    if isinstance(decision, Refused):
        reason = _why(row, decision)
        fold.note(click, row, "decision_refused", {"reason": reason.value}, chain)
        return Refused(reason, {**decision.detail, **_who_decided(consent)})
    return decision


def _why(row: OperationRow, refused: Refused) -> Reason:
    """A void approval tells that nothing can be decided; its operation tells what ended it."""
    if (
        refused.reason is Reason.SUPERSEDED
        and row.status is not operation.OperationStatus.SUPERSEDED
    ):
        return row.reason or operation.refusal_for(row.status)
    return refused.reason


@dataclass(frozen=True, slots=True)
class _Case:
    """One click with what it is judged by; ``terms`` join those stored with those of now."""

    click: Click
    row: OperationRow
    authority: Authority
    person: Identity | None
    interest: Interest
    terms: Terms


def _voters(clicks: Sequence[Click], fold: Fold) -> list[tuple[TenantId, PrincipalId]]:
    earlier = [(key[0], who) for key, consent in fold.consents.items() for who, _ in consent.votes]
    return [*((c.tenant_id, c.principal) for c in clicks), *earlier]


def _vote(case: _Case, consent: Approval, fold: Fold) -> approval.VoteCast:
    """Judge a click, and count what would be lacking with it."""
    click, terms = case.click, case.terms
    counting = [w for w in consent.counting(step_up=terms.step_up) if w != click.principal]
    if click.vote is Vote.APPROVE:
        counting.append(click.principal)
    missing = case.authority.still_needed(
        terms.requirements, counting, case.row.resource, case.interest.people
    )
    return approval.VoteCast(
        click.principal,
        click.vote,
        click.digest,
        click.content_revision,
        click.note,
        missing,
        _objection(case, fold),
        click.second_factor,
        terms.step_up,
    )


def _objection(case: _Case, fold: Fold) -> Refused | None:
    """Say why this person may not decide this; anybody permitted may reject their own request."""
    click, authority = case.click, case.authority
    about_the_person = authority.objection_to_voting(
        click.principal, case.terms.requirements, case.row.resource
    ) or identity.objection(case.person, authority.policy.slack.team, now=authority.now)
    if about_the_person is not None:
        return about_the_person
    if click.vote is Vote.APPROVE:
        interested = case.interest.objection_to_approving(
            authority, click.principal, case.terms.requirements, case.row.resource
        )
        if interested is not None:
            return interested
    run = fold.run_of(click.key) if click.stops_run else None
    if run is not None:
        may_not_stop = endings.objection_to_cancelling(authority, run.requester, click.principal)
        if may_not_stop is not None:
            return may_not_stop
    return None if _shown(click, fold) is not None else Refused(Reason.NOT_SHOWN)


def _shown(click: Click, fold: Fold) -> bytes | None:
    """Return the digest of the view that was decided on, or ``None`` if it is none of ours."""
    if click.modal is not None:
        modal = fold.modals.get(click.modal)
        theirs = modal is not None and modal.is_about(
            click.operation_id, click.principal, click.content_revision
        )
        return modal.view_digest if modal is not None and theirs else None
    place, posting = fold.places.get(click.key), fold.postings.get(click.nonce)
    return clicked_view(place, posting, click.operation_id, click.channel, click.message_ts)


async def _present(
    conn: Connection, click: Click, consent: Approval, fold: Fold, chain: Chain
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
    row: OperationRow, consent: Approval, expired: approval.Moved, fold: Fold, chain: Chain
) -> Approval:
    """Record that the time was over before this click, whether or not a sweep has come by."""
    fold.move(row, consent, expired, endings.time_ran_out(consent), "clock", chain)
    return expired.approval


def _record(
    case: _Case,
    consent: Approval,
    event: approval.VoteCast,
    decision: approval.Moved,
    fold: Fold,
    chain: Chain,
) -> Recorded:
    click, row = case.click, case.row
    view_digest = _shown(click, fold)
    wanted = tuple(who for r in case.terms.requirements for who in r.of)
    standing = case.authority.standing(click.principal, wanted, row.resource, case.interest.people)
    behalf = None if standing is None else standing.on_behalf_of
    note = as_kept(click.note, LONGEST_NOTE)
    fold.decisions[consent.id, click.principal] = approvals.Decision(
        click.tenant_id,
        consent.id,
        click.principal,
        click.vote,
        note,
        click.digest,
        click.content_revision,
        view_digest,
        {
            "channel": click.channel,
            "ts": click.message_ts,
            **({} if click.modal is None else {"modal": click.modal.hex}),
        },
        click.request_hash,
        behalf,
        click.second_factor,
    )
    said: JsonObject = {
        "vote": click.vote.value,
        "digest": click.digest.hex(),
        "revision": click.content_revision,
        "view_digest": view_digest.hex() if view_digest else None,
        "ts": click.message_ts,
        "note": note,
        **({} if behalf is None else {"on_behalf_of": behalf}),
        **({"second_factor": True} if click.second_factor else {}),
    }
    fold.note(click, row, "voted", said, chain)
    fold.consents[click.key] = decision.approval
    # A vote below the quorum changes the card as well: it shows who has voted.
    fold.touched.add(click.key)
    if decision.transition is not None:
        moved: operation.Event = (
            operation.Denied(click.principal, note)
            if click.vote is Vote.REJECT
            else operation.Granted()
        )
        fold.move(row, consent, decision, moved, click.principal, chain)
    stopped = None
    if click.stops_run and click.vote is Vote.REJECT:
        stopped = fold.stop_run(click.key, click.principal, chain)
    decided = decision.transition is not None
    return Recorded(click.vote, max(0, event.still_needed), decided, stopped)


def _who_decided(consent: Approval) -> JsonObject:
    """Name who decided, for the sentence that the late clicker reads."""
    wanted = Vote.REJECT if consent.status is approval.ApprovalStatus.DENIED else Vote.APPROVE
    return {"by": [principal for principal, vote in consent.votes if vote is wanted]}
