"""A server that is a command: its process, and the lines to and from it.

The client's own transport for this keeps lines of any length, logs what it cannot parse, and gives
every server a part of the worker's environment. Here a line is bounded, nothing that a server says
is logged but the end of its complaints after a failure, and the process ends with the worker.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TypeAlias

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from executor.adapters.tools import leash
from executor.adapters.tools.departure import DEPARTURE

_log = logging.getLogger(__name__)

Heard: TypeAlias = SessionMessage | Exception

LONGEST_LINE = 4 << 20
"""Octets of one message of a server; a longer one ends the connection."""

PASSED_ON = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR")
"""What every command gets of the worker's environment, beside the variables that it is given."""

GRACE_SECONDS = 2.0
"""How long a server may take to end by itself, and then again on SIGTERM."""

_LAST_WORDS_SECONDS = 1.0
_LAST_WORDS = 2_000

_MOST_WAIT = 100
"""Messages that may wait for a server to read; one that asks without ever reading is given up."""


@asynccontextmanager
async def piped(
    command: Sequence[str],
    given: Mapping[str, str],
    ended: Callable[[], None],
    hide: Callable[[str], str],
) -> AsyncGenerator[tuple[MemoryObjectReceiveStream[Heard], _Lines], None]:
    """Start a command and talk to it; ``ended`` is called when it says no more.

    ``hide`` takes secrets out of the last words of a server that failed, which are logged.
    """
    ours, theirs = os.pipe()
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", str(Path(leash.__file__)), str(ours), *command),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**{n: os.environ[n] for n in PASSED_ON if n in os.environ}, **given},
            start_new_session=True,
            limit=LONGEST_LINE,
            pass_fds=(ours,),
        )
    except BaseException:
        os.close(theirs)
        raise
    finally:
        os.close(ours)
    heard, read = anyio.create_memory_object_stream[Heard](16)
    words = _LastWords()
    listening = asyncio.create_task(_listen(process, heard, ended))
    collecting = asyncio.create_task(words.collect(process))
    try:
        async with read:
            yield read, _Lines(process)
    finally:
        try:
            await _stop(process)
        finally:
            os.close(theirs)
            await _let_go(process, listening, collecting)
        if process.returncode and words.text:
            told = hide(words.text)[-_LAST_WORDS:]
            _log.warning("%s ended with %s: %r", command[0], process.returncode, told)


async def _listen(
    process: asyncio.subprocess.Process,
    heard: MemoryObjectSendStream[Heard],
    ended: Callable[[], None],
) -> None:
    """Pass on every line that is a message; what is none is noise, as of a server that prints."""
    assert process.stdout is not None
    async with heard:
        try:
            while line := await process.stdout.readuntil(b"\n"):
                with suppress(ValueError):
                    message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
                    await heard.send(SessionMessage(message))
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
            # It ended, or will not come to an end of what it says.
            pass
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass
        finally:
            ended()


class _Lines:
    """Writes messages to a server, one a line."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        self._stdin = process.stdin
        self._turn = asyncio.Lock()
        self._waiting = 0

    async def send(self, item: SessionMessage, /) -> None:
        """Write one message; raises ``BrokenResourceError`` where nobody reads any more."""
        if self._waiting >= _MOST_WAIT:
            raise anyio.BrokenResourceError
        self._waiting += 1
        try:
            await self._write(item)
        finally:
            self._waiting -= 1

    async def _write(self, item: SessionMessage) -> None:
        line = item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
        async with self._turn:
            departure = DEPARTURE.get()
            if departure is not None:
                departure.begun = True
            try:
                self._stdin.write(line)
                await self._stdin.drain()
            except (OSError, RuntimeError) as error:
                raise anyio.BrokenResourceError from error
            if departure is not None:
                departure.left = True

    async def aclose(self) -> None:
        """Close the server's input."""
        self._stdin.close()

    async def __aenter__(self) -> _Lines:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        await self.aclose()


class _LastWords:
    """The end of what a server says of itself; the rest is read and forgotten."""

    def __init__(self) -> None:
        self._octets = b""

    @property
    def text(self) -> str:
        """The words, as text."""
        return self._octets.decode(errors="replace").strip()

    async def collect(self, process: asyncio.subprocess.Process) -> None:
        """Read until the server has said everything."""
        assert process.stderr is not None
        while chunk := await process.stderr.read(4_096):
            # Twice of it, so that a secret is whole that is hidden later, and not cut before.
            self._octets = (self._octets + chunk)[-2 * _LAST_WORDS :]


async def _stop(process: asyncio.subprocess.Process) -> None:
    """Let the process end, or end it and its children; nothing of it is left afterwards."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        for number in (signal.SIGTERM, signal.SIGKILL, None):
            if process.returncode is None:
                # It waits for the pipes as well, which others may hold.
                with suppress(TimeoutError):
                    async with asyncio.timeout(GRACE_SECONDS):
                        await process.wait()
            if number is not None:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, number)
    except asyncio.CancelledError:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        raise


async def _let_go(
    process: asyncio.subprocess.Process, listening: asyncio.Task[None], hearing: asyncio.Task[None]
) -> None:
    """Hear the last words of an ended process, and close what is left of its pipes.

    Somebody whom it has left behind may hold their other ends for as long as he likes.
    """
    listening.cancel()
    await asyncio.wait([hearing], timeout=_LAST_WORDS_SECONDS)
    hearing.cancel()
    await asyncio.gather(listening, hearing, return_exceptions=True)
    process._transport.close()  # type: ignore[attr-defined]
