"""Whose turn it is to be posted, and where: in order, at the pace of each place, past troubles.

Cards of operations that ask for one channel are posted in the order of their operations, one after
the other: as long as one of them is on its way, or is looked for because its answer was lost, those
behind it wait. What a card could not be shown for by itself (its content was refused) holds nobody
up.

A place with a trouble is closed until somebody has looked and found nothing wrong. What asks for a
closed place goes to the fallback: at once where the trouble is one that only people end, else when
it has lasted, and not before people were told there. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

WORKSPACE = ""
"""The place that stands for all others: where its trouble is, nothing can be shown at all."""

PATIENCE = timedelta(minutes=5)
"""How long a passing trouble is waited for before cards go to the fallback."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why nothing can be shown in a place; ``lasting``: until people do something about it.

    ``look_at`` is when somebody looks again; ``None``: nothing was found wrong any more.
    """

    place: str
    problem: str
    lasting: bool
    since: datetime
    look_at: datetime | None

    @property
    def closes(self) -> bool:
        """Whether nothing is sent there now."""
        return self.look_at is not None


Troubles = Mapping[str, Trouble]


@dataclass(frozen=True, slots=True)
class Route:
    """Where cards go that name no channel, and where those go whose channel cannot be used."""

    channel: str
    fallback: str | None = None

    def leads_to(self, asked: str, troubles: Troubles, now: datetime, *, told: bool) -> str | None:
        """Say where a card that asks for a channel is posted now; ``None``: nowhere.

        ``told`` says whether people have heard of it, or need not. Of a passing trouble that has
        lasted, whoever was told does not wait for another try: new cards make it.
        """
        if is_closed(WORKSPACE, troubles):
            return None
        trouble = troubles.get(asked)
        if trouble is None:
            return asked
        outlasted = not trouble.lasting and now - trouble.since >= PATIENCE
        if told and (outlasted or (trouble.lasting and trouble.closes)):
            spare = self.fallback
            if spare is not None and spare != asked and not is_closed(spare, troubles):
                return spare
        return None if trouble.closes else asked


def is_closed(place: str, troubles: Troubles) -> bool:
    """Say whether nothing is sent to a place now."""
    trouble = troubles.get(place)
    return trouble is not None and trouble.closes


@dataclass(frozen=True, slots=True)
class Waiting:
    """A card without a message. ``number`` is its operation's; a run's own word and an answer have
    none.

    ``channel`` and ``thread_ts`` are where it asks to be shown, ``None``: where the policy says.
    It is in hand while somebody draws it, and sought while its message may stand somewhere. What
    only ``tells_progress`` is posted when nothing else waits for the same place.
    """

    subject: UUID
    number: int | None
    since: datetime
    channel: str | None
    thread_ts: str | None
    is_due: bool
    is_in_hand: bool
    is_sought: bool
    is_told: bool
    tells_progress: bool = False


@dataclass(frozen=True, slots=True)
class Turn:
    """A card that may be posted now, and where."""

    subject: UUID
    channel: str
    thread_ts: str | None = None


def next_turns(
    waiting: Sequence[Waiting],
    route: Route,
    troubles: Troubles,
    now: datetime,
    room: Callable[[str], int],
) -> tuple[list[Turn], set[str]]:
    """Say which cards are posted now, the longest waiting first but progress last, and which places
    have no room.

    ``room`` says how many messages a channel takes now.
    """
    ready = [*_heads(waiting, route), *(w for w in waiting if w.number is None and _is_free(w))]
    left: dict[str, int] = {}
    turns: list[Turn] = []
    full: set[str] = set()
    for card in sorted(ready, key=lambda w: (w.tells_progress, w.since, w.number or 0)):
        turn = _turn(card, route, troubles, now)
        if turn is None:
            continue
        if left.setdefault(turn.channel, room(turn.channel)) <= 0:
            full.add(turn.channel)
            continue
        left[turn.channel] -= 1
        turns.append(turn)
    return turns, full


def _is_free(card: Waiting) -> bool:
    return card.is_due and not card.is_in_hand and not card.is_sought


def _heads(waiting: Sequence[Waiting], route: Route) -> list[Waiting]:
    """Find the first in each line of operations' cards, unless one before it is on its way."""
    lines: dict[str, list[Waiting]] = {}
    for card in sorted((w for w in waiting if w.number is not None), key=lambda w: w.number or 0):
        lines.setdefault(card.channel or route.channel, []).append(card)
    firsts = [line[0] for line in lines.values()]
    return [card for card in firsts if _is_free(card)]


def _turn(card: Waiting, route: Route, troubles: Troubles, now: datetime) -> Turn | None:
    """Say where a card goes. What is nobody's approval goes to where all cards go before it goes
    to the fallback, and nobody needs to be told of it.
    """
    asked = card.channel or route.channel
    approval = card.number is not None
    closed = not approval and is_closed(asked, troubles)
    channel = route.leads_to(
        route.channel if closed else asked, troubles, now, told=card.is_told or not approval
    )
    if channel is None:
        return None
    return Turn(card.subject, channel, card.thread_ts if channel == asked else None)
