"""A proxy before PostgreSQL that can fall silent, hang up, or lose the one answer that matters."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlsplit

# A simple query as the store sends it: the word and the zero that ends the message.
_COMMIT = b"COMMIT\x00"
_CHUNK = 65536


@dataclass(eq=False)
class _Link:
    """The two halves of one proxied connection."""

    client: asyncio.StreamWriter
    server: asyncio.StreamWriter
    committing: bool = False
    silent: bool = False

    def cut(self) -> None:
        for writer in (self.client, self.server):
            writer.transport.abort()


@dataclass(eq=False)
class TcpProxy:
    """Where the traffic goes is changed by its methods, for open connections and new ones alike."""

    upstream: str
    port: int = 0
    commits_seen: int = 0
    connections_accepted: int = 0
    commit_seen: asyncio.Event = field(default_factory=asyncio.Event)
    answer_lost: asyncio.Event = field(default_factory=asyncio.Event)
    commit_stopped: asyncio.Event = field(default_factory=asyncio.Event)
    _silent: bool = False
    _refusing: bool = False
    _answers_to_lose: int = 0
    _commits_to_stop: int = 0
    _links: set[_Link] = field(default_factory=set)

    @property
    def url(self) -> str:
        """The upstream's URL with this proxy in the place of the server, and without TLS."""
        parts = urlsplit(self.upstream)
        login = parts.netloc.rpartition("@")[0]
        at = f"{login}@" if login else ""
        return f"postgresql://{at}127.0.0.1:{self.port}{parts.path}?sslmode=disable"

    @property
    def open_connections(self) -> int:
        return len(self._links)

    def swallow(self) -> None:
        """Read from both sides and pass on nothing, without closing anything."""
        self._silent = True
        for link in self._links:
            link.silent = True

    def pass_on_new(self) -> None:
        """Accept connections and pass on what comes over them; what is silent stays silent."""
        self._silent = self._refusing = False

    def pass_on(self) -> None:
        """Pass on what comes from now on, and accept connections."""
        self.pass_on_new()
        for link in self._links:
            link.silent = False

    def cut(self) -> None:
        """Hang up on both sides of every open connection; new ones are still accepted."""
        for link in list(self._links):
            link.cut()

    def refuse(self) -> None:
        """Hang up on every open connection and on each new one as soon as it comes."""
        self._refusing = True
        self.cut()

    def lose_commit_answers(self, count: int = 1) -> None:
        """Let the next ``count`` COMMITs be done, then hang up instead of passing on the answer."""
        self._answers_to_lose = count

    def stop_commits(self, count: int = 1) -> None:
        """Hang up instead of passing on the next ``count`` COMMITs, which are thus never done."""
        self._commits_to_stop = count

    async def serve(
        self, client_reader: asyncio.StreamReader, client: asyncio.StreamWriter
    ) -> None:
        self.connections_accepted += 1
        if self._refusing:
            client.transport.abort()
            return
        server_reader, server = await _open_upstream(self.upstream)
        link = _Link(client, server, silent=self._silent)
        self._links.add(link)
        try:
            await asyncio.gather(
                self._pump_to_server(client_reader, link), self._pump_to_client(server_reader, link)
            )
        finally:
            self._links.discard(link)
            link.cut()

    async def _pump_to_server(self, reader: asyncio.StreamReader, link: _Link) -> None:
        tail = b""
        while data := await _read(reader):
            if link.silent:
                continue
            # A message may come in two pieces; the word then stands across them.
            if _COMMIT in tail + data:
                self.commits_seen += 1
                self.commit_seen.set()
                if self._commits_to_stop > 0:
                    self._commits_to_stop -= 1
                    self.commit_stopped.set()
                    link.cut()
                    return
                if self._answers_to_lose > 0:
                    self._answers_to_lose -= 1
                    link.committing = True
                tail = b""
            else:
                tail = data[-(len(_COMMIT) - 1) :]
            link.server.write(data)
        link.cut()

    async def _pump_to_client(self, reader: asyncio.StreamReader, link: _Link) -> None:
        while data := await _read(reader):
            if link.committing:
                # The server has answered, so the COMMIT is done; nobody will hear of it.
                link.cut()
                self.answer_lost.set()
                return
            if not link.silent:
                link.client.write(data)
        link.cut()


async def _read(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read(_CHUNK)
    except OSError:
        return b""


async def _open_upstream(url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query))
    host = query.get("host") or parts.hostname or "127.0.0.1"
    port = int(query.get("port") or parts.port or 5432)
    if host.startswith("/"):
        return await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
    return await asyncio.open_connection(host, port)


@asynccontextmanager
async def tcp_proxy(upstream: str) -> AsyncIterator[TcpProxy]:
    """Run a proxy before the PostgreSQL at the URL ``upstream``."""
    proxy = TcpProxy(upstream)
    serving: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(proxy.serve(reader, writer))
        serving.add(task)
        task.add_done_callback(serving.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        proxy.cut()
        remaining = list(serving)
        for task in remaining:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*remaining, return_exceptions=True)
        await server.wait_closed()
