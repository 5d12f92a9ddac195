"""Stored events become runs: what a person asked for by naming the bot, once.

An event that tells of a change of people or groups is no wish: it makes what was seen of them old.
Events are handled in the commit that does what they ask for. Messages of bots are another matter
(see ``agent_requests``); our own, and changes of messages, ask for nothing.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass

from bot import command_replies, replies
from bot.agent_mentions import agent_mention_of
from bot.agent_requests import AgentRequests
from bot.home_delivery import HomeDelivery, opened_by
from bot.identity import IdentityWatch
from bot.listeners.commands import started_text
from bot.people_events import change_of
from bot.whisper import Whisperer
from bot.workspace_events import handle_change_of_place
from executor.domain.ids import TenantId, slack_principal
from executor.domain.payloads import JsonObject
from executor.domain.policy import SlackSection
from executor.engine.engine import Engine
from executor.engine.events import StoredEvent, handle_by_nothing, handle_by_starting
from executor.engine.people import handle_by_outdating
from executor.engine.start import StartRequest

_log = logging.getLogger(__name__)

MOST_TRIES = 10
_SLACK_ID = re.compile(r"[A-Z][A-Z0-9]{1,30}")


@dataclass(frozen=True, slots=True)
class Mention:
    """A message in which a person named the bot; ``goal`` is the rest of it, as it was typed."""

    user: str
    team: str
    channel: str
    ts: str
    thread_ts: str
    goal: str


def mention_of(payload: JsonObject, tenant: TenantId, bot_user: str) -> Mention | None:
    """Read a mention by a person, or ``None`` for every other event."""
    event = payload.get("event")
    if not isinstance(event, Mapping) or event.get("type") != "app_mention":
        return None
    if event.get("bot_id") or event.get("bot_profile") or event.get("subtype"):
        return None
    user, channel, ts = event.get("user"), event.get("channel"), event.get("ts")
    if not isinstance(user, str) or not _SLACK_ID.fullmatch(user) or user == bot_user:
        return None
    if not isinstance(channel, str) or not isinstance(ts, str):
        return None
    team = event.get("user_team") or event.get("team") or tenant
    thread_ts = event.get("thread_ts") or ts
    return Mention(
        user, str(team), channel, ts, str(thread_ts), goal_of(str(event.get("text", "")), bot_user)
    )


def goal_of(text: str, bot_user: str) -> str:
    """Take the bot's own name out of a message and undo Slack's encoding, once and last of all.

    Slack encodes ``&``, ``<`` and ``>`` and nothing else (docs.slack.dev, formatting, 2026).
    """
    named = re.sub(rf"<@{re.escape(bot_user)}(?:\|[^>]*)?>", " ", text)
    plain = named.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return " ".join(plain.split())


class Inbox:
    """Handles the stored events of one tenant."""

    def __init__(
        self,
        engine: Engine,
        tenant: TenantId,
        bot_user: str,
        people: IdentityWatch,
        whisperer: Whisperer,
        slack: SlackSection,
        homes: HomeDelivery,
        agents: AgentRequests,
    ) -> None:
        self._engine = engine
        self._tenant = tenant
        self._bot_user = bot_user
        self._people = people
        self._whisperer = whisperer
        self._homes = homes
        self._agents = agents
        self._channels = frozenset({slack.channel, slack.fallback_channel or slack.channel})

    async def handle(self, event: StoredEvent) -> None:
        """Do what one event asks for, or leave it for the next try."""
        if event.tenant_id != self._tenant:
            return
        changed = change_of(event.payload, self._tenant)
        if changed is not None:
            await handle_by_outdating(self._engine, event, changed.people, changed.groups)
            return
        if await handle_change_of_place(self._engine, event, self._bot_user, self._channels):
            return
        looker = opened_by(event.payload)
        if looker is not None:
            await self._homes.publish(looker)
            await handle_by_nothing(self._engine, event)
            return
        by_agent = agent_mention_of(event.payload, self._tenant, self._agents.us)
        if by_agent is not None:
            await self._agents.handle(event, by_agent)
            return
        mention = mention_of(event.payload, self._tenant, self._bot_user)
        if mention is None:
            await handle_by_nothing(self._engine, event)
            return
        if not mention.goal:
            await handle_by_nothing(self._engine, event)
            self._answer(mention, command_replies.help_text())
            return
        who = await self._people.acting(slack_principal(mention.team, mention.user))
        if who is None:
            await self._leave(event, mention)
            return
        result = await handle_by_starting(
            self._engine,
            event,
            StartRequest(
                tenant_id=self._tenant,
                requester=who,
                goal=mention.goal,
                origin_key=f"mention:{self._tenant}:{mention.channel}:{mention.ts}",
                reply_to={"channel": mention.channel, "thread_ts": mention.thread_ts},
            ),
        )
        if result is not None:
            self._answer(mention, started_text(result))

    async def _leave(self, event: StoredEvent, mention: Mention) -> None:
        """Leave an event for its next try, as long as there is one."""
        if event.tries < MOST_TRIES:
            return
        _log.error("an event was given up: Slack did not say who somebody is")
        await handle_by_nothing(self._engine, event)
        self._answer(mention, replies.identity_unverified())

    def _answer(self, mention: Mention, text: str) -> None:
        self._whisperer.say(mention.channel, mention.user, text, thread_ts=mention.thread_ts)
