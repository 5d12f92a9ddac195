"""The things a workspace is made of.

A message keeps every revision it ever had, because a client may show, and click, an old one.
Blocks are kept as literal text; `echo.py` produces the encoded form that Slack sends out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

# Slack's payloads are JSON objects whose shape the sender chooses: this is the JSON boundary.
Json = dict[str, Any]


@dataclass
class Team:
    id: str
    name: str
    domain: str
    enterprise_id: str | None = None


@dataclass
class User:
    """A person. Who is no `is_member` uses an app only; who is `hidden` is shown to no app.

    On Enterprise Grid `teams` are the person's workspaces, of which `team_id` is any.
    """

    id: str
    team_id: str
    name: str
    real_name: str
    title: str = ""
    is_bot: bool = False
    deleted: bool = False
    is_restricted: bool = False
    is_ultra_restricted: bool = False
    is_stranger: bool = False
    is_app_user: bool = False
    is_admin: bool = False
    is_member: bool = True
    hidden: bool = False
    tz: str = "Europe/Amsterdam"
    enterprise_id: str | None = None
    teams: tuple[str, ...] = ()

    def role(self, home_team_id: str) -> str:
        """Name what this user is to the team that installed the app, in one word."""
        if self.is_bot:
            return "bot"
        if self.deleted:
            return "deactivated"
        if self.team_id != home_team_id:
            return "outsider"
        if self.is_restricted or self.is_ultra_restricted:
            return "guest"
        return "member"


@dataclass
class Channel:
    id: str
    name: str
    members: set[str] = field(default_factory=set)
    is_private: bool = False
    is_archived: bool = False
    is_ext_shared: bool = False
    is_pending_ext_shared: bool = False
    is_shared: bool = False
    is_org_shared: bool = False


@dataclass(frozen=True)
class Revision:
    """One state of a message.

    `blocks` are literal: what was sent, plus generated ids. `sent` is the call's arguments.
    """

    text: str
    blocks: list[Json]
    metadata: Json | None
    attachments: list[Json]
    at: float
    sent: Json


@dataclass
class Message:
    channel: str
    ts: str
    user: str
    revisions: list[Revision]
    bot_id: str | None = None
    app_id: str | None = None
    thread_ts: str | None = None
    edited: Json | None = None
    deleted: bool = False
    edit_window_closed: bool = False

    @property
    def now(self) -> Revision:
        return self.revisions[-1]

    @property
    def text(self) -> str:
        return self.now.text

    @property
    def blocks(self) -> list[Json]:
        return self.now.blocks

    @property
    def metadata(self) -> Json | None:
        return self.now.metadata

    @property
    def is_reply(self) -> bool:
        return self.thread_ts is not None and self.thread_ts != self.ts


@dataclass
class Ephemeral:
    """A message that one person sees until they reload; it is in no history."""

    ts: str
    channel: str
    user: str
    text: str
    blocks: list[Json]
    thread_ts: str | None = None


@dataclass
class OpenView:
    """A modal on one person's screen, or that person's Home tab."""

    id: str
    user: str
    view: Json
    hash: str
    root_view_id: str
    previous_view_id: str | None = None
    kind: Literal["modal", "home"] = "modal"


@dataclass(frozen=True)
class Installation:
    """What one bot token stands for."""

    team_id: str
    user_id: str
    bot_id: str
    app_id: str
    scopes: frozenset[str]
