"""Events that tell of the app and of the channels of cards: what closes one, and what may heal one.

Source: docs.slack.dev, events app_uninstalled, tokens_revoked, channel_archive, channel_unarchive,
channel_deleted, channel_shared, channel_unshared, member_joined_channel, member_left_channel, and
those of private channels (2026). An event only hastens what the next card, or the next look, would
have found out: events come late, twice and out of order, and what they close is looked at again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bot.event_names import WORKSPACE_EVENTS
from bot.slack_answers import SHARED
from executor.domain.payloads import JsonObject
from executor.engine.delivery_trouble import WORKSPACE, handle_by_closing, handle_by_looking
from executor.engine.engine import Engine
from executor.engine.events import StoredEvent

_CLOSES = {
    "app_uninstalled": "app_uninstalled",
    "tokens_revoked": "token_revoked",
    "channel_archive": "is_archived",
    "group_archive": "is_archived",
    "channel_deleted": "channel_not_found",
    "group_deleted": "channel_not_found",
    "channel_shared": SHARED,
    "member_left_channel": "not_in_channel",
}
_MAY_HEAL = frozenset(
    {"channel_unarchive", "group_unarchive", "channel_unshared", "member_joined_channel"}
)
_OF_ONE_MEMBER = frozenset({"member_left_channel", "member_joined_channel"})
_OF_THE_APP = frozenset({"app_uninstalled", "tokens_revoked"})

assert {*_CLOSES, *_MAY_HEAL} == set(WORKSPACE_EVENTS)


@dataclass(frozen=True, slots=True)
class PlaceChange:
    """A place that an event is about; ``problem`` is why it closes, ``None``: look at it now."""

    place: str
    problem: str | None


def change_of_place(payload: JsonObject, bot_user: str) -> PlaceChange | None:
    """Read which place an event is about, or ``None`` for an event that is about no place."""
    event = payload.get("event")
    if not isinstance(event, Mapping):
        return None
    kind = event.get("type")
    if kind not in WORKSPACE_EVENTS:
        return None
    if kind in _OF_ONE_MEMBER and event.get("user") != bot_user:
        return None
    if kind == "tokens_revoked" and not _is_ours(event.get("tokens"), bot_user):
        return None
    if kind in _OF_THE_APP:
        return PlaceChange(WORKSPACE, _CLOSES[str(kind)])
    channel = event.get("channel")
    if not isinstance(channel, str) or not channel:
        return None
    return PlaceChange(channel, _CLOSES.get(str(kind)))


def _is_ours(tokens: object, bot_user: str) -> bool:
    bots = tokens.get("bot") if isinstance(tokens, Mapping) else None
    return isinstance(bots, list) and bot_user in bots


async def handle_change_of_place(
    engine: Engine, event: StoredEvent, bot_user: str, ours: frozenset[str]
) -> bool:
    """Do what an event about a place asks for; ``False``: it is about none.

    Of other channels than ``ours`` nothing is kept.
    """
    change = change_of_place(event.payload, bot_user)
    if change is None:
        return False
    if change.problem is not None and change.place in {WORKSPACE, *ours}:
        await handle_by_closing(engine, event, change.place, change.problem)
    else:
        await handle_by_looking(engine, event, change.place)
    return True
