"""Cards as views of records: what is wanted, what is shown, where, and every message that left for
it.

Level-triggered: whoever changes a record raises ``wanted_revision`` in the same transaction; the
bot draws until ``shown_revision`` equals it, so that a lost update heals.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection

from executor.domain.errors import LostRace
from executor.domain.ids import TenantId
from executor.domain.payloads import JsonObject, JsonValue
from executor.store.statements import run

CardKey = tuple[TenantId, UUID]


class SubjectKind(StrEnum):
    """What a card shows."""

    OPERATION = "operation"
    RUN = "run"
    QUESTION = "question"
    NUDGE = "nudge"
    REQUEST = "request"
    WARNING = "warning"


class PostingOutcome(StrEnum):
    """What became of a message that left."""

    SENDING = "sending"
    POSTED = "posted"
    REFUSED = "refused"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class ClaimedCard:
    """A card that is behind its record and that this process draws now."""

    tenant_id: TenantId
    subject_id: UUID
    kind: SubjectKind
    wanted_revision: int
    shown_revision: int
    render_no: int
    content_revision: int
    channel: str | None
    ts: str | None
    posting_nonce: UUID | None
    failures: int
    wanted_at: datetime
    lease_until: datetime
    view_digest: bytes | None = None

    @property
    def key(self) -> CardKey:
        """The card's place in every index."""
        return self.tenant_id, self.subject_id


@dataclass(frozen=True, slots=True)
class CardPlace:
    """Where a locked card stands in Slack, and what it shows there."""

    tenant_id: TenantId
    subject_id: UUID
    channel: str | None
    ts: str | None
    view_digest: bytes | None
    content_revision: int
    posting_nonce: UUID | None


@dataclass(frozen=True, slots=True)
class Posting:
    """A message that left, or is about to; ``thread_ts`` is the message that it answers."""

    nonce: UUID
    subject_id: UUID
    channel: str
    content_revision: int
    view_digest: bytes
    outcome: PostingOutcome
    ts: str | None
    attempted_at: datetime
    thread_ts: str | None = None


@dataclass(frozen=True, slots=True)
class Notice:
    """A private answer to one person in one channel."""

    tenant_id: TenantId
    id: UUID
    channel: str
    user_id: str
    answer: JsonObject
    tries: int = 0


async def want(
    conn: AsyncConnection,
    subjects: Iterable[tuple[TenantId, UUID, SubjectKind]],
    now: datetime,
) -> None:
    """Ask for cards to be drawn again; locks their rows, before the journal's heads."""
    wanted = sorted(set(subjects), key=lambda s: (s[0], s[1].int))
    if not wanted:
        return
    await run(
        conn,
        "want_cards",
        tenants=[tenant for tenant, _, _ in wanted],
        subjects=[subject for _, subject, _ in wanted],
        kinds=[kind.value for _, _, kind in wanted],
        now=now,
    )


async def lock(conn: AsyncConnection, keys: Iterable[CardKey]) -> dict[CardKey, CardPlace]:
    """Lock cards by their subject, in order; those never wanted are absent."""
    wanted = list(keys)
    rows = await run(
        conn,
        "lock_cards",
        tenants=[tenant for tenant, _ in wanted],
        subjects=[subject for _, subject in wanted],
    )
    return {
        (TenantId(r.tenant_id), r.subject_id): CardPlace(
            TenantId(r.tenant_id),
            r.subject_id,
            r.channel,
            r.ts,
            None if r.view_digest is None else bytes(r.view_digest),
            r.content_revision,
            r.posting_nonce,
        )
        for r in rows
    }


async def keep_view(
    conn: AsyncConnection,
    tenant: TenantId,
    view_digest: bytes,
    blocks: Sequence[JsonValue],
    now: datetime,
) -> None:
    """Keep what a drawing shows, under its digest; the same view again changes nothing."""
    await run(
        conn,
        "put_card_view",
        tenant=tenant,
        view_digest=view_digest,
        blocks=json.dumps(blocks),
        now=now,
    )


async def begin_posting(
    conn: AsyncConnection, tenant: TenantId, posting: Posting, now: datetime
) -> None:
    """Record a message before it leaves; a card that has a place already: ``LostRace``."""
    await run(
        conn,
        "begin_posting",
        tenant=tenant,
        nonce=posting.nonce,
        subject=posting.subject_id,
        channel=posting.channel,
        thread_ts=posting.thread_ts,
        content_revision=posting.content_revision,
        view_digest=posting.view_digest,
        now=now,
    )
    marked = await run(
        conn, "mark_posting", tenant=tenant, subject=posting.subject_id, nonce=posting.nonce
    )
    if marked.one_or_none() is None:
        raise LostRace("mark_posting", 1)


async def end_posting(
    conn: AsyncConnection,
    tenant: TenantId,
    nonce: UUID,
    outcome: PostingOutcome,
    ts: str | None = None,
) -> bool:
    """Record what became of a message; ``False``: somebody else recorded it before."""
    ended = await run(conn, "end_posting", tenant=tenant, nonce=nonce, outcome=outcome.value, ts=ts)
    return ended.one_or_none() is not None


async def give_up_posting(
    conn: AsyncConnection, card: ClaimedCard, nonce: UUID, outcome: PostingOutcome
) -> None:
    """Record that a message was refused or is not there; nobody looks for it any more."""
    await run(conn, "clear_posting", tenant=card.tenant_id, subject=card.subject_id, nonce=nonce)
    await end_posting(conn, card.tenant_id, nonce, outcome)


async def postings(
    conn: AsyncConnection, keys: Iterable[tuple[TenantId, UUID]]
) -> dict[UUID, Posting]:
    """Find the postings that messages name by their nonces; takes no lock."""
    wanted = list(keys)
    rows = await run(
        conn,
        "postings_by_nonce",
        tenants=[tenant for tenant, _ in wanted],
        nonces=[nonce for _, nonce in wanted],
    )
    return {row.nonce: _posting(row) for row in rows}


async def claim_strays(conn: AsyncConnection, tenant: TenantId, most: int) -> list[Posting]:
    """Take messages that were absent when they were looked for, and may have turned up since."""
    return [_posting(row) for row in await run(conn, "claim_strays", tenant=tenant, most=most)]


def _posting(row: Row[*tuple[Any, ...]]) -> Posting:
    return Posting(
        row.nonce,
        row.subject_id,
        row.channel,
        row.content_revision,
        bytes(row.view_digest),
        PostingOutcome(row.outcome),
        row.ts,
        row.attempted_at,
        row.thread_ts,
    )


async def place(
    conn: AsyncConnection,
    key: CardKey,
    *,
    channel: str,
    ts: str,
    view_digest: bytes,
    content_revision: int,
) -> bool:
    """Record where a card stands; ``False``: it has a place already."""
    placed = await run(
        conn,
        "place_card",
        tenant=key[0],
        subject=key[1],
        channel=channel,
        ts=ts,
        view_digest=view_digest,
        content_revision=content_revision,
    )
    return placed.one_or_none() is not None


async def finish(
    conn: AsyncConnection,
    card: ClaimedCard,
    *,
    view_digest: bytes,
    content_revision: int,
    look_again_seconds: float | None,
    rest_seconds: float | None,
) -> bool:
    """Record that the card shows the revision it was claimed for; ``False``: another drew it.

    It is drawn again after ``look_again_seconds`` even if nothing changes, and not before
    ``rest_seconds`` are over even if something does.
    """
    done = await run(
        conn,
        "finish_drawing",
        tenant=card.tenant_id,
        subject=card.subject_id,
        revision=card.wanted_revision,
        render_no=card.render_no,
        view_digest=view_digest,
        content_revision=content_revision,
        look_again_seconds=look_again_seconds,
        rest_seconds=rest_seconds,
    )
    return done.one_or_none() is not None


async def put_off(
    conn: AsyncConnection, card: ClaimedCard, *, seconds: float, problem: str | None
) -> None:
    """Try a card again later; ``problem`` is why it failed, ``None`` where it only has to wait."""
    await run(
        conn,
        "put_off_card",
        tenant=card.tenant_id,
        subject=card.subject_id,
        render_no=card.render_no,
        seconds=seconds,
        problem=problem,
        failed=0 if problem is None else 1,
    )


async def lose_place(conn: AsyncConnection, card: ClaimedCard, problem: str) -> None:
    """Post a card anew, for its message is gone."""
    await run(
        conn,
        "lose_card_place",
        tenant=card.tenant_id,
        subject=card.subject_id,
        render_no=card.render_no,
        problem=problem,
    )


async def behind(conn: AsyncConnection, seconds: float) -> tuple[int, int]:
    """Count cards that are behind for longer than ``seconds``, and how many of them nobody saw."""
    row = (await run(conn, "cards_behind", seconds=seconds)).one()
    return row.behind, row.unseen


async def queue_notices(conn: AsyncConnection, notices: Sequence[Notice], now: datetime) -> None:
    """Queue private answers."""
    if not notices:
        return
    await run(
        conn,
        "insert_notices",
        tenants=[n.tenant_id for n in notices],
        ids=[n.id for n in notices],
        channels=[n.channel for n in notices],
        users=[n.user_id for n in notices],
        answers=[json.dumps(n.answer) for n in notices],
        now=now,
    )


async def claim_notices(
    conn: AsyncConnection, tenant: TenantId, most: int, lease_seconds: float
) -> list[Notice]:
    """Take private answers that are due."""
    rows = await run(conn, "claim_notices", tenant=tenant, most=most, lease_seconds=lease_seconds)
    return [
        Notice(TenantId(r.tenant_id), r.id, r.channel, r.user_id, r.answer, r.tries) for r in rows
    ]


async def put_off_notice(conn: AsyncConnection, notice: Notice, seconds: float) -> None:
    """Try a private answer again later, and do not count this try."""
    await run(conn, "put_off_notice", tenant=notice.tenant_id, id=notice.id, seconds=seconds)


async def drop_notice(conn: AsyncConnection, notice: Notice) -> None:
    """Forget a private answer that was sent or will not be tried again."""
    await run(conn, "drop_notice", tenant=notice.tenant_id, id=notice.id)


async def card_place(conn: AsyncConnection, key: CardKey) -> tuple[str | None, str | None]:
    """Read the channel and ts where a subject's card stands."""
    row = (await run(conn, "card_place", tenant=key[0], subject=key[1])).one_or_none()
    return (None, None) if row is None else (row.channel, row.ts)
