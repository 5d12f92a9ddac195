"""Events close a place or hasten the look at it; what happens elsewhere changes nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from bot.commands.manifest import slack_manifest
from bot.event_names import WORKSPACE_EVENTS
from bot.slack_answers import SHARED
from bot.workspace_events import PlaceChange, change_of_place
from executor.engine.delivery_trouble import WORKSPACE
from tests.support.bot_harness import APPROVALS, REVIEWER, SUPPORT, Harness

BOT = "U0SIGNOFF"


def changed(**event: Any) -> PlaceChange | None:
    return change_of_place({"event": event}, BOT)


@pytest.mark.parametrize(
    ("event", "place", "problem"),
    [
        ({"type": "app_uninstalled"}, WORKSPACE, "app_uninstalled"),
        ({"type": "tokens_revoked", "tokens": {"bot": [BOT]}}, WORKSPACE, "token_revoked"),
        ({"type": "channel_archive", "channel": "C1", "user": "U1"}, "C1", "is_archived"),
        ({"type": "group_archive", "channel": "G1"}, "G1", "is_archived"),
        ({"type": "channel_deleted", "channel": "C1"}, "C1", "channel_not_found"),
        ({"type": "channel_shared", "channel": "C1", "connected_team_id": "T2"}, "C1", SHARED),
        ({"type": "member_left_channel", "channel": "C1", "user": BOT}, "C1", "not_in_channel"),
        ({"type": "channel_unarchive", "channel": "C1", "user": "U1"}, "C1", None),
        ({"type": "channel_unshared", "channel": "C1"}, "C1", None),
        ({"type": "member_joined_channel", "channel": "C1", "user": BOT}, "C1", None),
    ],
)
def test_an_event_names_a_place_and_what_is_wrong_with_it(
    event: dict[str, Any], place: str, problem: str | None
) -> None:
    assert changed(**event) == PlaceChange(place, problem)


@pytest.mark.parametrize(
    "event",
    [
        {"type": "app_mention", "channel": "C1"},
        {"type": "member_left_channel", "channel": "C1", "user": "U1"},
        {"type": "member_joined_channel", "channel": "C1", "user": "U1"},
        {"type": "tokens_revoked", "tokens": {"oauth": [BOT]}},
        {"type": "tokens_revoked", "tokens": {"bot": ["U0ANOTHER"]}},
        {"type": "tokens_revoked", "tokens": "all"},
        {"type": "channel_archive"},
        {"type": "channel_archive", "channel": {"id": "C1"}},
        {"type": ["channel_archive"]},
    ],
)
def test_what_is_about_others_or_makes_no_sense_is_about_no_place(event: dict[str, Any]) -> None:
    assert changed(**event) is None
    assert change_of_place({"event": []}, BOT) is None


def test_the_app_subscribes_to_what_is_read() -> None:
    settings: Any = slack_manifest("https://signoff.example.com")["settings"]
    assert set(WORKSPACE_EVENTS) <= set(settings["event_subscriptions"]["bot_events"])


@pytest.fixture
async def h(database_url: str) -> AsyncIterator[Harness]:
    async with Harness(database_url, worker=False) as harness:
        yield harness


async def troubles(h: Harness) -> list[tuple[str, str]]:
    rows = await h.rows("SELECT place, problem FROM delivery_troubles ORDER BY place")
    return [(row.place, row.problem) for row in rows]


@pytest.mark.parametrize(("channel", "closed"), [(APPROVALS, True), (SUPPORT, False)])
async def test_only_the_cards_own_channels_are_closed_by_an_event(
    h: Harness, channel: str, closed: bool
) -> None:
    h.workspace.channels[channel].is_archived = True
    await h.person(REVIEWER).cause({"type": "channel_archive", "channel": channel})
    await h.until(lambda: h.value("SELECT count(*) FROM inbox WHERE handled_at IS NULL"),
                  lambda left: left == 0)  # fmt: skip
    assert await troubles(h) == ([(channel, "is_archived")] if closed else [])
