"""A server that is a URL: each request of the client's is one POST on a connection of its own.

Nothing here follows redirects, reads proxies or credentials from the environment, unpacks what is
compressed, or asks again. A request that fails costs only itself: for the client it is an error
answer, and what is known of it stands in its ``Departure``. What a server says without being asked
is not listened to.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import httpx2
from mcp.client.streamable_http import streamable_http_client

from executor.adapters.tools.departure import DEPARTURE, Departure

if TYPE_CHECKING:
    # The only name for it, which the client does not export.
    from mcp.client._transport import TransportStreams

MOST_ANSWER_OCTETS = 4 << 20
"""Octets of one answer that are read; a longer one counts as broken."""

CONNECT_SECONDS = 10.0

PAUSE_SECONDS = 1.0
"""How long to wait before the rest of a broken answer is fetched, whatever its server wishes."""

_NO_ANSWER = 599
_NOT_ALLOWED = 405
_LAST_EVENT = "last-event-id"


@asynccontextmanager
async def posted(url: str, token: str | None) -> AsyncGenerator[TransportStreams, None]:
    """Talk to the server at ``url``; ``token`` is sent as a bearer token."""
    headers = {"user-agent": "signoff", "accept-encoding": "identity", "connection": "close"}
    if token is not None:
        headers["authorization"] = f"Bearer {token}"
    client = httpx2.AsyncClient(
        transport=_OneRequest(),
        headers=headers,
        timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS),
        max_redirects=0,
        trust_env=False,
    )
    async with (
        client,
        streamable_http_client(
            url, http_client=client, max_sse_event_size=MOST_ANSWER_OCTETS
        ) as streams,
    ):
        yield streams


class _OneRequest(httpx2.AsyncBaseTransport):
    """Makes each request once, watches how far it comes, and bounds its answer."""

    def __init__(self) -> None:
        self._inner = httpx2.AsyncHTTPTransport(
            trust_env=False,
            http1=True,
            http2=False,
            retries=0,
            limits=httpx2.Limits(max_connections=100, max_keepalive_connections=0),
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Make one request."""
        match request.method:
            case "GET":
                return await self._listen(request)
            case "DELETE":
                return await self._say_goodbye(request)
        departure = DEPARTURE.get() or Departure()
        request.extensions["trace"] = departure.observe
        try:
            response = await self._inner.handle_async_request(request)
        except httpx2.TransportError:
            departure.lost = True
            # An error here would end the client's whole session, and all that is under way in it.
            return httpx2.Response(_NO_ANSWER, request=request)
        departure.status = response.status_code
        return _bounded(response, request)

    async def _listen(self, request: httpx2.Request) -> httpx2.Response:
        """Fetch the rest of an answer that broke off; the client asks for it as often as it is let.

        It would listen to whatever else a server has to say in the same way, for ever.
        """
        if _LAST_EVENT not in request.headers:
            return httpx2.Response(_NOT_ALLOWED, request=request)
        await asyncio.sleep(PAUSE_SECONDS)
        return _bounded(await self._inner.handle_async_request(request), request)

    async def _say_goodbye(self, request: httpx2.Request) -> httpx2.Response:
        """End a session; nobody waits long for that, or reads what is answered."""
        async with asyncio.timeout(CONNECT_SECONDS):
            response = await self._inner.handle_async_request(request)
            await response.aclose()
        return httpx2.Response(response.status_code, request=request)

    async def aclose(self) -> None:
        """Close what is open."""
        await self._inner.aclose()


def _bounded(response: httpx2.Response, request: httpx2.Request) -> httpx2.Response:
    """Make an answer of bounded length that is read as its octets came."""
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    headers = response.headers.copy()
    # It was not asked for, and could unpack to any size.
    headers.pop("content-encoding", None)
    return httpx2.Response(
        response.status_code,
        headers=headers,
        stream=_Bounded(response.stream),
        extensions=response.extensions,
        request=request,
    )


class _Bounded(httpx2.AsyncByteStream):
    """An answer that ends with an error where it becomes too long."""

    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        length = 0
        async for chunk in self._inner:
            length += len(chunk)
            if length > MOST_ANSWER_OCTETS:
                raise httpx2.StreamError("the answer is too long")
            yield chunk

    async def aclose(self) -> None:
        """Close the answer."""
        await self._inner.aclose()
