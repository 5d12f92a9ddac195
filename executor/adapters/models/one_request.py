"""Exactly one HTTP request, whatever a library around it would like, and a record of it.

A provider's library hides how far a request came and drops what an answer said when it cannot use
it; both decide what is charged. So its transport is ours: it lets one request through, remembers
the answer as it came, and no more of it than is sensible. The rule of what a loss proves is that of
``executor.adapters.http_exchange``.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import httpx2

from executor.adapters.http_exchange import Answered, Phase

MOST_ANSWER_OCTETS = 4 << 20
"""Octets of an answer that are read; a longer one counts as broken."""


class AnswerTooLong(Exception):
    """The answer had more octets than are read."""


class AskedTwice(Exception):
    """A second request was about to be made; nothing of it left."""


@dataclass(slots=True)
class Exchange:
    """What became of the one request; ``phase`` is ``None`` while there was none."""

    phase: Phase | None = None
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    octets: bytearray = field(default_factory=bytearray)
    is_whole: bool = False
    connection: Any = None

    @property
    def has_left(self) -> bool:
        """Whether an octet of the request may have left."""
        return self.phase not in (None, Phase.CONNECT)

    @property
    def is_stream(self) -> bool:
        """Whether the answer came as server-sent events."""
        return self._answered().media_type == "text/event-stream"

    @property
    def retry_after(self) -> timedelta | None:
        """What the answer said of when to ask again."""
        return self._answered().retry_after

    def _answered(self) -> Answered:
        return Answered(self.status or 0, self.headers, None)

    async def observe(self, event: str, info: dict[str, Any]) -> None:
        """Hear of httpx2's steps; see its trace extension."""
        if event == "connection.connect_tcp.complete":
            self.connection = info["return_value"]
        elif event.endswith("send_request_headers.started"):
            self.phase = Phase.REQUEST
        elif event.endswith("receive_response_headers.started"):
            self.phase = Phase.RESPONSE


class OneRequest(httpx2.AsyncBaseTransport):
    """A transport for one request; what it saw stands in ``exchange``."""

    def __init__(self, tls_context: ssl.SSLContext) -> None:
        self.exchange = Exchange()
        self._inner = httpx2.AsyncHTTPTransport(
            verify=tls_context,
            trust_env=False,
            http1=True,
            http2=False,
            retries=0,
            limits=httpx2.Limits(max_connections=1, max_keepalive_connections=0),
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Make the request, or refuse to make a second one."""
        exchange = self.exchange
        if exchange.phase is not None:
            raise AskedTwice
        exchange.phase = Phase.CONNECT
        # A compressed answer could unpack to any size, and hides how much was said before a break.
        # Whoever compresses it all the same is not understood.
        request.headers["accept-encoding"] = "identity"
        request.headers["connection"] = "close"
        request.extensions = {**request.extensions, "trace": exchange.observe}
        response = await self._inner.handle_async_request(request)
        exchange.phase = Phase.ANSWER
        exchange.status = response.status_code
        exchange.headers = {name.lower(): value for name, value in response.headers.items()}
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        headers = response.headers.copy()
        headers.pop("content-encoding", None)
        return httpx2.Response(
            response.status_code,
            headers=headers,
            stream=_Remembered(response.stream, exchange),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        """Close the connection, and what httpcore2 leaves open of a TLS handshake given up."""
        if self.exchange.phase is Phase.CONNECT and self.exchange.connection is not None:
            await self.exchange.connection.aclose()
        await self._inner.aclose()


class _Remembered(httpx2.AsyncByteStream):
    """An answer's octets as they come, kept in the record."""

    def __init__(self, stream: httpx2.AsyncByteStream, exchange: Exchange) -> None:
        self._stream = stream
        self._exchange = exchange

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            if len(self._exchange.octets) + len(chunk) > MOST_ANSWER_OCTETS:
                raise AnswerTooLong
            self._exchange.octets += chunk
            yield chunk
        self._exchange.is_whole = True

    async def aclose(self) -> None:
        await self._stream.aclose()
