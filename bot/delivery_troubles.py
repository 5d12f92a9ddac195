"""Troubles that keep cards from being shown: told to all processes, and looked at until they heal.

Whoever runs into one closes the channel, or the workspace, in the database. A closed one is looked
at again and again without sending anything: ``auth.test`` for the workspace, ``conversations.info``
for a channel. When nothing is found wrong, the next card tries it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from slack_sdk.web.async_client import AsyncWebClient

from bot.channel_safety import ChannelSafety
from bot.slack_answers import LOST_CALL, Proof, Scope, Trouble, trouble
from executor.engine import delivery_trouble
from executor.engine.card_turns import Delivery, Family, hold
from executor.engine.delivery_trouble import (
    WORKSPACE,
    due_troubles,
    note_trouble,
    open_place,
    places_are_well,
)
from executor.engine.engine import Engine
from executor.engine.presenting import ClaimedCard, put_off

_log = logging.getLogger(__name__)

_CALL_SECONDS = 6.0
_FIRST_DELAY_SECONDS = 1.0
_LONGEST_DELAY_SECONDS = 60.0
_LEVELS = {
    Proof.REFUSED: logging.ERROR,
    Proof.RATE_LIMITED: logging.INFO,
    Proof.NOT_SENT: logging.WARNING,
    Proof.UNKNOWN: logging.WARNING,
}


def note_undelivered(card: ClaimedCard, channel: str, problem: Trouble) -> None:
    """Log why a card was not delivered: codes and ids, never content."""
    _log.log(
        _LEVELS[problem.proof],
        "a card was not delivered (%s, %s): channel %s, %s %s",
        problem.code,
        problem.proof.value,
        channel,
        card.kind.value,
        card.subject_id,
    )


def backoff_seconds(card: ClaimedCard) -> float:
    """Say how long a card waits that failed by itself."""
    return min(_LONGEST_DELAY_SECONDS, _FIRST_DELAY_SECONDS * (1 << min(card.failures, 10)))


class DeliveryTroubles:
    """The troubles of one workspace, as this process runs into them and looks at them."""

    def __init__(
        self, engine: Engine, client: AsyncWebClient, delivery: Delivery, safety: ChannelSafety
    ) -> None:
        self._engine = engine
        self._client = client
        self._delivery = delivery
        self._safety = safety

    async def note(self, channel: str, problem: Trouble) -> None:
        """Close what a failed call is about; one that is about its message closes its channel for
        as long as a passing trouble does.
        """
        self._safety.forget(channel)
        place = WORKSPACE if problem.scope is Scope.WORKSPACE else channel
        lasting = problem.scope is not Scope.MESSAGE
        await note_trouble(
            self._engine, self._delivery.tenant_id, place, problem.code, lasting=lasting
        )

    async def objection(self, channel: str) -> Trouble | None:
        """Say why nothing may be said in a channel, if that is known or can be found out."""
        try:
            async with asyncio.timeout(_CALL_SECONDS):
                found = await self._safety.objection(channel)
        except LOST_CALL as error:
            return trouble(error)
        return None if found is None else Trouble(Proof.REFUSED, found)

    async def close(self, card: ClaimedCard, channel: str, problem: Trouble) -> None:
        """Close what is in a card's way; the card stays first in its line."""
        await self.note(channel, problem)
        await put_off(self._engine, card, seconds=0, problem=problem.code)

    async def hold(self, family: Family, problem: Trouble) -> None:
        """Let nobody ask again before the time that Slack named."""
        seconds = problem.retry_after_seconds
        _log.info("Slack is asked no faster: %s waits for %d s", family.value, seconds)
        await hold(self._engine, self._delivery, family, WORKSPACE, seconds)

    async def arrived(self, places: frozenset[str]) -> None:
        """End the troubles of places to which a message came."""
        if places:
            await places_are_well(self._engine, self._delivery.tenant_id, places)

    async def take(self, most: int) -> Sequence[delivery_trouble.Trouble]:
        """Take the troubles that are due for a look."""
        route = self._delivery.route
        kept = [WORKSPACE, route.channel, *([route.fallback] if route.fallback else [])]
        return await due_troubles(self._engine, self._delivery.tenant_id, most, kept)

    async def look(self, closed: delivery_trouble.Trouble) -> None:
        """Look at one closed place; leave it closed or let the next card try it."""
        try:
            async with asyncio.timeout(_CALL_SECONDS):
                found = await self._found(closed.place)
        except LOST_CALL as error:
            found = trouble(error)
        if found is None:
            await open_place(self._engine, self._delivery.tenant_id, closed.place)
        elif found.proof is Proof.REFUSED and found.scope is Scope.WORKSPACE:
            await self.note(closed.place, found)
        elif found.proof is Proof.REFUSED:
            await self._still(closed, found.code, lasting=True)
        elif found.proof is not Proof.RATE_LIMITED:
            # A look that came too soon waits until its lease is over.
            await self._still(closed, closed.problem, lasting=closed.lasting)

    async def _found(self, place: str) -> Trouble | None:
        if place == WORKSPACE:
            await self._client.auth_test()
            return None
        self._safety.forget(place)
        objection = await self._safety.objection(place)
        return None if objection is None else Trouble(Proof.REFUSED, objection)

    async def _still(
        self, closed: delivery_trouble.Trouble, problem: str, *, lasting: bool
    ) -> None:
        await note_trouble(
            self._engine, self._delivery.tenant_id, closed.place, problem, lasting=lasting
        )
