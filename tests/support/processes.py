"""Real processes of Signoff, started as an operator starts them and killed as nobody should."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from tests.support.nursery import Fork, Nursery

READY = (b" is ready", b" listens on ")
"""What the executor and the bot say in their logs when they work."""


@dataclass(frozen=True, slots=True)
class Kill:
    """One SIGKILL: which process, and when, by this host's clock."""

    module: str
    pid: int
    at: datetime


@dataclass
class Child:
    """One of our programs; ``log`` is appended to by all its lives."""

    nursery: Nursery
    module: str
    environment: Mapping[str, str]
    log: Path
    process: Fork | None = None
    kills: list[Kill] = field(default_factory=list)
    _born_at: int = 0

    async def start(self) -> None:
        """Start it, with nothing of this process's own settings."""
        self._born_at = self.log.stat().st_size if self.log.exists() else 0
        inherited = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "TMPDIR")}
        with self.log.open("ab") as output:
            self.process = await self.nursery.start(
                self.module, {**inherited, **self.environment}, output.fileno()
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

    async def until_ready(self, seconds: float = 60.0) -> None:
        """Wait until this life of the process has said in its log that it is ready."""
        try:
            async with asyncio.timeout(seconds):
                # There is no event to wait for in another process's log.
                while not any(word in self.log.read_bytes()[self._born_at :] for word in READY):
                    assert self.process is not None
                    assert self.process.returncode is None, f"it ended:\n{self.tail()}"
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise AssertionError(f"{self.module} is not ready:\n{self.tail()}") from None

    def tail(self) -> str:
        """The last lines of the log, for a failed test."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-40:])


def free_port() -> int:
    """Find a port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
