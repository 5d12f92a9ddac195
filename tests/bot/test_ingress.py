"""The door over HTTP: what it takes on, what it counts, and how it tells what is wrong with it.

What it turns away is in ``test_request_abuse.py``.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from datetime import timedelta

import aiohttp
import pytest

from bot.sandbox.seed import SIGNING_SECRET
from bot.sandbox.signing import signature_headers
from tests.support.bot_harness import APPROVALS, REQUESTER, Harness, RunningBot, ShiftedClock
from tests.support.tcp_proxy import tcp_proxy

FORM = "application/x-www-form-urlencoded"
JSON = "application/json"


@pytest.fixture
async def h(database_url: str) -> AsyncIterator[Harness]:
    async with Harness(database_url, worker=False) as harness:
        yield harness


async def post(
    bot: RunningBot,
    body: bytes,
    *,
    content_type: str = FORM,
    secret: str = SIGNING_SECRET,
    path: str = "/slack/events",
    headers: dict[str, str] | None = None,
) -> tuple[int, str]:
    """Send signed bytes and return status and text."""
    signed = signature_headers(secret, int(time.time()), body)
    sent = {"Content-Type": content_type, **signed, **(headers or {})}
    async with (
        aiohttp.ClientSession() as session,
        session.post(bot.url + path, data=body, headers=sent) as response,
    ):
        return response.status, await response.text()


async def ready(bot: RunningBot) -> tuple[int, dict[str, object]]:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{bot.url}/readyz") as response,
    ):
        return response.status, await response.json()


def event(event_id: str = "Ev1", team: str = "TSIGNOFF") -> bytes:
    return json.dumps(
        {
            "type": "event_callback",
            "team_id": team,
            "event_id": event_id,
            "event": {"type": "message", "text": "hello\x00"},
        }
    ).encode()


async def test_nothing_is_parsed_before_it_is_verified(h: Harness) -> None:
    [bot] = h.bots
    for body in (b"{", b"payload=garbage", b"\xff", b"ssl_check=1", b""):
        assert (await post(bot, body, secret="wrong"))[0] == 401
    assert bot.bot.counts.bad_signature == 5
    assert bot.bot.counts.malformed_body == 0


async def test_url_verification_is_answered_only_to_slack(h: Harness) -> None:
    body = json.dumps({"type": "url_verification", "challenge": "c-123"}).encode()
    assert await post(h.bots[0], body, content_type=JSON) == (200, "c-123")
    assert (await post(h.bots[0], body, content_type=JSON, secret="wrong"))[0] == 401


async def test_b010_a_clock_that_drifted_is_named_and_not_taken_for_a_wrong_secret(
    h: Harness,
) -> None:
    late = await h.start_bot(clock=ShiftedClock(timedelta(minutes=-10)))
    delivery = await h.person(REQUESTER).slash(APPROVALS, "/signoff", "run close 4101")
    assert delivery.status == 401
    assert await h.numbers() == set()
    assert (late.bot.counts.stale_timestamp, late.bot.counts.bad_signature) == (1, 0)
    await post(late, b"payload=%7B%7D", secret="wrong")
    status, report = await ready(late)
    assert status == 503
    assert "clock_skew" in report["problems"]  # type: ignore[operator]
    assert report["clock_skew_seconds"] == pytest.approx(-600, abs=2)
    ingress = report["ingress"]
    assert isinstance(ingress, dict)
    assert (ingress["stale_timestamp"], ingress["bad_signature"]) == (1, 1)


async def test_a_healthy_bot_is_ready(h: Harness) -> None:
    await h.bots[0].listener.until_listening()
    status, report = await ready(h.bots[0])
    assert (status, report["problems"]) == (200, [])
    assert (report["cards_behind"], report["cards_unseen"]) == (0, 0)


async def test_without_its_database_a_bot_lives_and_is_not_ready(h: Harness) -> None:
    async with tcp_proxy(h.database_url) as proxy:
        bot = await h.start_bot(database_url=proxy.url)
        proxy.refuse()
        status, report = await ready(bot)
        assert status == 503
        assert "database_away" in report["problems"]  # type: ignore[operator]
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{bot.url}/healthz") as response,
        ):
            assert response.status == 200
        proxy.pass_on()
        await bot.stop()


async def test_an_event_is_stored_once_before_it_is_acknowledged(h: Harness) -> None:
    [bot] = h.bots
    await bot.stop_loops()
    for _ in range(2):
        assert await post(bot, event(), content_type=JSON) == (200, "")
    assert await h.value("SELECT count(*) FROM inbox") == 1
    assert await post(bot, event("Ev2", team="TOTHER"), content_type=JSON) == (200, "")
    assert await h.value("SELECT count(*) FROM inbox") == 1


async def test_an_event_that_cannot_be_stored_is_not_acknowledged(h: Harness) -> None:
    async with tcp_proxy(h.database_url) as proxy:
        bot = await h.start_bot(database_url=proxy.url)
        proxy.refuse()
        assert await post(bot, event(), content_type=JSON) == (503, "unavailable")
        proxy.pass_on()
        assert await post(bot, event(), content_type=JSON) == (200, "")
        await bot.stop()
    assert await h.value("SELECT count(*) FROM inbox") == 1
