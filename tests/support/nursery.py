"""Our programs without the time that importing takes: forks of a process that has imported them.

A fork is a process like any other: it has its own memory, sockets and number, and SIGKILL leaves
nothing of it. Only its code is there before it starts, which is most of the time that a start
takes. That programs also start from nothing is tried by the tests of ``signoff demo`` and ``up``.

The nursery is asked over a socket for one fork at a time. Each fork gets a pipe, into which the
nursery writes its number at the start and its exit code at the end. When the socket closes, which
the kernel sees to, the nursery kills what still runs and ends.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parents[2]
MODULES = ("bot", "executor")
_LONGEST_REQUEST = 65_536
_LOST = -signal.SIGKILL


@dataclass
class Fork:
    """One process that runs, as ``asyncio.subprocess.Process`` is one."""

    pid: int
    _ending: asyncio.Task[int]

    @property
    def returncode(self) -> int | None:
        """Its exit code, negative for a signal; ``None`` as long as it runs."""
        return self._ending.result() if self._ending.done() else None

    async def wait(self) -> int:
        """Wait for its end and return its exit code."""
        return await asyncio.shield(self._ending)

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill it."""
        self.send_signal(signal.SIGKILL)


@dataclass(frozen=True)
class Nursery:
    """The way to ask for forks."""

    _asking: socket.socket

    async def start(
        self, module: str, environ: Mapping[str, str], output: int | None = None
    ) -> Fork:
        """Start ``module`` with these settings alone; ``output`` takes what it prints."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader()
        receiving, reporting = os.pipe()
        await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(receiving, "rb")
        )
        try:
            request = json.dumps([module, dict(environ)]).encode()
            assert len(request) < _LONGEST_REQUEST
            socket.send_fds(self._asking, [request], [reporting, 2 if output is None else output])
        finally:
            os.close(reporting)
        pid = int(await reader.readline())
        return Fork(pid, asyncio.create_task(_end_of(reader), name=f"the end of {module}"))


async def _end_of(reader: asyncio.StreamReader) -> int:
    return int(await reader.readline() or _LOST)


@contextmanager
def running_nursery() -> Iterator[Nursery]:
    """Run a nursery as long as the block; nothing that it started outlives it."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, its:
        for end in (ours, its):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * _LONGEST_REQUEST)
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.nursery", str(its.fileno())],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            pass_fds=[its.fileno()],
        )
        its.close()
        try:
            yield Nursery(ours)
        finally:
            ours.close()
            process.wait()


def main() -> None:
    """Import our programs, then fork whenever asked until nobody can ask any more."""
    asked = socket.socket(fileno=int(sys.argv[1]))
    programs = {name: importlib.import_module(f"{name}.__main__") for name in MODULES}
    _read_what_all_of_them_read()
    # A fork shares what nobody writes to, and collecting garbage would write to all of it.
    gc.freeze()
    woken, waking = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(waking)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    reports: dict[int, int] = {}
    while True:
        ready, _, _ = select.select([asked.fileno(), woken], [], [])
        if woken in ready:
            os.read(woken, 512)
            _report_ends(reports)
        if asked.fileno() in ready:
            request, descriptors, _, _ = socket.recv_fds(asked, _LONGEST_REQUEST, 2)
            if not request:
                break
            module, environ = json.loads(request)
            if environ.get("SIGNOFF_MODEL"):
                _import_what_real_models_need()
            report, output = descriptors
            pid = os.fork()
            if pid == 0:
                of_the_nursery = (asked.detach(), woken, waking, report, *reports.values())
                _become(programs[module].main, environ, output, of_the_nursery)
            os.close(output)
            reports[pid] = report
            _say(report, pid)
    for pid in reports:
        os.kill(pid, signal.SIGKILL)


def _read_what_all_of_them_read() -> None:
    """Read the statements and the templates, which a process keeps from their first use on."""
    # Imported here, because whoever only asks for forks needs none of it.
    from bot.cards import CardPainter, card_environment
    from executor.engine.closure_email import ClosureEmails
    from executor.store.statements import all_statements

    all_statements()
    CardPainter(card_environment())
    ClosureEmails()


def _import_what_real_models_need() -> None:
    """Import that once, when the first fork is wanted that asks a real model; it takes long."""
    for name in ("anthropic_messages", "openai_chat", "prices", "remote"):
        importlib.import_module(f"executor.adapters.models.{name}")
    # What each of them imports and reads with its first request.
    for name in ("anyio._backends._asyncio", "anthropic.resources", "openai.resources"):
        importlib.import_module(name)
    importlib.import_module("genai_prices.data_snapshot").get_snapshot()


def _report_ends(reports: dict[int, int]) -> None:
    while reports:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        report = reports.pop(pid)
        _say(report, os.waitstatus_to_exitcode(status))
        os.close(report)


def _say(report: int, number: int) -> None:
    # Who asked may be gone meanwhile.
    with suppress(BrokenPipeError):
        os.write(report, b"%d\n" % number)


def _become(
    program: Callable[[], int], environ: Mapping[str, str], output: int, not_its: Iterable[int]
) -> NoReturn:
    """Be the program as if started by itself: its settings, its output, nothing of the nursery."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for descriptor in not_its:
            os.close(descriptor)
        os.setsid()
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.close(output)
        os.environ.clear()
        os.environ.update(environ)
        code = program()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
