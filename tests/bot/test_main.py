"""The web process as a process: it starts, works, hides its secrets, and ends when told to."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from bot.sandbox.faults import Fault
from bot.sandbox.resend_double import WEBHOOK_SECRET
from executor.domain.operation import OperationStatus
from tests.support.bot_harness import REVIEWER, Harness
from tests.support.policy_file import SANDBOX as POLICY


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def start(environ: dict[str, str]) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "bot",
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(Path.cwd()), **environ},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )


@pytest.fixture
async def h(database_url: str) -> AsyncIterator[Harness]:
    async with Harness(database_url, bot=False) as harness:
        yield harness


async def test_without_settings_it_says_everything_that_is_missing_and_does_not_start() -> None:
    process = await start({})
    output, _ = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 78
    for name in (b"SIGNOFF_POLICY", b"SLACK_BOT_TOKEN", b"SLACK_SIGNING_SECRET"):
        assert name in output
    assert b"Traceback" not in output


async def test_b195_at_the_loudest_log_level_no_secret_is_written_and_sigterm_ends_it(
    h: Harness, tmp_path: Path
) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text(POLICY)
    port = free_port()
    process = await start(
        {
            "SIGNOFF_POLICY": str(policy),
            "SLACK_BOT_TOKEN": h.workspace.bot_token,
            "SLACK_SIGNING_SECRET": h.workspace.signing_secret,
            "SLACK_API_URL": h.slack.api_url,
            "DATABASE_URL": h.database_url,
            "SIGNOFF_PORT": str(port),
            "SIGNOFF_LOG_LEVEL": "DEBUG",
            "SIGNOFF_RESEND_WEBHOOK_SECRET": WEBHOOK_SECRET,
            "SIGNOFF_POSTMARK_WEBHOOK_CREDENTIAL": "signoff:pass-by-postmark",
        }
    )
    reading = asyncio.create_task(process.communicate())
    try:
        url = f"http://127.0.0.1:{port}"
        async with aiohttp.ClientSession() as session:
            await h.until(lambda: _is_ready(session, url), bool, timeout=60)
            assert await _door(session, f"{url}/webhooks/resend", {}) == 400
            assert await _door(session, f"{url}/webhooks/postmark", {}) == 401
            known = aiohttp.encode_basic_auth("signoff", "pass-by-postmark")
            named = {"Authorization": known}
            assert await _door(session, f"{url}/webhooks/postmark", named) == 400
        h.workspace.connect(url)
        h.slack.faults.add("chat.postMessage", fault=Fault.ERROR_500_BEFORE_COMMIT)
        h.slack.faults.add("chat.update", fault=Fault.LOST_AFTER_COMMIT)
        await h.start_run("close 4101")
        card = await h.settled_card(timeout=40)
        await h.person(REVIEWER).click(card.channel, card.ts, "approve")
        await h.until_operation(OperationStatus.SUCCEEDED, timeout=40)
        await h.whispered(REVIEWER, "Recorded")
        process.send_signal(signal.SIGTERM)
        output, _ = await asyncio.wait_for(reading, 10)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0
    assert b"the bot has stopped" in output
    assert b"DEBUG" in output
    for secret in (
        h.workspace.bot_token.encode(),
        h.workspace.signing_secret.encode(),
        WEBHOOK_SECRET.encode(),
        b"pass-by-postmark",
        b"xoxb-",
        b"xapp-",
        b"Bearer",
        b"/response/",
        b"pat@cust.example",
        b"Hello Pat",
    ):
        assert secret not in output, secret


async def _door(session: aiohttp.ClientSession, url: str, headers: dict[str, str]) -> int:
    async with session.post(url, headers=headers, data=b"{}") as response:
        return response.status


async def _is_ready(session: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with session.get(f"{url}/readyz") as response:
            return response.status == 200
    except aiohttp.ClientError:
        return False
