"""Gives out the turns in which cards are posted, updated and looked for, to all processes of a
tenant.

Whoever takes turns holds the tenant's paces, so that two processes together are no faster than one
may be, and cards keep their order. What was decided is updated first, then come new cards, then all
other updates. A card that has no turn yet stays due and is read when it has one: only its newest
state is ever drawn. What runs say of their progress comes last. Locks: paces, cards.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from executor.domain.ids import TenantId
from executor.domain.pace import Pace
from executor.domain.turn import WORKSPACE, Route, Trouble, Turn, is_closed, next_turns
from executor.engine.card_record import CardRecord
from executor.engine.engine import Engine
from executor.engine.presenting import put_off
from executor.engine.records import read_record
from executor.store import card_turns, cards, clock, paces, troubles
from executor.store.cards import ClaimedCard, Posting, PostingOutcome
from executor.store.connection import Connection
from executor.store.paces import Family, PaceKey

_log = logging.getLogger(__name__)

__all__ = ["Family", "Route"]


@dataclass(frozen=True, slots=True)
class Paces:
    """How fast the outside may be asked, for each family of calls.

    ``post`` is for each channel, the others for the whole workspace; ``updates_decided`` shares its
    moments with ``updates`` and may be further ahead of them. What tells of progress ``rests`` so
    long between two drawings.
    """

    post: Pace
    posts: Pace
    updates_decided: Pace
    updates: Pace
    searches: Pace
    rests: timedelta = timedelta()

    def widest(self, family: Family, channel: str) -> Pace:
        """Return the pace that a hold of a family has to outlast."""
        match family:
            case Family.POST:
                return self.posts if channel == WORKSPACE else self.post
            case Family.UPDATE:
                return self.updates_decided
            case Family.SEARCH:
                return self.searches


@dataclass(frozen=True, slots=True)
class Delivery:
    """How the cards of one tenant are delivered; ``run_card_tries`` is how often a run's own word
    is tried where it asks to be shown.
    """

    tenant_id: TenantId
    route: Route
    paces: Paces
    run_card_tries: int = 2


@dataclass(frozen=True, slots=True)
class DueCard:
    """A card that has its turn, and the record that it is to show.

    ``lost_posting`` is a message whose answer was lost and which may stand in the outside already;
    ``turn`` is where it is posted, if it has no message. ``troubles`` are the places whose troubles
    its arrival ends.
    """

    card: ClaimedCard
    record: CardRecord
    lost_posting: Posting | None
    turn: Turn | None
    troubles: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Taken:
    """The turns that were taken; ``again_in`` is when there will be another, if that is known."""

    cards: Sequence[DueCard]
    again_in: timedelta | None = None


async def due_cards(engine: Engine, delivery: Delivery, most: int) -> Taken:
    """Take turns and read the records of their cards. Opens its own transactions."""
    async with engine.database.transaction() as conn:
        if not await card_turns.something_is_due(conn, delivery.tenant_id):
            return Taken(())
        claimed, turns, known, again_in = await _take(conn, engine, delivery, most)
    due = []
    for card in claimed:
        try:
            async with engine.database.transaction() as conn:
                due.append(await _due(conn, card, turns.get(card.subject_id), known))
        except Exception as error:
            # One record that cannot be read costs only its own card.
            _log.exception("the record of card %s could not be read", card.subject_id)
            await put_off(
                engine,
                card,
                seconds=engine.durations.outbox_lease_seconds,
                problem=type(error).__name__,
            )
    return Taken(due, again_in)


async def _take(
    conn: Connection, engine: Engine, delivery: Delivery, most: int
) -> tuple[list[ClaimedCard], dict[UUID, Turn], dict[str, Trouble], timedelta | None]:
    tenant = delivery.tenant_id
    table = _Table(delivery.paces, await paces.lock(conn, tenant))
    table.now = now = await clock.now(conn)
    known = await troubles.read(conn, tenant)
    if is_closed(WORKSPACE, known):
        return [], {}, known, None
    behind = await card_turns.to_update(conn, tenant, now, most)
    waiting = await card_turns.waiting(conn, tenant, now, delivery.run_card_tries)
    table.update([subject for subject, decided in behind if decided], decided=True, most=most)
    table.search([w.subject for w in waiting if w.is_sought and w.is_due], most=most)
    turns, full = next_turns(waiting, delivery.route, known, now, table.room_to_post)
    table.post(turns, full, most=most)
    table.update([subject for subject, decided in behind if not decided], decided=False, most=most)
    claimed = await card_turns.claim(
        conn, tenant, list(table.taken), engine.durations.outbox_lease_seconds
    )
    await paces.keep(conn, tenant, table.spent([card.subject_id for card in claimed]))
    return claimed, {turn.subject: turn for turn in turns}, known, table.again_in


@dataclass
class _Table:
    """The turns given out in one transaction, and what they cost."""

    paces: Paces
    free_at: dict[PaceKey, datetime]
    now: datetime = field(init=False)
    taken: dict[UUID, tuple[PaceKey, ...]] = field(default_factory=dict)
    again_in: timedelta | None = None

    def update(self, subjects: Sequence[UUID], *, decided: bool, most: int) -> None:
        """Give turns to shown cards."""
        pace = self.paces.updates_decided if decided else self.paces.updates
        self._give(subjects, pace, (Family.UPDATE, WORKSPACE), most)

    def search(self, subjects: Sequence[UUID], most: int) -> None:
        """Give turns to cards whose message is looked for."""
        self._give(subjects, self.paces.searches, (Family.SEARCH, WORKSPACE), most)

    def room_to_post(self, channel: str) -> int:
        """Say how many messages a channel takes now."""
        return self._room(self.paces.post, (Family.POST, channel))

    def post(self, turns: Sequence[Turn], full: set[str], most: int) -> None:
        """Give turns to cards without a message, as far as the workspace takes them."""
        everywhere: PaceKey = (Family.POST, WORKSPACE)
        for turn in turns:
            if len(self.taken) >= most:
                break
            if self._room(self.paces.posts, everywhere) <= 0:
                self._wait_for(self.paces.posts, everywhere)
                break
            self._spend(turn.subject, (Family.POST, turn.channel), everywhere)
        for channel in full:
            self._wait_for(self.paces.post, (Family.POST, channel))

    def spent(self, claimed: Sequence[UUID]) -> dict[PaceKey, datetime]:
        """Return the moments that changed; what could not be claimed was paid for all the same."""
        keys = {key for subject in claimed for key in self.taken[subject]}
        return {key: self.free_at[key] for key in keys}

    def _give(self, subjects: Sequence[UUID], pace: Pace, key: PaceKey, most: int) -> None:
        for subject in subjects:
            if len(self.taken) >= most:
                return
            if self._room(pace, key) <= 0:
                self._wait_for(pace, key)
                return
            self._spend(subject, key)

    def _room(self, pace: Pace, key: PaceKey) -> int:
        return pace.room(self.free_at.get(key, self.now), self.now)

    def _spend(self, subject: UUID, *keys: PaceKey) -> None:
        self.taken[subject] = keys
        for family, channel in keys:
            pace = self.paces.widest(family, channel)
            at = self.free_at.get((family, channel), self.now)
            self.free_at[family, channel] = pace.spent(at, self.now, 1)

    def _wait_for(self, pace: Pace, key: PaceKey) -> None:
        wait = pace.opens_at(self.free_at.get(key, self.now)) - self.now
        # One that is open now has another reason for having no turn.
        if wait > timedelta(0):
            self.again_in = wait if self.again_in is None else min(self.again_in, wait)


async def _due(
    conn: Connection, card: ClaimedCard, turn: Turn | None, known: dict[str, Trouble]
) -> DueCard:
    record = await read_record(conn, card.tenant_id, card.subject_id, card.kind)
    nonce = card.posting_nonce
    posting = None
    if nonce is not None:
        posting = (await cards.postings(conn, [(card.tenant_id, nonce)])).get(nonce)
    if posting is not None and posting.outcome is not PostingOutcome.SENDING:
        posting = None
    return DueCard(card, record, posting, turn, frozenset(known))


async def reserve_post(engine: Engine, delivery: Delivery, channel: str) -> float:
    """Take the next turn of a channel for a message that is no card; returns in how many seconds.

    Opens its own transaction. The turn is taken, whether or not it is waited for.
    """
    async with engine.database.transaction() as conn:
        free_at = await paces.lock(conn, delivery.tenant_id)
        now = await clock.now(conn)
        opens_at, spent = now, {}
        for key in ((Family.POST, channel), (Family.POST, WORKSPACE)):
            pace, at = delivery.paces.widest(*key), free_at.get(key, now)
            opens_at = max(opens_at, pace.opens_at(at))
            spent[key] = pace.spent(at, now, 1)
        await paces.keep(conn, delivery.tenant_id, spent)
    return (opens_at - now).total_seconds()


async def hold(
    engine: Engine, delivery: Delivery, family: Family, channel: str, seconds: float
) -> None:
    """Make nobody ask again before ``seconds`` are over, in no process. Opens its own
    transaction.
    """
    wait = delivery.paces.widest(family, channel).hold_for(timedelta(seconds=seconds))
    async with engine.database.transaction() as conn:
        await paces.hold(conn, delivery.tenant_id, family, channel, wait.total_seconds())
