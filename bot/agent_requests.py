"""Stored events in which agents ask: each comes to one answer in its thread, or to silence.

Bots that the policy does not name get no answer, for two bots that answer each other never end;
they are counted and logged. Where the event does not carry a message's metadata, Slack is asked for
it: a request that stands there is not to be taken for the words beside it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from slack_sdk.web.async_client import AsyncWebClient

from bot.agent_mentions import (
    AgentMention,
    OurApp,
    request_in_metadata,
    request_in_text,
    words_of,
)
from bot.identity import IdentityWatch
from bot.ingress.counts import Counts
from bot.slack_answers import LOST_CALL, trouble
from executor.domain.agent_request import AgentRequest, Unreadable
from executor.domain.ids import PrincipalId, TenantId, slack_principal
from executor.engine.engine import Engine
from executor.engine.events import StoredEvent, handle_by_nothing
from executor.engine.replacement_scene import Workshop
from executor.engine.requesting import Wish, handle_by_asking, is_named

_log = logging.getLogger(__name__)

MOST_TRIES = 10
_LOOK_SECONDS = 5.0
_METADATA_UNREAD = (
    "Slack does not show whether metadata belongs to this message. Write the request as JSON in "
    "its text."
)


class _NotToldYet(Exception):
    """Slack did not say it in time; it is asked again at the next try."""


class AgentRequests:
    """Handles what agents of one tenant ask for; without a ``shop`` nothing can be proposed."""

    def __init__(
        self,
        engine: Engine,
        shop: Workshop | None,
        tenant: TenantId,
        us: OurApp,
        people: IdentityWatch,
        client: AsyncWebClient,
        counts: Counts,
    ) -> None:
        self.us = us
        self._engine = engine
        self._shop = shop
        self._tenant = tenant
        self._people = people
        self._client = client
        self._counts = counts

    async def handle(self, event: StoredEvent, said: AgentMention) -> None:
        """Do what one message asks for, or leave its event for the next try."""
        member = slack_principal(self._tenant, said.user)
        if not said.user or not await is_named(self._engine, self._tenant, member):
            await handle_by_nothing(self._engine, event)
            self._counts.unnamed_bots += 1
            _log.info("a bot that the policy does not name was not answered")
            return
        last_try = event.tries >= MOST_TRIES
        try:
            agent = await self._acting(said, last_try=last_try)
            asked = await self._asked(said, last_try=last_try)
        except _NotToldYet:
            return
        wish = Wish(self._tenant, agent, said.channel, said.ts, said.thread_ts, asked)
        came = await handle_by_asking(self._engine, self._shop, event, wish)
        if came is None:
            _log.info("a message of an agent was handled before, or goes unanswered")

    async def _acting(self, said: AgentMention, *, last_try: bool) -> PrincipalId:
        """Name who asks, looked at just now; who could not be looked at is refused for that."""
        who = await self._people.acting(said.principal)
        if who is None and not last_try:
            raise _NotToldYet
        return said.principal if who is None else who

    async def _asked(self, said: AgentMention, *, last_try: bool) -> AgentRequest | Unreadable:
        """Read what a message asks for: in its metadata, or as JSON in its text, or in words."""
        asked = request_in_metadata(said.metadata) or request_in_text(said.text, self.us.user)
        if asked is not None:
            return asked
        if said.metadata is None:
            try:
                asked = request_in_metadata(await self._metadata(said))
            except _NotToldYet:
                if not last_try:
                    raise
                asked = Unreadable(_METADATA_UNREAD)
        return asked or words_of(said.text, self.us.user)

    async def _metadata(self, said: AgentMention) -> Mapping[str, Any] | None:
        """Ask Slack for the metadata of a message; raises ``_NotToldYet``."""
        exactly: dict[str, Any] = {
            "channel": said.channel,
            "oldest": said.ts,
            "latest": said.ts,
            "inclusive": True,
            "include_all_metadata": True,
            "limit": 10,
        }
        try:
            async with asyncio.timeout(_LOOK_SECONDS):
                if said.thread_ts == said.ts:
                    answer = await self._client.conversations_history(**exactly)
                else:
                    answer = await self._client.conversations_replies(ts=said.thread_ts, **exactly)
        except LOST_CALL as error:
            problem = trouble(error)
            _log.info("the metadata of a message was not told: %s", problem.code)
            raise _NotToldYet from None
        for message in answer.get("messages") or ():
            if isinstance(message, Mapping) and message.get("ts") == said.ts:
                found = message.get("metadata")
                return found if isinstance(found, Mapping) else None
        raise _NotToldYet
