"""What a failed call proves, and nothing more than it proves."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace

import aiohttp
import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.sandbox.faults import Fault
from bot.sandbox.slack_server import SlackServer
from bot.slack_answers import (
    LONGEST_WAIT_SECONDS,
    LOST_CALL,
    SHARED,
    Proof,
    Scope,
    Trouble,
    trouble,
)


@pytest.fixture
async def slack() -> AsyncIterator[SlackServer]:
    async with SlackServer() as server:
        yield server


async def failed(slack: SlackServer, channel: str = "C0APPROVALS", timeout: int = 2) -> Trouble:
    client = AsyncWebClient(
        token=slack.workspace.bot_token,
        base_url=slack.api_url,
        retry_handlers=[],
        timeout=timeout,
    )
    with pytest.raises(LOST_CALL) as caught:
        await client.chat_postMessage(channel=channel, text="hello")
    return trouble(caught.value)


@pytest.mark.parametrize(
    ("fault", "proof"),
    [
        (Fault.NOT_DELIVERED, Proof.UNKNOWN),
        (Fault.LOST_AFTER_COMMIT, Proof.UNKNOWN),
        (Fault.HANGS_AFTER_COMMIT, Proof.UNKNOWN),
        (Fault.TRUNCATED_BODY, Proof.UNKNOWN),
        (Fault.ERROR_500_BEFORE_COMMIT, Proof.UNKNOWN),
        (Fault.ERROR_500_AFTER_COMMIT, Proof.UNKNOWN),
        (Fault.FATAL_ERROR_AFTER_COMMIT, Proof.UNKNOWN),
        (Fault.INTERNAL_ERROR_BEFORE_COMMIT, Proof.UNKNOWN),
        (Fault.TOKEN_REVOKED, Proof.REFUSED),
        (Fault.CHANNEL_ARCHIVED, Proof.REFUSED),
    ],
)
async def test_each_failure_proves_so_much(slack: SlackServer, fault: Fault, proof: Proof) -> None:
    slack.faults.add("chat.postMessage", fault=fault)
    assert (await failed(slack)).proof is proof


async def test_a_rate_limit_says_how_long_to_wait(slack: SlackServer) -> None:
    slack.faults.add("chat.postMessage", fault=Fault.RATE_LIMITED, seconds=17)
    assert await failed(slack) == Trouble(Proof.RATE_LIMITED, "ratelimited", 17.0)


async def test_a_refusal_carries_slacks_own_code_and_no_content(slack: SlackServer) -> None:
    assert await failed(slack, "C0NOWHERE") == Trouble(Proof.REFUSED, "channel_not_found")


async def test_what_never_left_is_known_not_to_have_arrived() -> None:
    client = AsyncWebClient(
        token="xoxb-1", base_url="http://127.0.0.1:9/api/", retry_handlers=[], timeout=2
    )
    with pytest.raises(aiohttp.ClientConnectorError) as caught:
        await client.auth_test()
    assert trouble(caught.value).proof is Proof.NOT_SENT


async def test_slacks_wait_is_obeyed_up_to_an_hour(slack: SlackServer) -> None:
    slack.faults.add("chat.postMessage", fault=Fault.RATE_LIMITED, seconds=900)
    assert (await failed(slack)).retry_after_seconds == 900
    slack.faults.add("chat.postMessage", fault=Fault.RATE_LIMITED, seconds=1_000_000)
    assert (await failed(slack)).retry_after_seconds == LONGEST_WAIT_SECONDS


@pytest.mark.parametrize(
    ("code", "scope"),
    [
        ("is_archived", Scope.CHANNEL),
        ("not_in_channel", Scope.CHANNEL),
        ("restricted_action_read_only_channel", Scope.CHANNEL),
        (SHARED, Scope.CHANNEL),
        ("token_revoked", Scope.WORKSPACE),
        ("account_inactive", Scope.WORKSPACE),
        ("message_limit_exceeded", Scope.WORKSPACE),
        ("missing_scope", Scope.WORKSPACE),
        ("invalid_blocks", Scope.MESSAGE),
        ("message_not_found", Scope.MESSAGE),
        ("something_new", Scope.MESSAGE),
    ],
)
def test_a_refusal_is_about_a_message_its_channel_or_the_whole_workspace(
    code: str, scope: Scope
) -> None:
    assert Trouble(Proof.REFUSED, code).scope is scope
    assert Trouble(Proof.UNKNOWN, code).scope is Scope.MESSAGE


def test_what_does_not_look_like_a_code_is_repeated_nowhere() -> None:
    answer = SimpleNamespace(status_code=200, data={"error": "<!channel> look"}, headers={})
    error = SlackApiError("x", answer)  # type: ignore[no-untyped-call]
    assert trouble(error) == Trouble(Proof.REFUSED, "unreadable_error")


def test_only_an_update_that_can_never_succeed_loses_its_message() -> None:
    gone: Callable[[str], bool] = lambda code: Trouble(Proof.REFUSED, code).message_is_gone  # noqa: E731
    assert gone("message_not_found")
    assert gone("edit_window_closed")
    assert gone("is_inactive")
    assert gone("block_mismatch")
    assert not gone("invalid_blocks")
    assert not gone("token_revoked")
    assert not Trouble(Proof.UNKNOWN, "message_not_found").message_is_gone
