"""A message that was looked for, not found and replaced may turn up: it is looked for again later.

A minute after it was given up, and once more ten minutes later. Found beside the card that took its
place, its buttons are taken off; a click that comes first decides by it all the same.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from slack_sdk.web.async_client import AsyncWebClient

from bot.delivery_troubles import DeliveryTroubles
from bot.lost_posts import find_lost
from bot.replaced import replaced_message
from bot.slack_answers import LOST_CALL, Proof, trouble
from executor.domain.ids import TenantId
from executor.engine.card_turns import Family
from executor.engine.engine import Engine
from executor.engine.presenting import Posting, strays
from executor.engine.redrawing import place_of

_log = logging.getLogger(__name__)

_CALL_SECONDS = 6.0


class StrayPosts:
    """Retires messages of one workspace that turned up beside their cards."""

    def __init__(
        self,
        engine: Engine,
        client: AsyncWebClient,
        tenant: TenantId,
        troubles: DeliveryTroubles,
    ) -> None:
        self._engine = engine
        self._client = client
        self._tenant = tenant
        self._troubles = troubles

    async def take(self, most: int) -> Sequence[Posting]:
        """Take messages that may have turned up."""
        return await strays(self._engine, self._tenant, most)

    async def look(self, stray: Posting) -> None:
        """Look for one of them, and retire it if it stands beside its card."""
        try:
            async with asyncio.timeout(_CALL_SECONDS):
                ts = await find_lost(self._client, stray)
                place = await place_of(self._engine, self._tenant, stray.subject_id)
                if ts is None or place in (None, (stray.channel, ts)):
                    return
                text, blocks = replaced_message()
                await self._client.chat_update(
                    channel=stray.channel,
                    ts=ts,
                    text=text,
                    blocks=[dict(block) for block in blocks],
                    parse="none",
                    link_names=False,
                )
        except LOST_CALL as error:
            problem = trouble(error)
            _log.info("a stray message was not looked for or retired: %s", problem.code)
            if problem.proof is Proof.RATE_LIMITED:
                await self._troubles.hold(Family.SEARCH, problem)
        else:
            _log.warning("a stray message turned up beside its card and was retired")
