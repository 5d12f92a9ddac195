"""A workspace on a clock that stands still, its server, a client of it, and a bot at its end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import aiohttp
import pytest
from slack_sdk.web.async_client import AsyncWebClient

from bot.sandbox.clock import VirtualClock
from bot.sandbox.model import Json
from bot.sandbox.slack_server import SlackServer
from bot.sandbox.workspace import Workspace
from tests.bot.sandbox.bot_double import BotDouble, running_bot

CHANNEL = "C0APPROVALS"


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def workspace(clock: VirtualClock) -> Workspace:
    return Workspace.seeded(clock=clock, answer_seconds=0.3)


@pytest.fixture
async def bot() -> AsyncIterator[BotDouble]:
    async with running_bot() as double:
        yield double


@pytest.fixture
async def slack(workspace: Workspace, bot: BotDouble) -> AsyncIterator[SlackServer]:
    async with SlackServer(workspace, bot_url=bot.url) as server:
        yield server


@pytest.fixture
def client(slack: SlackServer) -> AsyncWebClient:
    return client_of(slack)


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


def client_of(slack: SlackServer, token: str | None = None, timeout: int = 5) -> AsyncWebClient:
    return AsyncWebClient(
        token=slack.workspace.bot_token if token is None else token,
        base_url=slack.api_url,
        retry_handlers=[],
        timeout=timeout,
    )


@pytest.fixture
def card() -> Callable[..., list[Json]]:
    return make_card


def make_card(revision: int = 1, body: str = "Dear Pat") -> list[Json]:
    """Make a small approval card with one button."""
    return [
        {"type": "header", "text": plain("Close ticket 4101")},
        {
            "type": "rich_text",
            "block_id": f"body.{revision}",
            "elements": [
                {"type": "rich_text_preformatted", "elements": [{"type": "text", "text": body}]}
            ],
        },
        {
            "type": "actions",
            "block_id": f"decide.{revision}",
            "elements": [
                {
                    "type": "button",
                    "action_id": "approve",
                    "text": plain("Approve"),
                    "value": f"op:{revision}",
                }
            ],
        },
    ]


def plain(text: str) -> Json:
    return {"type": "plain_text", "text": text, "emoji": False}


def modal(**more: object) -> Json:
    return {
        "type": "modal",
        "title": plain("Review"),
        "submit": plain("Approve"),
        "close": plain("Back"),
        "blocks": [
            {
                "type": "input",
                "block_id": "reason",
                "label": plain("Reason"),
                "element": {"type": "plain_text_input", "action_id": "text"},
            }
        ],
        **more,
    }
