"""T2 and the card's loop: what is about to be posted is recorded before it leaves, where it stands
after.

The bot draws and talks to Slack; every fact about a card is stored here. The time to decide starts
when the card is shown, not before. Locks: operations, approvals, cards, journal heads.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from executor.domain import approval
from executor.domain.ids import OperationId, RunId, TenantId
from executor.domain.payloads import JsonObject, JsonValue
from executor.engine import endings
from executor.engine.card_record import CardRecord
from executor.engine.engine import Engine
from executor.engine.failpoint import Commit
from executor.engine.records import read_record
from executor.store import approvals, cards, clock, journal, operations, runs
from executor.store.cards import (
    ClaimedCard,
    Notice,
    Posting,
    PostingOutcome,
    SubjectKind,
)
from executor.store.connection import Connection

_log = logging.getLogger(__name__)

__all__ = ["ClaimedCard", "Notice", "Posting", "PostingOutcome", "SubjectKind"]


@dataclass(frozen=True, slots=True)
class DueCard:
    """A card that is behind, and the record that it is to show.

    ``lost_posting`` is a message whose answer was lost and which may stand in Slack already.
    ``reply_to`` is the bot's own note of where a run was asked for; ``thread`` is where its
    operation's card stands.
    """

    card: ClaimedCard
    record: CardRecord
    lost_posting: Posting | None
    reply_to: JsonObject
    thread: tuple[str, str] | None


@dataclass(frozen=True, slots=True)
class Shown:
    """What a drawing shows: its digest, its blocks, and which content it asks consent to."""

    view_digest: bytes
    blocks: Sequence[JsonValue]
    content_revision: int


async def due_cards(engine: Engine, most: int) -> list[DueCard]:
    """Take cards that are behind and read their records. Opens its own transactions."""
    async with engine.database.transaction() as conn:
        claimed = await cards.claim(conn, most, engine.durations.outbox_lease_seconds)
    due = []
    for card in claimed:
        try:
            async with engine.database.transaction() as conn:
                due.append(await _due(conn, card))
        except Exception as error:
            # One record that cannot be read costs only its own card.
            _log.exception("the record of card %s could not be read", card.subject_id)
            await put_off(
                engine,
                card,
                seconds=engine.durations.outbox_lease_seconds,
                problem=type(error).__name__,
            )
    return due


async def _due(conn: Connection, card: ClaimedCard) -> DueCard:
    record = await read_record(conn, card.tenant_id, card.subject_id, card.kind)
    nonce = card.posting_nonce
    posting = None
    if nonce is not None:
        posting = (await cards.postings(conn, [(card.tenant_id, nonce)])).get(nonce)
    if posting is not None and posting.outcome is not PostingOutcome.SENDING:
        posting = None
    reply_to: JsonObject = {}
    thread = None
    if card.kind is SubjectKind.RUN:
        row = await runs.show(conn, card.tenant_id, RunId(card.subject_id))
        reply_to = row.reply_to if row is not None else {}
        thread = await _thread(conn, card.tenant_id, RunId(card.subject_id))
    return DueCard(card, record, posting, reply_to, thread)


async def _thread(conn: Connection, tenant: TenantId, run_id: RunId) -> tuple[str, str] | None:
    """Find where the card of the run's last operation stands: its own word belongs under it."""
    mine = await operations.of_runs(conn, [(tenant, run_id)])
    for _, id_, *_ in sorted(mine, key=lambda o: -o[3]):
        channel, ts = await cards.card_place(conn, (tenant, id_))
        if channel is not None and ts is not None:
            return channel, ts
    return None


async def begin_posting(
    engine: Engine, card: ClaimedCard, nonce: UUID, channel: str, shown: Shown
) -> None:
    """Record a message, with what it shows, before it leaves.

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
    return placed


async def give_up_posting(
    engine: Engine, card: ClaimedCard, nonce: UUID, outcome: PostingOutcome
) -> None:
    """Record that a message was refused, or was looked for and is not there."""
    async with engine.database.transaction() as conn:
        await cards.end_posting(conn, card.tenant_id, nonce, outcome)


async def finish_drawing(engine: Engine, card: ClaimedCard, shown: Shown) -> None:
    """Record that a card shows its record as of the revision that it was claimed for."""
    async with engine.committing(Commit.FINISH_DRAWING) as conn:
        await cards.lock(conn, [card.key])
        now = await clock.now(conn)
        await cards.keep_view(conn, card.tenant_id, shown.view_digest, shown.blocks, now)
        await cards.finish(
            conn,
            card,
            view_digest=shown.view_digest,
            content_revision=shown.content_revision,
        )


async def put_off(
    engine: Engine, card: ClaimedCard, *, seconds: float, problem: str | None
) -> None:
    """Try a card again later. Opens its own transaction."""
    async with engine.database.transaction() as conn:
        await cards.put_off(conn, card, seconds=seconds, problem=problem)


async def lose_place(engine: Engine, card: ClaimedCard, problem: str) -> None:
    """Post a card anew, for its message is gone. Opens its own transaction."""
    async with engine.database.transaction() as conn:
        await cards.lose_place(conn, card, problem)


async def due_notices(engine: Engine, most: int) -> list[Notice]:
    """Take private answers that are due. Opens its own transaction."""
    async with engine.database.transaction() as conn:
        return await cards.claim_notices(conn, most, engine.durations.outbox_lease_seconds)


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
