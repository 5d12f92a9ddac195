"""Child processes of ours: started on a leash, started again when they crash, stopped in order.

A child that cannot start (its exit code says so) or that crashes again and again is given up, with
its last words. None outlives its starter; see ``bot.leash``. They are in sessions of their own, so
that Ctrl-C reaches the starter alone and it decides in which order things end.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Protocol, TypeAlias

CANNOT_START = 78
"""EX_CONFIG of sysexits(3): starting again without changing something does not help."""

STOP_SECONDS = 35.0
MOST_CRASHES = 5
CRASHES_WITHIN_SECONDS = 60.0

_TAIL_BYTES = 4_000
_LONGEST_DELAY_SECONDS = 5.0


class ChildGivenUp(Exception):
    """A child ended for good; ``code`` is its exit code, negative for a signal."""

    def __init__(self, name: str, code: int, last_words: str) -> None:
        words = f"; its last words:\n{last_words}" if last_words else ""
        super().__init__(f"the {name} ended ({_spell(code)}) and was not started again{words}")
        self.name = name
        self.code = code


class Running(Protocol):
    """A process that was started; ``returncode`` is ``None`` until it has ended."""

    @property
    def returncode(self) -> int | None: ...

    async def wait(self) -> int: ...

    def send_signal(self, number: int, /) -> None: ...


Launch: TypeAlias = "Callable[[str, Mapping[str, str], int | None], Awaitable[Running]]"
"""Starts a module with an environment; it prints to the file descriptor, or where we do."""


async def leashed(module: str, environ: Mapping[str, str], output: int | None) -> Running:
    """Start a module as a process of its own that ends with us."""
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-m",
        "bot.leash",
        module,
        env=environ,
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=output,
        start_new_session=True,
    )


class Child:
    """One program of ours (``python -m`` something) and everything that becomes of it.

    ``log`` collects what it prints; without one it prints where we do. ``killed_at`` names the
    failpoints at which it was killed since ``start``, in order.
    """

    def __init__(
        self,
        name: str,
        module: str,
        environ: Mapping[str, str],
        log: Path | None = None,
        *,
        launch: Launch = leashed,
    ) -> None:
        self.name = name
        self.killed_at: list[str] = []
        self.starts = 0
        self._module = module
        self._environ = _importable(environ)
        self._log = log
        self._launch = launch
        self._armed: deque[str] = deque()
        self._failpoint: str | None = None
        self._process: Running | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()
        self._changed = asyncio.Condition()
        self._crashes: deque[float] = deque(maxlen=MOST_CRASHES)
        self.given_up: ChildGivenUp | None = None

    @property
    def running(self) -> bool:
        """Whether the program runs now, as far as is known."""
        return self._process is not None and self._process.returncode is None

    async def start(self, *failpoints: str) -> None:
        """Start the program and keep it running until ``stop``.

        With ``failpoints`` it is killed at the first of them, started again with the next, and so
        on; after the last it runs without one.
        """
        assert self._keeper is None, f"the {self.name} is started already"
        self._stopping.clear()
        self.killed_at = []
        self._armed.extend(failpoints)
        await self._spawn()
        self._keeper = asyncio.create_task(self._keep(), name=f"keep the {self.name}")

    async def stop(self) -> None:
        """Stop the program and wait for its end; kill it if it does not end in time."""
        if self._keeper is None:
            return
        self._stopping.set()
        keeper, self._keeper = self._keeper, None
        self._signal(signal.SIGTERM)
        _, late = await asyncio.wait({keeper}, timeout=STOP_SECONDS)
        if late:
            self._signal(signal.SIGKILL)
            await asyncio.wait({keeper})
        keeper.result()

    async def wait_for(self, predicate: Callable[[Child], bool]) -> None:
        """Wait until ``predicate`` holds, looking again whenever the program starts or ends."""
        async with self._changed:
            await self._changed.wait_for(lambda: predicate(self))

    def last_words(self) -> str:
        """Return the end of what the program has printed."""
        if self._log is None or not self._log.exists():
            return ""
        with self._log.open("rb") as log:
            log.seek(max(0, self._log.stat().st_size - _TAIL_BYTES))
            return log.read().decode(errors="replace").strip()

    async def _keep(self) -> None:
        while True:
            assert self._process is not None
            code = await self._process.wait()
            if self._stopping.is_set():
                return
            if code == -signal.SIGKILL and self._failpoint is not None:
                self.killed_at.append(self._failpoint)
            elif not await self._may_start_again(code):
                self.given_up = ChildGivenUp(self.name, code, self.last_words())
                await self._tell()
                return
            await self._tell()
            if self._stopping.is_set():
                return
            await self._spawn()
            if self._stopping.is_set():
                # Asked to stop while it was being started.
                self._signal(signal.SIGTERM)

    async def _may_start_again(self, code: int) -> bool:
        """Wait as long as is wise after a crash; ``False`` when another start is not."""
        now = asyncio.get_running_loop().time()
        often = len(self._crashes) == MOST_CRASHES
        if code == CANNOT_START or (often and now - self._crashes[0] < CRASHES_WITHIN_SECONDS):
            return False
        delay = min(0.1 * 2 ** len(self._crashes), _LONGEST_DELAY_SECONDS)
        self._crashes.append(now)
        try:
            async with asyncio.timeout(delay):
                await self._stopping.wait()
        except TimeoutError:
            pass
        return True

    async def _spawn(self) -> None:
        self._failpoint = self._armed.popleft() if self._armed else None
        environ = dict(self._environ)
        if self._failpoint is not None:
            environ["SIGNOFF_FAILPOINT"] = self._failpoint
        output = (
            None
            if self._log is None
            else os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        )
        try:
            self._process = await self._launch(self._module, environ, output)
        finally:
            if output is not None:
                os.close(output)
        self.starts += 1
        await self._tell()

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            try:
                self._process.send_signal(number)
            except ProcessLookupError:
                return


def _importable(environ: Mapping[str, str]) -> dict[str, str]:
    """Let the child import what we import, and nothing that merely lies in its working folder."""
    root = str(Path(__file__).resolve().parent.parent)
    path = os.pathsep.join(filter(None, (root, environ.get("PYTHONPATH"))))
    return {**environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"}


def _spell(code: int) -> str:
    if code < 0:
        return f"killed by {signal.Signals(-code).name}"
    return f"exit code {code}"
