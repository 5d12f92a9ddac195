"""A worker's process that a test freezes and wakes, and an office that goes on meanwhile."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.doubt import Doubt

ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 20.0


@dataclass
class FreezableWorker:
    """One process of ``tests.support.freezable_worker``."""

    process: asyncio.subprocess.Process

    @classmethod
    @asynccontextmanager
    async def running(cls, environment: Mapping[str, str]) -> AsyncIterator[FreezableWorker]:
        """Start the process with these settings alone; it is killed in the end, also if frozen."""
        inherited = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "TMPDIR")}
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.support.freezable_worker",
            cwd=ROOT,
            env={**inherited, **environment},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        try:
            yield cls(process)
        finally:
            process.kill()
            await process.wait()

    async def work_until_frozen(self, points: Mapping[str, tuple[str, Collection[str]]]) -> None:
        """Let it work until it has stopped itself, with each operation at its point.

        ``points`` names for each operation, or for ``"claim"`` itself, the point and the checks
        that it is to do without.
        """
        assert self.process.stdin is not None
        told = {name: [point, list(without)] for name, (point, without) in points.items()}
        self.process.stdin.write(json.dumps(told).encode() + b"\n")
        await self.process.stdin.drain()
        # Waits for the stop itself; should the process end instead, there is no such child.
        async with asyncio.timeout(PATIENCE_SECONDS):
            await asyncio.to_thread(os.waitid, os.P_PID, self.process.pid, os.WSTOPPED)

    async def wake(self) -> Counter[str]:
        """Let it go on with SIGCONT to its end; count what it then asked to send, by operation."""
        assert self.process.stdout is not None
        self.process.send_signal(signal.SIGCONT)
        async with asyncio.timeout(PATIENCE_SECONDS):
            line = await self.process.stdout.readline()
        return Counter(json.loads(line)["sent"])


@dataclass
class MovedTogether(Doubt):
    """A ``Doubt`` whose time is also that of the frozen process; ``clock_file`` tells it."""

    clock_file: Path = field(default=Path())

    async def pass_time(self, seconds: float) -> None:
        """Move the database's clock, the double's and the frozen process's."""
        await super().pass_time(seconds)
        self.clock_file.write_text(str(self.seconds))
