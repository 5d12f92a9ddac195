"""T2 and the card's loop: what is about to be posted is recorded before it leaves, where it stands
after.

The bot draws and talks to Slack; every fact about a card is stored here. Whose turn it is says
``card_turns``. Locks: operations, approvals, cards, journal heads.

The time to decide starts when the card is shown, not before. Once begun it goes on, also when the
message is deleted or its channel is gone: the card is posted anew, there or in the fallback, and
says until when it can still be decided. People have read that time and the requester counts on it;
and were it lengthened, whoever may delete messages could keep a request open for ever. If no other
card can be shown before it is over, it expires: nothing is done, the agent is told, and the alarm
has named it since a minute after it was noticed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from executor.domain import approval
from executor.domain.ids import OperationId, RunId, TenantId
from executor.domain.payloads import JsonValue
from executor.engine import endings
from executor.engine.alarm import tell_seen
from executor.engine.card_record import CardRecord
from executor.engine.engine import Engine
from executor.engine.failpoint import Commit
from executor.engine.records import read_record
from executor.store import approvals, cards, clock, journal, operations, progress, unseen
from executor.store.cards import (
    ClaimedCard,
    Notice,
    Posting,
    PostingOutcome,
    SubjectKind,
)

__all__ = ["ClaimedCard", "Notice", "Posting", "PostingOutcome", "SubjectKind"]


@dataclass(frozen=True, slots=True)
class Shown:
    """What a drawing shows: its digest, its blocks, and which content it asks consent to."""

    view_digest: bytes
    blocks: Sequence[JsonValue]
    content_revision: int


async def begin_posting(
    engine: Engine,
    card: ClaimedCard,
    nonce: UUID,
    channel: str,
    shown: Shown,
    *,
    thread_ts: str | None = None,
) -> None:
    """Record a message, with what it shows, before it leaves; it may answer another one.

    Opens its own transaction. A card that has a place already: ``LostRace``.
    """
    async with engine.committing(Commit.BEGIN_POSTING) as conn:
        await cards.lock(conn, [card.key])
        now = await clock.now(conn)
        await cards.keep_view(conn, card.tenant_id, shown.view_digest, shown.blocks, now)
        posting = Posting(
            nonce,
            card.subject_id,
            channel,
            shown.content_revision,
            shown.view_digest,
            PostingOutcome.SENDING,
            None,
            now,
            thread_ts,
        )
        await cards.begin_posting(conn, card.tenant_id, posting, now)


async def present(
    engine: Engine,
    card: ClaimedCard,
    nonce: UUID,
    *,
    channel: str,
    ts: str,
    shown: Shown,
) -> bool:
    """T2: record where the card stands and start the time to decide; ``False``: it stood before.

    Opens its own transaction. A second call changes nothing.
    """
    key = (card.tenant_id, OperationId(card.subject_id))
    async with engine.committing(Commit.PRESENT) as conn:
        rows = consents = {}
        if card.kind is SubjectKind.OPERATION:
            rows = await operations.lock(conn, [key])
            consents = await approvals.lock(conn, list(rows))
        chain = await endings.lock_cards_and_chain(conn, list(rows.values()))
        alarmed_for = await unseen.alarmed_for(conn, card.tenant_id, card.subject_id)
        await cards.end_posting(conn, card.tenant_id, nonce, PostingOutcome.POSTED, ts)
        placed = await cards.place(
            conn,
            card.key,
            channel=channel,
            ts=ts,
            view_digest=shown.view_digest,
            content_revision=shown.content_revision,
        )
        consent = consents.get(key)
        if placed and consent is not None:
            decided = approval.decide(consent, approval.Presented(), now=chain.now)
            if isinstance(decided, approval.Moved):
                await approvals.present(conn, [(card.tenant_id, decided.approval)])
                row = rows[key]
                note = chain.note(
                    row.tenant_id,
                    row.run_id,
                    consent.id,
                    "presented",
                    "bot",
                    {
                        "channel": channel,
                        "ts": ts,
                        "view_digest": shown.view_digest.hex(),
                        "revision": shown.content_revision,
                    },
                )
                await journal.write_notes(conn, [note])
                # The card says from now on until when it can be decided.
                await cards.want(conn, [(row.tenant_id, row.id, SubjectKind.OPERATION)], chain.now)
        await journal.advance(conn, chain)
    if placed and alarmed_for is not None and key in rows:
        tell_seen(rows[key], alarmed_for)
    return placed


async def give_up_posting(
    engine: Engine, card: ClaimedCard, nonce: UUID, outcome: PostingOutcome
) -> None:
    """Record that a message was refused, or was looked for and is not there."""
    async with engine.database.transaction() as conn:
        await cards.give_up_posting(conn, card, nonce, outcome)


async def strays(engine: Engine, tenant: TenantId, most: int) -> list[Posting]:
    """Take messages that were absent and may have turned up since. Opens its own transaction."""
    async with engine.database.transaction() as conn:
        return await cards.claim_strays(conn, tenant, most)


async def finish_drawing(
    engine: Engine,
    card: ClaimedCard,
    shown: Shown,
    *,
    look_again_seconds: float | None = None,
    rest_seconds: float | None = None,
) -> None:
    """Record that a card shows its record as of the revision that it was claimed for.

    After ``look_again_seconds`` it is drawn again even if nothing has changed, and before
    ``rest_seconds`` are over it is not, even if something has. What an operation's card shows is
    told by the runs that proposed it as well: they follow it, so that whatever changes an operation
    asks for its card alone.
    """
    tenant, runs = card.tenant_id, list[RunId]()
    async with engine.committing(Commit.FINISH_DRAWING) as conn:
        if card.kind is SubjectKind.OPERATION:
            runs = await progress.runs_that_tell_of(conn, tenant, OperationId(card.subject_id))
        await cards.lock(conn, [card.key, *((tenant, id_) for id_ in runs)])
        now = await clock.now(conn)
        await cards.keep_view(conn, tenant, shown.view_digest, shown.blocks, now)
        await cards.finish(
            conn,
            card,
            view_digest=shown.view_digest,
            content_revision=shown.content_revision,
            look_again_seconds=look_again_seconds,
            rest_seconds=rest_seconds,
        )
        await cards.want(conn, [(tenant, id_, SubjectKind.RUN) for id_ in runs], now)


async def put_off(
    engine: Engine, card: ClaimedCard, *, seconds: float, problem: str | None
) -> None:
    """Try a card again later. Opens its own transaction."""
    async with engine.database.transaction() as conn:
        await cards.put_off(conn, card, seconds=seconds, problem=problem)


async def lose_place(engine: Engine, card: ClaimedCard, problem: str) -> None:
    """Have a card posted anew, for its message is gone. Opens its own transaction."""
    async with engine.database.transaction() as conn:
        await cards.lose_place(conn, card, problem)


async def due_notices(engine: Engine, tenant: TenantId, most: int) -> list[Notice]:
    """Take private answers of one tenant that are due. Opens its own transaction."""
    async with engine.database.transaction() as conn:
        lease = engine.durations.outbox_lease_seconds
        return await cards.claim_notices(conn, tenant, most, lease)


async def put_off_notice(engine: Engine, notice: Notice, seconds: float) -> None:
    """Tell a private answer later, for it came too soon; that was no try."""
    async with engine.database.transaction() as conn:
        await cards.put_off_notice(conn, notice, seconds)


async def drop_notice(engine: Engine, notice: Notice) -> None:
    """Forget a private answer that was sent or will not be tried again."""
    async with engine.database.transaction() as conn:
        await cards.drop_notice(conn, notice)


async def operation_record(engine: Engine, tenant: TenantId, id_: OperationId) -> CardRecord:
    """Read one operation's record, for a full view. Opens its own transaction."""
    async with engine.database.transaction() as conn:
        return await read_record(conn, tenant, id_, SubjectKind.OPERATION)


async def cards_behind(engine: Engine, seconds: float) -> tuple[int, int]:
    """Count cards that are behind for longer than ``seconds``, and how many nobody saw."""
    async with engine.database.transaction() as conn:
        return await cards.behind(conn, seconds)
