"""Real processes of Signoff, started as an operator starts them and killed as nobody should."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import aiohttp


@dataclass(frozen=True, slots=True)
class Kill:
    """One SIGKILL: which process, and when, by this host's clock."""

    module: str
    pid: int
    at: datetime


@dataclass
class Child:
    """One process of ``python -m module``; ``log`` is appended to by all its lives."""

    module: str
    environment: Mapping[str, str]
    log: Path
    process: asyncio.subprocess.Process | None = None
    kills: list[Kill] = field(default_factory=list)

    async def start(self) -> None:
        """Start it, with nothing of this process's own settings."""
        inherited = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "TMPDIR")}
        with self.log.open("ab") as output:
            self.process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                self.module,
                env={**inherited, **self.environment},
                stdout=output,
                stderr=output,
            )

    async def kill(self) -> None:
        """Kill it with SIGKILL and remember when."""
        assert self.process is not None
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGKILL)
            self.kills.append(Kill(self.module, self.process.pid, datetime.now(UTC)))
        await self.process.wait()

    async def stop(self) -> int:
        """End it as a deploy does and return its exit code."""
        assert self.process is not None
        if self.process.returncode is None:
            self.process.terminate()
        try:
            async with asyncio.timeout(30):
                return await self.process.wait()
        except TimeoutError:
            self.process.kill()
            raise AssertionError(f"{self.module} did not stop:\n{self.tail()}") from None

    def tail(self) -> str:
        """The last lines of the log, for a failed test."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-40:])


def free_port() -> int:
    """Find a port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def until_ready(url: str, child: Child, seconds: float = 60.0) -> None:
    """Wait until a bot answers on ``/readyz`` with 200."""
    try:
        async with asyncio.timeout(seconds), aiohttp.ClientSession() as session:
            while True:
                try:
                    async with session.get(f"{url}/readyz") as answer:
                        if answer.status == 200:
                            return
                except aiohttp.ClientError:
                    # It does not listen yet; there is no event to wait for in another process.
                    pass
                await asyncio.sleep(0.1)
    except TimeoutError:
        raise AssertionError(f"{url} did not become ready:\n{child.tail()}") from None
