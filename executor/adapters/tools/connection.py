"""One session with a server, kept by a task of its own until it ends or is given up.

The client's session belongs to the task that opened it, so that no call may open or close it.
Calls of many runs share it; one that was given up closes when the last of them has ended.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

import anyio
import mcp_types as types
from mcp.client import ClientSession, Transport
from mcp.shared.exceptions import MCPError

from executor.engine.tool_port import ServerAway

_log = logging.getLogger(__name__)

CONNECT_SECONDS = 20.0
"""How long a server may take to start and to greet."""

CLOSE_SECONDS = 10.0
"""How long a session may take to end, and then again when it is cancelled."""

# The client logs what servers send.
for _name in ("mcp", "client"):
    logging.getLogger(_name).setLevel(logging.CRITICAL + 1)

MakeTransport: TypeAlias = Callable[[Callable[[], None]], Transport]
"""Makes a transport that calls its argument when the server says no more."""


class Connection:
    """A session with one server, opened at its first use."""

    def __init__(self, name: str, transport: MakeTransport) -> None:
        self._name = name
        self._transport = transport
        self._opened: asyncio.Future[ClientSession] = asyncio.get_running_loop().create_future()
        self._opened.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._given_up = False
        self._users = 0
        self._left_alone = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def usable(self) -> bool:
        """Whether another request may be made on it."""
        return not self._given_up

    @property
    def closed(self) -> bool:
        """Whether nothing of it is left."""
        return self._given_up and (self._task is None or self._task.done())

    @asynccontextmanager
    async def session(self) -> AsyncGenerator[ClientSession, None]:
        """Use the session; raises ``ServerAway`` where it cannot be opened."""
        self._users += 1
        try:
            if self._task is None:
                self._task = asyncio.create_task(self._keep(), name=f"server {self._name}")
            # Somebody's impatience is not the end of the session for all others.
            yield await asyncio.shield(self._opened)
        finally:
            self._users -= 1
            self._close_if_alone()

    def give_up(self) -> None:
        """Make no more requests on it; it closes when those under way have ended."""
        self._given_up = True
        self._close_if_alone()

    async def close(self) -> None:
        """Close it now, whoever uses it, and without its consent where it takes too long."""
        self.give_up()
        if self._task is None:
            return
        self._left_alone.set()
        if self._opened.done():
            await asyncio.wait([self._task], timeout=CLOSE_SECONDS)
        self._task.cancel()
        await asyncio.wait([self._task], timeout=CLOSE_SECONDS)

    def _close_if_alone(self) -> None:
        if self._given_up and not self._users:
            self._left_alone.set()

    async def _keep(self) -> None:
        problem = "it could not be started, or did not greet"
        try:
            async with (
                self._transport(self.give_up) as (read, write),
                ClientSession(
                    read, write, client_info=types.Implementation(name="signoff", version="1")
                ) as session,
            ):
                with anyio.fail_after(CONNECT_SECONDS):
                    await _greet(session)
                self._opened.set_result(session)
                await self._left_alone.wait()
        except ServerAway as error:
            problem = str(error)
        # However a session ends, its requests end with it, and each knows how far it came.
        except Exception as error:
            _log.warning("server %s: its session ended with %s", self._name, type(error).__name__)
        finally:
            if not self._opened.done():
                self._opened.set_exception(ServerAway(problem))
            self.give_up()


async def _greet(session: ClientSession) -> None:
    """Agree on a version of the protocol: all older servers know this greeting, newer ones may."""
    try:
        await session.initialize()
    except MCPError as error:
        if error.code != types.UNSUPPORTED_PROTOCOL_VERSION:
            raise
        await session.discover()
