"""The real ``signoff demo`` as a process of its own, and everything that it leaves behind."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import psutil

ROOT = Path(__file__).resolve().parents[2]
_ADDRESS = re.compile(rb"(http://127\.0\.0\.1:\d+)")


@dataclass(frozen=True)
class Outcome:
    """How a demo without a person ended."""

    code: int
    report: Any
    errors: str


async def demo_once(*arguments: str, temporary: Path, timeout_seconds: float = 110.0) -> Outcome:
    """Play one story through the real command; its temporary home is below ``temporary``."""
    process = await _demo(
        "--once", "--json", "--timeout", str(timeout_seconds), *arguments, TMPDIR=str(temporary)
    )
    try:
        printed, errors = await process.communicate()
    except BaseException:
        process.terminate()
        await process.wait()
        raise
    assert process.returncode is not None
    report = json.loads(printed) if printed.strip() else None
    return Outcome(process.returncode, report, errors.decode(errors="replace"))


@dataclass(frozen=True)
class OpenDemo:
    """A demo that waits for a newcomer's hands."""

    process: asyncio.subprocess.Process
    url: str
    session: aiohttp.ClientSession

    async def get(self, path: str) -> Any:
        async with self.session.get(f"{self.url}/sandbox/{path}") as answer:
            return await answer.json()

    async def act(self, path: str, **body: object) -> Any:
        async with self.session.post(f"{self.url}/sandbox/{path}", json=body) as answer:
            assert answer.status == 200, await answer.text()
            return await answer.json()

    async def stop(self, number: signal.Signals = signal.SIGINT) -> int:
        """End it as a person does, and return its exit code."""
        if self.process.returncode is None:
            self.process.send_signal(number)
        return await self.process.wait()


@asynccontextmanager
async def open_demo(home: Path, *, seconds: float = 60.0) -> AsyncIterator[OpenDemo]:
    """Start the interactive demo in ``home`` and yield it once it says where it is.

    ``seconds`` bound everything, the block included.
    """
    process = await _demo("--no-browser", "--home", str(home))
    assert process.stdout is not None
    assert process.stderr is not None
    errors = asyncio.create_task(process.stderr.read())
    try:
        async with asyncio.timeout(seconds), aiohttp.ClientSession() as session:
            url = await _address(process.stdout)
            assert url is not None, f"it ended before it said where it is: {await errors!r}"
            yield OpenDemo(process, url, session)
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGINT)
            await process.wait()
        # Shown beside a failed test only: what the processes complained of.
        print((await errors).decode(errors="replace"), file=sys.stderr)


async def _address(printed: asyncio.StreamReader) -> str | None:
    while line := await printed.readline():
        if found := _ADDRESS.search(line):
            return found.group(1).decode()
    return None


async def _demo(*arguments: str, **environ: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "bot.cli",
        "demo",
        *arguments,
        cwd=ROOT,
        env={**os.environ, **environ},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


def processes_in(folder: Path) -> list[psutil.Process]:
    """Find the processes that work for a home: by their working folder or their SIGNOFF_HOME."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.status() == psutil.STATUS_ZOMBIE:
                continue
            home = process.environ().get("SIGNOFF_HOME", "")
            places = (Path(process.cwd()), Path(home) if home else None)
        except (psutil.Error, OSError):
            continue
        if any(place is not None and place.is_relative_to(folder) for place in places):
            found.append(process)
    return found
