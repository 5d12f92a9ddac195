"""Looking at an outside ticket before something is decided about it, outside any transaction.

A sight counts from before the reading, by the database's clock, and is used for ten seconds. It is
what our own checks rest on; whatever changes after it is stopped by the desk's compare-and-set, or,
where the desk has none, not at all.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from executor.domain.effect import AT_A_DESK, EffectKind, EffectStatus, Outcome, OutcomeKind
from executor.domain.errors import ExecutorError
from executor.domain.finding import Finding
from executor.domain.ids import TenantId
from executor.domain.operation import OperationStatus
from executor.engine.desk_port import DeskUnavailable, Observation, OutgoingChange, TicketDesk
from executor.engine.engine import Engine
from executor.engine.outgoing import outgoing_change
from executor.engine.providers import Providers
from executor.store import cards, clock, effects, operations, outside_tickets
from executor.store.cards import SubjectKind
from executor.store.operations import OperationKey, OperationRow
from executor.store.outside_tickets import SeenTicket
from executor.store.wakeups import Kind

_log = logging.getLogger(__name__)

OLDEST = timedelta(seconds=10)
"""How old a sight may be when something is decided on it."""

TOO_SLOW = "its answers take too long"
"""What is said of a desk whose ticket was seen too long ago when it was decided on."""

READINGS_AT_ONCE = 4

LONGEST_WAIT = timedelta(minutes=5)
"""The longest wait between two looks at a ticket whose desk does not tell."""


@dataclass(frozen=True, slots=True)
class Sight:
    """One outside ticket as it was seen; ``at`` is the database's time from before the reading.

    Without an ``observation`` there is no such ticket, or, if ``problem`` says so, the desk did not
    tell. ``own`` is what a reading found of our own earlier change, where one was made.
    """

    at: datetime
    observation: Observation | None = None
    problem: str | None = None
    retry_after: timedelta | None = None
    own: Outcome | None = None

    def is_usable(self, now: datetime) -> bool:
        """Say whether something may be decided on it now."""
        return self.problem is None and now - self.at <= OLDEST

    def seen_by(self, tenant: TenantId) -> list[SeenTicket]:
        """Spell the sight as it is kept for cards; empty where there is no ticket."""
        if self.observation is None:
            return []
        return [SeenTicket(tenant, self.observation.ticket, self.at)]


def wait_for_desk(
    engine: Engine, since: datetime, now: datetime, asked: timedelta | None
) -> timedelta:
    """Say how long to leave a desk that has not told ``since`` then; ``asked``: by the desk itself.

    As long again as it has been waited for already: the waits double by themselves.
    """
    wait = max(timedelta(seconds=engine.durations.retry_seconds), now - since)
    return max(min(wait, LONGEST_WAIT), asked or timedelta(0))


async def see(
    engine: Engine, desk: TicketDesk, ticket_id: str, own: OutgoingChange | None = None
) -> Sight:
    """Read one ticket now, and what became of ``own``, our own earlier change of it.

    Opens a transaction of its own for the time. A desk that does not tell is a sight as well, and
    so is an answer that cannot be read: one ticket must not stop those that are looked at with it.
    """
    async with engine.database.transaction() as conn:
        at = await clock.now(conn)
    try:
        async with asyncio.timeout(OLDEST.total_seconds()):
            observation = await desk.read(ticket_id)
            found = None if own is None else await desk.read_back(own)
    except DeskUnavailable as error:
        return Sight(at, problem=error.problem, retry_after=error.retry_after)
    except TimeoutError:
        return Sight(at, problem=f"no answer within {OLDEST.total_seconds():g} s")
    except Exception:
        _log.exception("ticket %s at %s could not be read", ticket_id, desk.name)
        return Sight(at, problem="its answer could not be read")
    if observation is not None and observation.ticket.id != ticket_id:
        return Sight(at, problem="it answered about another ticket")
    if found is not None and found.evidence.get("finding") == Finding.UNREAD:
        problem = str(found.evidence.get("problem", "its answer could not be read"))
        return Sight(at, problem=problem, retry_after=found.retry_after)
    return Sight(at, observation, own=found)


async def see_all(engine: Engine, desk: TicketDesk, ticket_ids: Sequence[str]) -> dict[str, Sight]:
    """Read several tickets, a few at once."""
    room = asyncio.Semaphore(READINGS_AT_ONCE)

    async def one(ticket_id: str) -> Sight:
        async with room:
            return await see(engine, desk, ticket_id)

    wanted = list(dict.fromkeys(ticket_ids))
    return dict(zip(wanted, await asyncio.gather(*map(one, wanted)), strict=True))


async def see_before_opening(
    engine: Engine, providers: Providers, key: OperationKey
) -> Sight | None:
    """Look at the ticket of an operation that is to be opened; ``None``: nobody needs to.

    Opens its own transactions, which have ended before the desk is asked.
    """
    desk = providers.desk
    if desk is None:
        return None
    async with engine.database.transaction() as conn:
        row = (await operations.lock(conn, [key])).get(key)
        parts = (await effects.of_operations(conn, [key]))[key]
    if row is None or not row.is_about_a_ticket or row.desk != desk.name:
        return None
    return await see(engine, desk, row.ticket_id, _own_change(row, parts))


def _own_change(row: OperationRow, parts: Sequence[effects.EffectRow]) -> OutgoingChange | None:
    """Return our own change that has to be told from other people's, unless its version is known.

    The parts at one desk share their bytes and their marker, so that any of them will do.
    """
    if row.status is OperationStatus.APPROVED or row.closed_stamp is not None:
        return None
    tried = [p for p in parts if p.kind in AT_A_DESK and p.status is not EffectStatus.PLANNED]
    return outgoing_change(tried[-1]) if tried else None


def judge_note(kind: EffectKind, found: Outcome) -> Outcome:
    """Conclude about a note from a reading that was made for the close which it prepares."""
    if kind is not EffectKind.TICKET_NOTE or found.evidence.get("noted") is not True:
        return found
    evidence = {**found.evidence, "finding": Finding.MARKER.value}
    return Outcome(OutcomeKind.APPLIED, evidence)


async def look_again(engine: Engine, desk: TicketDesk, key: OperationKey, ticket_id: str) -> None:
    """Read a ticket that has moved, so that the card can say what changed; best effort."""
    try:
        sight = await see(engine, desk, ticket_id)
        async with engine.database.transaction() as conn:
            now = await clock.now(conn)
            await cards.want(conn, [(*key, SubjectKind.OPERATION)], now)
            await outside_tickets.keep(conn, sight.seen_by(key[0]))
    except ExecutorError as error:
        _log.info("what changed at ticket %s is not known: %s", ticket_id, error)
    engine.ring(Kind.CARDS)
