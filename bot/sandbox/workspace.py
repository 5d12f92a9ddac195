"""The workspace's whole state, changed only through the methods here.

Each change raises `version` and wakes everyone who waits, so that a test or a page never polls.
A `ts` is unique in its channel and grows; a message is never removed, only marked deleted.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import replace

from bot.sandbox import seed
from bot.sandbox.agent import Agent
from bot.sandbox.clock import Clock, WallClock
from bot.sandbox.echo import sanitised
from bot.sandbox.event_retries import EventRetries
from bot.sandbox.interaction import Person
from bot.sandbox.model import (
    Channel,
    Ephemeral,
    Installation,
    Json,
    Message,
    OpenView,
    Revision,
    Team,
    User,
)
from bot.sandbox.rate_limits import RateLimits
from bot.sandbox.record import Record
from bot.sandbox.response_urls import ResponseUrls
from bot.sandbox.socket_mode import Sockets
from bot.sandbox.text_view import render_message
from bot.sandbox.triggers import Triggers


class Workspace:
    """Hold one Slack workspace and the one app that is installed in it."""

    def __init__(
        self,
        team: Team,
        app: Installation,
        *,
        bot_token: str = seed.BOT_TOKEN,
        signing_secret: str = seed.SIGNING_SECRET,
        app_token: str = seed.APP_TOKEN,
        clock: Clock | None = None,
        post_burst: int = 1_000,
        tier_3_burst: int = 1_000,
        answer_seconds: float = 3.0,
        edit_window_seconds: float | None = None,
        paid_plan: bool = True,
        org_wide: bool = False,
        has_home_tab: bool = True,
    ) -> None:
        """Start empty.

        `post_burst` is how many messages a channel takes at once before one per second,
        `tier_3_burst` how many calls a Tier 3 method takes before 50 a minute; `answer_seconds` is
        how long Slack waits for the bot, on the machine's clock.

        `history_page` caps the pages of history, as for apps outside the Marketplace;
        without `keeps_metadata` what is posted loses it.
        """
        self.team = team
        self.app = app
        self.bot_token = bot_token
        self.signing_secret = signing_secret
        self.clock: Clock = WallClock() if clock is None else clock
        self.answer_seconds = answer_seconds
        self.edit_window_seconds = edit_window_seconds
        self.paid_plan = paid_plan
        self.org_wide = org_wide
        self.has_home_tab = has_home_tab
        self.bot_url: str | None = None
        self.app_token = app_token
        self.socket_mode = False
        self.public_url = "http://127.0.0.1"
        self.teams: dict[str, Team] = {team.id: team}
        self.users: dict[str, User] = {}
        self.agents: dict[str, Installation] = {}
        self.channels: dict[str, Channel] = {}
        self.usergroups: dict[str, list[str]] = {}
        self.messages: dict[str, dict[str, Message]] = {}
        self.ephemerals: dict[str, list[Ephemeral]] = {}
        self.views: dict[str, list[OpenView]] = {}
        self.homes: dict[str, OpenView] = {}
        self.tokens: dict[str, Installation] = {bot_token: app}
        self.revoked: dict[str, str] = {}
        self.triggers = Triggers()
        self.response_urls = ResponseUrls()
        self.record = Record()
        self.limits = RateLimits(post_burst, tier_3_burst)
        self.history_page = 999
        self.keeps_metadata = True
        self.sockets = Sockets()
        self.event_retries = EventRetries(self.clock)
        self.version = 0
        self.closed = False
        self._waiters: set[asyncio.Future[None]] = set()
        self._last_ts: dict[str, int] = {}
        self._ids = itertools.count(1)
        self._deliveries = itertools.count(1)

    @classmethod
    def seeded(
        cls,
        *,
        clock: Clock | None = None,
        post_burst: int = 1_000,
        tier_3_burst: int = 1_000,
        answer_seconds: float = 3.0,
        bot_token: str = seed.BOT_TOKEN,
        signing_secret: str = seed.SIGNING_SECRET,
    ) -> Workspace:
        """Make the demo's workspace: its people, #approvals and #support, and the bot."""
        workspace = cls(
            seed.team(),
            seed.app(),
            clock=clock,
            post_burst=post_burst,
            tier_3_burst=tier_3_burst,
            answer_seconds=answer_seconds,
            bot_token=bot_token,
            signing_secret=signing_secret,
        )
        for team in seed.other_teams():
            workspace.teams[team.id] = team
        for user in seed.users():
            workspace.users[user.id] = user
        workspace.agents[seed.agent().user_id] = seed.agent()
        for channel in seed.channels():
            workspace.channels[channel.id] = channel
        workspace.usergroups[seed.REVIEWERS] = ["U0REVIEWER", "U0SECOND"]
        return workspace

    # Time and change

    def now(self) -> float:
        return self.clock.now()

    def changed(self) -> None:
        """Raise the version and wake everyone who waits for a change."""
        self.version += 1
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    def close(self) -> None:
        """End every open wait and event stream; the workspace stays readable."""
        self.closed = True
        self.changed()

    async def next_change(self, seen: int) -> int:
        """Wait until the version is past `seen` or the workspace closes; return the version."""
        while self.version <= seen and not self.closed:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.add(waiter)
            try:
                await waiter
            finally:
                self._waiters.discard(waiter)
        return self.version

    async def wait_for(
        self, predicate: Callable[[Workspace], object], timeout_seconds: float = 5.0
    ) -> None:
        """Wait until `predicate` holds, looking again after each change.

        Raises TimeoutError that shows the workspace as it then was.
        """
        try:
            async with asyncio.timeout(timeout_seconds):
                seen = self.version
                while not predicate(self):
                    seen = await self.next_change(seen)
        except TimeoutError:
            raise TimeoutError(f"not within {timeout_seconds} s; shown:\n{self.shown()}") from None

    def shown(self) -> str:
        """Render every visible message of every channel as text, for a failed test."""
        parts = []
        for channel in self.channels.values():
            parts.append(f"#{channel.name}")
            parts += [render_message(m.text, m.blocks) for m in self.visible(channel.id)]
        return "\n".join(parts)

    # Messages

    def new_id(self, prefix: str = "") -> str:
        return f"{prefix}{next(self._ids):05d}"

    def new_ts(self, channel: str) -> str:
        micros = max(int(self.now() * 1_000_000), self._last_ts.get(channel, 0) + 1)
        self._last_ts[channel] = micros
        return f"{micros // 1_000_000}.{micros % 1_000_000:06d}"

    def visible(self, channel: str) -> list[Message]:
        """Return the channel's messages that still exist, oldest first."""
        return [m for m in self.messages.get(channel, {}).values() if not m.deleted]

    def message(self, channel: str, ts: str) -> Message | None:
        """Return the message, unless it was deleted or never was."""
        found = self.messages.get(channel, {}).get(ts)
        return None if found is None or found.deleted else found

    def post(
        self,
        channel: str,
        user: str,
        text: str,
        blocks: list[Json] | None = None,
        *,
        metadata: Json | None = None,
        attachments: list[Json] | None = None,
        thread_ts: str | None = None,
        app: Installation | None = None,
        sent: Json | None = None,
    ) -> Message:
        """Store a new message. With `app` it is a bot message."""
        ts = self.new_ts(channel)
        message = Message(
            channel=channel,
            ts=ts,
            user=user,
            revisions=[self._revision(text, blocks or [], metadata, attachments or [], sent or {})],
            bot_id=app.bot_id if app else None,
            app_id=app.app_id if app else None,
            thread_ts=thread_ts,
        )
        self.messages.setdefault(channel, {})[ts] = message
        self._record_card(message)
        self.changed()
        return message

    def revise(
        self,
        message: Message,
        text: str,
        blocks: list[Json],
        metadata: Json | None,
        attachments: list[Json] | None = None,
        sent: Json | None = None,
    ) -> None:
        """Give the message a new revision; the old ones stay clickable by a stale client."""
        message.revisions.append(
            self._revision(text, blocks, metadata, attachments or [], sent or {})
        )
        message.edited = {"user": message.user, "ts": f"{int(self.now())}.000000"}
        self._record_card(message)
        self.changed()

    def delete(self, message: Message) -> None:
        message.deleted = True
        self.changed()

    def whisper(
        self,
        channel: str,
        user: str,
        text: str,
        blocks: list[Json] | None = None,
        thread_ts: str | None = None,
    ) -> Ephemeral:
        """Show a message to one person only."""
        stored = sanitised(blocks or [], self.new_id)
        ephemeral = Ephemeral(self.new_ts(channel), channel, user, text, stored, thread_ts)
        self.ephemerals.setdefault(user, []).append(ephemeral)
        self.changed()
        return ephemeral

    def _revision(
        self,
        text: str,
        blocks: list[Json],
        metadata: Json | None,
        attachments: list[Json],
        sent: Json,
    ) -> Revision:
        stored = sanitised(blocks, self.new_id)
        return Revision(text, stored, metadata, attachments, self.now(), sent)

    def _record_card(self, message: Message) -> None:
        self.record.add(
            "card",
            "shown",
            self.now(),
            {
                "channel": message.channel,
                "ts": message.ts,
                "revision": len(message.revisions) - 1,
                "shown": render_message(message.text, message.blocks),
                "blocks": message.blocks,
            },
        )

    # Views

    def view(self, view_id: str) -> OpenView | None:
        """Return the open modal or Home tab of that id."""
        stacks = itertools.chain(*self.views.values(), self.homes.values())
        return next((view for view in stacks if view.id == view_id), None)

    def view_of(self, user: str) -> OpenView | None:
        """Return the modal that is on top on this person's screen."""
        stack = self.views.get(user)
        return stack[-1] if stack else None

    def open_view(self, user: str, view: Json, *, push: bool = False) -> OpenView:
        """Put a modal on the person's screen, on top of the others or instead of them."""
        stack = self.views.get(user, []) if push else []
        view_id = self.new_id("V0VIEW")
        opened = OpenView(
            view_id,
            user,
            self.stored_view(view),
            self.new_id("hash."),
            root_view_id=stack[0].id if stack else view_id,
            previous_view_id=stack[-1].id if stack else None,
        )
        self.views[user] = [*stack, opened]
        self.changed()
        return opened

    def update_view(self, opened: OpenView, view: Json) -> None:
        opened.view = self.stored_view(view)
        opened.hash = self.new_id("hash.")
        self.changed()

    def close_view(self, opened: OpenView, *, whole_stack: bool = False) -> None:
        """Take one modal, or all of the person's modals, off the screen."""
        stack = self.views.get(opened.user, [])
        self.views[opened.user] = [] if whole_stack else [v for v in stack if v is not opened]
        self.changed()

    def stored_view(self, view: Json) -> Json:
        return {**view, "blocks": sanitised(view["blocks"], self.new_id)}

    # The app and its people

    def add_token(self, token: str, installation: Installation) -> None:
        self.tokens[token] = installation

    def revoke(self, token: str | None = None, error: str = "token_revoked") -> None:
        """Make a token, by default the bot's, answer this error from now on."""
        self.revoked[token or self.bot_token] = error

    def uninstall(self) -> None:
        """Take the app out of the workspace: its tokens are those of an inactive account."""
        for token in self.tokens:
            self.revoke(token, "account_inactive")

    def restore(self, token: str | None = None) -> None:
        """Let a token, by default the bot's, work again."""
        self.revoked.pop(token or self.bot_token, None)

    def drop_scope(self, scope: str) -> None:
        """Take a scope from the bot's token."""
        caller = self.tokens[self.bot_token]
        self.tokens[self.bot_token] = replace(caller, scopes=caller.scopes - {scope})

    def direct(self, user_id: str) -> Channel | None:
        """Return the conversation of the app with one person, or None where there can be none."""
        user = self.users.get(user_id)
        if user is None or user.deleted or user.team_id != self.team.id:
            return None
        channel_id = f"D0{user_id}"
        members = {user_id, self.app.user_id}
        opened = Channel(channel_id, f"@{user.name}", members, is_private=True)
        return self.channels.setdefault(channel_id, opened)

    def next_delivery(self) -> int:
        return next(self._deliveries)

    def connect(self, bot_url: str) -> None:
        """Name the bot's base URL; requests go to its `/slack/events`."""
        self.bot_url = bot_url.rstrip("/")
        self.socket_mode = False

    def use_socket_mode(self) -> None:
        """Deliver over the sockets that the bot opens with `app_token` from now on."""
        self.bot_url = None
        self.socket_mode = True

    def person(self, user_id: str) -> Person:
        """Return the hands of that user; KeyError if there is none."""
        user = self.users[user_id]
        return self.agent(user_id) if user_id in self.agents else Person(self, user)

    def agent(self, user_id: str) -> Agent:
        """Return the hands of another app's bot; KeyError if there is none."""
        return Agent(self, self.users[user_id], self.agents[user_id])
