"""Messages in which another bot names ours, and the request that stands in one. Pure.

Source: docs.slack.dev, events app_mention and message, and message metadata (2026). An app mention
of a bot carries its ``bot_id``; older bots are told of as messages of subtype ``bot_message``. What
Slack itself makes of a text (links of addresses, three encoded characters) is undone, once; all
else is read as it was written, strictly.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from executor.domain.agent_request import (
    NO_OBJECT,
    AgentRequest,
    Unreadable,
    plain_words,
    read_request,
)
from executor.domain.ids import PrincipalId, TenantId, slack_principal
from executor.domain.payloads import JsonObject

REQUEST_EVENT = "signoff_request"
"""The type of the metadata that holds a request."""

_SLACK_ID = re.compile(r"[A-Z][A-Z0-9]{1,30}")
_TIMESTAMP = re.compile(r"[0-9]{1,20}\.[0-9]{1,10}")
_OLD_SUBTYPE = "bot_message"
_LONGEST_TEXT = 40_000
"""Slack cuts longer texts (docs.slack.dev, chat.postMessage, 2026)."""

_LINK = re.compile(r"<((?:https?://|mailto:|tel:)[^<>|]*)(?:\|([^<>|]*))?>")
_FENCED = re.compile(r"```(?:json)?\s*(.*?)\s*```|`([^`]*)`", re.DOTALL)


@dataclass(frozen=True, slots=True)
class OurApp:
    """Who we are in the workspace; what Slack did not say is empty."""

    user: str
    bot_id: str = ""
    app_id: str = ""


@dataclass(frozen=True, slots=True)
class AgentMention:
    """A message in which another bot names ours; ``user`` is empty where Slack does not say whose.

    ``metadata`` is what the event carries of it; ``text`` is as Slack sent it.
    """

    user: str
    team: str
    channel: str
    ts: str
    thread_ts: str
    text: str
    metadata: Mapping[str, Any] | None

    @property
    def principal(self) -> PrincipalId:
        """Name the agent as the event has it: by the workspace that stands beside it."""
        return slack_principal(self.team, self.user)


def agent_mention_of(payload: JsonObject, tenant: TenantId, us: OurApp) -> AgentMention | None:
    """Read a mention by another bot, or ``None`` for every other event, our own messages too."""
    event = payload.get("event")
    if not isinstance(event, Mapping):
        return None
    kind, subtype = event.get("type"), event.get("subtype")
    profile = _mapping(event.get("bot_profile")) or {}
    by_bot = bool(event.get("bot_id") or profile) or subtype == _OLD_SUBTYPE
    text = str(event.get("text") or "")[: _LONGEST_TEXT + 1]
    if not by_bot or subtype not in (None, _OLD_SUBTYPE):
        return None
    if kind != "app_mention" and not (
        kind == "message" and subtype == _OLD_SUBTYPE and _names(text, us.user)
    ):
        return None
    user, channel, ts = (str(event.get(name) or "") for name in ("user", "channel", "ts"))
    if user == us.user or _is_ours(event, profile, us):
        return None
    if not _SLACK_ID.fullmatch(channel) or not _TIMESTAMP.fullmatch(ts):
        return None
    team = event.get("user_team") or profile.get("team_id") or event.get("team") or tenant
    thread_ts = str(event.get("thread_ts") or ts)
    return AgentMention(
        user if _SLACK_ID.fullmatch(user) else "",
        str(team),
        channel,
        ts,
        thread_ts if _TIMESTAMP.fullmatch(thread_ts) else ts,
        text,
        _mapping(event.get("metadata")),
    )


def request_in_metadata(metadata: Mapping[str, Any] | None) -> AgentRequest | Unreadable | None:
    """Read the request that a message's metadata holds; ``None``: it holds none."""
    if metadata is None or metadata.get("event_type") != REQUEST_EVENT:
        return None
    return read_request(metadata.get("event_payload"))


def request_in_text(text: str, our_user: str) -> AgentRequest | Unreadable | None:
    """Read the JSON object that a text holds beside our name; ``None``: it holds other words."""
    if len(text) > _LONGEST_TEXT:
        return Unreadable(f"The text is too long (the limit is {_LONGEST_TEXT}). {NO_OBJECT}")
    written = _without_name(text, our_user, most=1)
    fenced = _FENCED.fullmatch(written)
    if fenced is not None:
        written = (fenced.group(1) or fenced.group(2) or "").strip()
    elif written.startswith("`"):
        return Unreadable(f"The code block does not stand alone. {NO_OBJECT}")
    if not written.startswith(("{", "[")):
        return None
    try:
        document = json.loads(
            _as_written(written),
            object_pairs_hook=_each_once,
            parse_float=_refuse_number,
            parse_constant=_refuse_number,
        )
    except (ValueError, RecursionError):
        return Unreadable(f"The text is not valid JSON. {NO_OBJECT}")
    return read_request(document)


def words_of(text: str, our_user: str) -> AgentRequest | Unreadable:
    """Take a text beside our name for the goal of a run."""
    return plain_words(" ".join(_as_written(_without_name(text, our_user)).split()))


def _as_written(text: str) -> str:
    """Undo what Slack makes of a text; links that the writer has named otherwise stay as they are.

    Slack encodes ``&``, ``<`` and ``>`` and nothing else (docs.slack.dev, formatting, 2026).
    """
    bare = _LINK.sub(_unlinked, text)
    return bare.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def _unlinked(link: re.Match[str]) -> str:
    target, label = link.group(1), link.group(2)
    if label is None:
        return target.removeprefix("mailto:").removeprefix("tel:")
    return label if label and target.endswith(label) else link.group(0)


def _without_name(text: str, our_user: str, most: int = 0) -> str:
    return re.sub(rf"<@{re.escape(our_user)}(?:\|[^<>]*)?>", " ", text, count=most).strip()


def _names(text: str, our_user: str) -> bool:
    return re.search(rf"<@{re.escape(our_user)}(?:\|[^<>]*)?>", text) is not None


def _is_ours(event: Mapping[str, Any], profile: Mapping[str, Any], us: OurApp) -> bool:
    bots = {event.get("bot_id"), profile.get("id")}
    apps = {event.get("app_id"), profile.get("app_id")}
    return bool(us.bot_id and us.bot_id in bots) or bool(us.app_id and us.app_id in apps)


def _mapping(value: object) -> Mapping[str, Any] | None:
    return value if isinstance(value, Mapping) else None


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse an object that names something twice: readers do not agree on what it says."""
    document = dict(pairs)
    if len(document) != len(pairs):
        raise ValueError("a name stands twice")
    return document


def _refuse_number(text: str) -> float:
    raise ValueError(f"{text[:20]} is no whole number")
