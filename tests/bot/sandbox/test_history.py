"""Reading back: bounds, pages, metadata on request, threads."""

from __future__ import annotations

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.sandbox.clock import VirtualClock
from tests.bot.sandbox.conftest import CHANNEL


@pytest.fixture
async def stamps(client: AsyncWebClient, clock: VirtualClock) -> list[str]:
    posted = []
    for number in range(5):
        answer = await client.chat_postMessage(
            channel=CHANNEL,
            text=f"message {number}",
            metadata={"event_type": "card", "event_payload": {"number": number}},
        )
        posted.append(str(answer["ts"]))
        clock.advance(10)
    return posted


async def read(client: AsyncWebClient, **args: object) -> list[str]:
    answer = await client.conversations_history(channel=CHANNEL, **args)  # type: ignore[arg-type]
    return [m["ts"] for m in answer["messages"]]


async def test_bounds_exclude_their_own_stamps_unless_inclusive(
    client: AsyncWebClient, stamps: list[str]
) -> None:
    assert await read(client) == stamps[::-1]
    bounds = {"oldest": stamps[1], "latest": stamps[3]}
    assert await read(client, **bounds) == [stamps[2]]
    assert await read(client, **bounds, inclusive=True) == stamps[3:0:-1]


async def test_pages_follow_each_other_without_gap(
    client: AsyncWebClient, stamps: list[str]
) -> None:
    seen: list[str] = []
    cursor: str | None = None
    for _ in range(3):
        page = await client.conversations_history(channel=CHANNEL, limit=2, cursor=cursor)
        seen += [m["ts"] for m in page["messages"]]
        cursor = page["response_metadata"]["next_cursor"] if page["has_more"] else None
    assert seen == stamps[::-1]


async def test_metadata_is_shown_on_request_only(client: AsyncWebClient, stamps: list[str]) -> None:
    plain = await client.conversations_history(channel=CHANNEL)
    assert all("metadata" not in m for m in plain["messages"])
    full = await client.conversations_history(channel=CHANNEL, include_all_metadata=True)
    assert [m["metadata"]["event_payload"]["number"] for m in full["messages"]] == [4, 3, 2, 1, 0]


@pytest.mark.parametrize(
    ("args", "error"),
    [
        ({"limit": 1000}, "invalid_limit"),
        ({"limit": 0}, "invalid_limit"),
        ({"cursor": "nonsense"}, "invalid_cursor"),
        ({"oldest": "yesterday"}, "invalid_ts_oldest"),
        ({"latest": "x"}, "invalid_ts_latest"),
    ],
)
async def test_a_wrong_argument_is_named(
    client: AsyncWebClient, args: dict[str, object], error: str
) -> None:
    with pytest.raises(SlackApiError) as caught:
        await read(client, **args)
    assert caught.value.response["error"] == error


async def test_replies_are_in_their_thread_and_not_in_history(
    client: AsyncWebClient, stamps: list[str]
) -> None:
    reply = await client.chat_postMessage(channel=CHANNEL, text="r", thread_ts=stamps[0])
    thread = await client.conversations_replies(channel=CHANNEL, ts=stamps[0])
    assert [m["ts"] for m in thread["messages"]] == [stamps[0], reply["ts"]]
    assert reply["ts"] not in await read(client)
    with pytest.raises(SlackApiError) as caught:
        await client.conversations_replies(channel=CHANNEL, ts="1.000001")
    assert caught.value.response["error"] == "thread_not_found"


async def test_a_deleted_message_is_gone_from_history(
    client: AsyncWebClient, stamps: list[str]
) -> None:
    await client.chat_delete(channel=CHANNEL, ts=stamps[4])
    assert await read(client) == stamps[3::-1]
