"""``signoff up``: both programs as children of one process, against a Slack over HTTP."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import psutil
import pytest

from bot.sandbox import seed
from bot.sandbox.demo_policy import demo_policy
from bot.sandbox.mailbox import Mailbox
from bot.sandbox.slack_server import SlackServer

ROOT = Path(__file__).resolve().parents[2]


async def start(**environ: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "bot.cli",
        "up",
        cwd=ROOT,
        env={**os.environ, **environ},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )


async def said(process: asyncio.subprocess.Process, *wanted: bytes) -> None:
    """Wait until everything that is wanted was printed, in any order."""
    assert process.stderr is not None
    left = set(wanted)
    while left:
        line = await process.stderr.readline()
        assert line, f"it ended without saying {left}"
        left = {words for words in left if words not in line}


def environ(
    slack: SlackServer, mailbox: Mailbox, folder: Path, database_url: str
) -> dict[str, str]:
    (folder / "policy.toml").write_text(demo_policy(), encoding="utf-8")
    return {
        "DATABASE_URL": database_url,
        "SIGNOFF_POLICY": str(folder / "policy.toml"),
        "SIGNOFF_PORT": "0",
        "SLACK_API_URL": slack.api_url,
        "SLACK_BOT_TOKEN": seed.BOT_TOKEN,
        "SLACK_SIGNING_SECRET": seed.SIGNING_SECRET,
        "SMTP_URL": mailbox.url,
    }


@pytest.mark.timeout(180)
async def test_both_programs_run_until_they_are_told_to_stop(
    tmp_path: Path, database_url: str
) -> None:
    async with SlackServer() as slack, Mailbox() as mailbox:
        process = await start(**environ(slack, mailbox, tmp_path, database_url))
        try:
            async with asyncio.timeout(60):
                await said(process, b"the bot listens on", b"is ready")
            children = psutil.Process(process.pid).children()
            assert len(children) == 2
            process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(60):
                _, printed = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    assert process.returncode == 0, printed
    assert not any(child.is_running() for child in children)


@pytest.mark.timeout(180)
async def test_a_database_that_is_behind_stops_both_with_the_remedy(
    tmp_path: Path, empty_database_url: str
) -> None:
    async with SlackServer() as slack, Mailbox() as mailbox:
        process = await start(**environ(slack, mailbox, tmp_path, empty_database_url))
        async with asyncio.timeout(90):
            _, printed = await process.communicate()
    assert process.returncode == 78
    assert b"signoff migrate" in printed
