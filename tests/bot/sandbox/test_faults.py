"""Each fault, as a client with no retries of its own meets it, and what Slack then holds."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.sandbox.faults import Fault, Faults
from bot.sandbox.slack_server import SlackServer
from bot.sandbox.workspace import Workspace
from tests.bot.sandbox.conftest import CHANNEL, client_of, make_card

POST = "chat.postMessage"
LOST = (aiohttp.ClientError, asyncio.TimeoutError, ConnectionError, SlackApiError)


async def post(client: AsyncWebClient, **more: object) -> object:
    return await client.chat_postMessage(
        channel=CHANNEL,
        text="t",
        blocks=make_card(),
        **more,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("fault", "stored"),
    [
        (Fault.NOT_DELIVERED, 0),
        (Fault.LOST_AFTER_COMMIT, 1),
        (Fault.TRUNCATED_BODY, 1),
        (Fault.ERROR_500_BEFORE_COMMIT, 0),
        (Fault.ERROR_500_AFTER_COMMIT, 1),
        (Fault.FATAL_ERROR_AFTER_COMMIT, 1),
        (Fault.INTERNAL_ERROR_BEFORE_COMMIT, 0),
        (Fault.RATE_LIMITED, 0),
        (Fault.TOKEN_REVOKED, 0),
        (Fault.CHANNEL_ARCHIVED, 0),
    ],
)
async def test_a_failed_post_is_stored_or_not_as_the_fault_says(
    slack: SlackServer, client: AsyncWebClient, fault: Fault, stored: int
) -> None:
    slack.faults.add(POST, call=1, fault=fault)
    with pytest.raises(LOST):
        await post(client)
    assert len(slack.workspace.visible(CHANNEL)) == stored
    assert slack.record.calls(POST)[0].data["fault"] == fault.value


@pytest.mark.parametrize(
    ("fault", "status", "error"),
    [
        (Fault.ERROR_500_AFTER_COMMIT, 500, "internal_error"),
        (Fault.FATAL_ERROR_AFTER_COMMIT, 200, "fatal_error"),
        (Fault.TOKEN_REVOKED, 200, "token_revoked"),
        (Fault.CHANNEL_ARCHIVED, 200, "is_archived"),
        (Fault.BOT_REMOVED, 200, "not_in_channel"),
        (Fault.CHANNEL_DELETED, 200, "channel_not_found"),
        (Fault.APP_UNINSTALLED, 200, "account_inactive"),
        (Fault.RATE_LIMITED, 429, "ratelimited"),
    ],
)
async def test_a_fault_answers_with_slack_s_own_name(
    slack: SlackServer, client: AsyncWebClient, fault: Fault, status: int, error: str
) -> None:
    slack.faults.add(POST, fault=fault, seconds=7)
    with pytest.raises(SlackApiError) as caught:
        await post(client)
    assert caught.value.response.status_code == status
    assert caught.value.response["error"] == error
    assert caught.value.response.headers.get("Retry-After") == ("7" if status == 429 else None)


async def test_a_refusal_is_one_of_slack_s_own(slack: SlackServer, client: AsyncWebClient) -> None:
    slack.faults.add(POST, fault=Fault.REFUSED, error="restricted_action")
    with pytest.raises(SlackApiError) as caught:
        await post(client)
    assert caught.value.response["error"] == "restricted_action"
    assert slack.workspace.visible(CHANNEL) == []
    for fault, error in (
        (Fault.REFUSED, "made_up"),
        (Fault.REFUSED, ""),
        (Fault.SLOW, "is_archived"),
    ):
        with pytest.raises(ValueError, match="an error of Slack's"):
            slack.faults.add(POST, fault=fault, error=error)


async def test_a_token_that_was_revoked_or_whose_scope_was_dropped_works_again_when_restored(
    slack: SlackServer, client: AsyncWebClient
) -> None:
    for error in ("token_revoked", "account_inactive"):
        slack.workspace.revoke(error=error)
        with pytest.raises(SlackApiError) as caught:
            await post(client)
        assert caught.value.response["error"] == error
        slack.workspace.restore()
        await post(client)
    slack.workspace.drop_scope("chat:write")
    with pytest.raises(SlackApiError) as caught:
        await post(client)
    assert caught.value.response["needed"] == "chat:write"


async def test_the_client_s_default_retries_post_twice_when_the_answer_is_lost(
    slack: SlackServer,
) -> None:
    slack.faults.add(POST, call=1, fault=Fault.LOST_AFTER_COMMIT)
    retrying = AsyncWebClient(token=slack.workspace.bot_token, base_url=slack.api_url)
    await post(retrying)
    assert len(slack.workspace.visible(CHANNEL)) == 2


async def test_a_hanging_call_is_committed_first_or_only_after_release(slack: SlackServer) -> None:
    client = client_of(slack)
    after = slack.faults.add(POST, call=1, fault=Fault.HANGS_AFTER_COMMIT)
    waiting = asyncio.create_task(post(client))
    await slack.workspace.wait_for(lambda w: len(w.visible(CHANNEL)) == 1)
    assert not waiting.done()
    after.release()
    await waiting

    before = slack.faults.add(POST, call=2, fault=Fault.HANGS_BEFORE_COMMIT)
    waiting = asyncio.create_task(post(client))
    await before.fired.wait()
    assert len(slack.workspace.visible(CHANNEL)) == 1
    before.release()
    await waiting
    assert len(slack.workspace.visible(CHANNEL)) == 2


async def test_a_client_that_gives_up_on_a_hanging_post_has_posted(slack: SlackServer) -> None:
    slack.faults.add(POST, fault=Fault.HANGS_AFTER_COMMIT)
    with pytest.raises(asyncio.TimeoutError):
        await post(client_of(slack, timeout=1))
    assert len(slack.workspace.visible(CHANNEL)) == 1


async def test_a_slow_answer_arrives(slack: SlackServer, client: AsyncWebClient) -> None:
    slack.faults.add(POST, fault=Fault.SLOW, seconds=0.05)
    loop = asyncio.get_running_loop()
    started = loop.time()
    await post(client)
    assert loop.time() - started >= 0.05


async def test_a_proxy_that_repeats_a_post_makes_two_messages(
    slack: SlackServer, client: AsyncWebClient
) -> None:
    slack.faults.add(POST, fault=Fault.DELIVERED_TWICE)
    await post(client)
    assert len(slack.workspace.visible(CHANNEL)) == 2


async def test_history_can_lag_behind_writes(slack: SlackServer, client: AsyncWebClient) -> None:
    await post(client)
    slack.faults.add("conversations.history", call=1, fault=Fault.HISTORY_LAGS)
    lagging = await client.conversations_history(channel=CHANNEL)
    caught_up = await client.conversations_history(channel=CHANNEL)
    assert (len(lagging["messages"]), len(caught_up["messages"])) == (0, 1)


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault.MESSAGE_DELETED, "message_not_found"),
        (Fault.EDIT_WINDOW_CLOSED, "edit_window_closed"),
        (Fault.CHANNEL_ARCHIVED, "is_inactive"),
        (Fault.TOKEN_REVOKED, "token_revoked"),
    ],
)
async def test_the_world_changes_just_before_an_update(
    slack: SlackServer, client: AsyncWebClient, fault: Fault, error: str
) -> None:
    await post(client)
    ts = slack.workspace.visible(CHANNEL)[0].ts
    slack.faults.add("chat.update", fault=fault)
    with pytest.raises(SlackApiError) as caught:
        await client.chat_update(channel=CHANNEL, ts=ts, text="t", blocks=make_card(2))
    assert caught.value.response["error"] == error


async def test_a_channel_can_become_shared(slack: SlackServer, client: AsyncWebClient) -> None:
    slack.faults.add("conversations.info", call=2, fault=Fault.CHANNEL_BECOMES_SHARED)
    before = await client.conversations_info(channel=CHANNEL)
    after = await client.conversations_info(channel=CHANNEL)
    assert not before["channel"]["is_ext_shared"]
    assert after["channel"]["is_ext_shared"]


async def test_trimmed_text_shows_in_the_echo(slack: SlackServer, client: AsyncWebClient) -> None:
    slack.faults.add(POST, fault=Fault.TEXT_TRIMMED)
    answer = await client.chat_postMessage(
        channel=CHANNEL, text="t", blocks=make_card(body="Dear Pat \n")
    )
    [text] = answer["message"]["blocks"][1]["elements"][0]["elements"]
    assert text["text"] == "Dear Pat"


async def test_a_fault_waits_for_its_call_number_and_its_predicate(
    slack: SlackServer, client: AsyncWebClient
) -> None:
    slack.faults.add(POST, call=2, fault=Fault.NOT_DELIVERED)
    slack.faults.add(POST, when=lambda a: a["text"] == "x", fault=Fault.RATE_LIMITED)
    await post(client)
    with pytest.raises(LOST):
        await post(client)
    await post(client)
    with pytest.raises(SlackApiError):
        await client.chat_postMessage(channel=CHANNEL, text="x")
    await client.chat_postMessage(channel=CHANNEL, text="x")
    assert len(slack.workspace.visible(CHANNEL)) == 3


def test_drawn_faults_repeat_with_their_seed() -> None:
    def drawn(seed: int) -> list[bool]:
        faults = Faults(seed)
        faults.add("*", fault=Fault.SLOW, probability=0.5, times=100)
        return [faults.strike("m", {}) is not None for _ in range(40)]

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)
    assert {True, False} == set(drawn(1))


async def test_leaving_the_server_releases_what_hangs(workspace: Workspace) -> None:
    async with SlackServer(workspace) as slack:
        hangs = slack.faults.add(POST, fault=Fault.HANGS_AFTER_COMMIT)
        waiting = asyncio.create_task(post(client_of(slack)))
        await hangs.fired.wait()
    await waiting
