"""One HTTP request, made once, that says at its end how far it came.

Until the first octet of the request's head nothing can have been accepted; from then on a loss
proves nothing, whatever the exception is called: a server that hangs up on accepting and one that
hangs up after reading everything look the same. The line between both is the event
``send_request_headers.started`` of httpx2's trace (measured with httpx2 2.16.2).

Each exchange has a connection of its own, since a kept one that its server has just closed would
turn a request that could have been made into an unknown one. The transport is used without a
client around it: nothing follows redirects, reads proxies or credentials from the environment,
keeps cookies, or asks again. ``SSL_CERT_FILE`` and ``SSL_CERT_DIR`` are honoured as everywhere.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import httpx2

from executor.adapters.causes import causes_of

MOST_ANSWER_OCTETS = 1 << 20
"""Octets of an answer that are read; a longer one counts as broken."""

LONGEST_RETRY_AFTER = timedelta(days=1)
"""What a longer ``Retry-After`` is cut to."""

HIDDEN = b"***"
"""Stands in an answer where a secret of ours stood."""

_SHORTEST_SECRET = 8
"""A shorter one is no secret, and hiding it would take words out of tickets."""

_SECONDS = re.compile(r"[0-9]{1,9}")
_SECRET = re.compile(r"[\x21-\x7e]{1,512}")


class Phase(StrEnum):
    """What an exchange was busy with; from ``request`` on, a loss proves nothing."""

    CONNECT = "connect"
    REQUEST = "request"
    RESPONSE = "response"
    ANSWER = "answer"


@dataclass(frozen=True, slots=True)
class NeverLeft:
    """No octet of the request left; ``retryable`` when the reason can change by itself."""

    problem: str
    retryable: bool


@dataclass(frozen=True, slots=True)
class Answered:
    """A status line was read. ``body`` is ``None`` when it was cut, too long or encoded.

    Names of ``headers`` are in lower case.
    """

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes | None = field(repr=False)

    @property
    def media_type(self) -> str:
        """The answer's media type in lower case without parameters, or an empty string."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def retry_after(self) -> timedelta | None:
        """``Retry-After`` in its form of seconds, the only one that our providers document."""
        value = self.headers.get("retry-after", "").strip()
        if not _SECONDS.fullmatch(value):
            return None
        return min(timedelta(seconds=int(value)), LONGEST_RETRY_AFTER)


@dataclass(frozen=True, slots=True)
class Lost:
    """The exchange ended without a status line after the request had begun to leave."""

    phase: Phase
    problem: str


Ending: TypeAlias = NeverLeft | Answered | Lost


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a provider's API is reached: ``base_url`` without a slash at its end."""

    base_url: str

    @property
    def authority(self) -> str:
        """Host, and port where the URL names one."""
        return urlsplit(self.base_url).netloc.lower()


def parse_endpoint(url: str, *, setting: str) -> Endpoint:
    """Read an API's base URL; raises ``ValueError`` naming ``setting`` and never the URL."""
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError:
        raise ValueError(f"{setting} is not a URL, or its port is not a number") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{setting} must be https://host or http://host:port")
    if "@" in parts.netloc or parts.query or parts.fragment or port == 0:
        raise ValueError(f"{setting} takes no user, query or fragment; the key has its own setting")
    base = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
    try:
        httpx2.URL(base)
    except httpx2.InvalidURL:
        raise ValueError(f"{setting} is not a URL") from None
    return Endpoint(base)


def require_secret(value: str, *, setting: str) -> str:
    """Return a key that can stand in a header; raises ``ValueError`` that never holds the key."""
    stripped = value.strip()
    if not _SECRET.fullmatch(stripped):
        raise ValueError(f"{setting} must be one word of printable ASCII characters")
    return stripped


class Exchanges:
    """Makes single requests to one endpoint, each within ``bound_seconds``, all phases together.

    Of an answer at most ``most_answer_octets`` are read. Where it repeats one of ``secrets``, that
    is hidden before anybody reads it: words of an answer end up in records and on cards.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        bound_seconds: float,
        tls_context: ssl.SSLContext | None = None,
        *,
        most_answer_octets: int = MOST_ANSWER_OCTETS,
        secrets: Sequence[str] = (),
    ) -> None:
        self._secrets = [s for s in secrets if len(s) >= _SHORTEST_SECRET]
        self._endpoint = endpoint
        self._bound_seconds = bound_seconds
        self._most_answer_octets = most_answer_octets
        self._tls_context = tls_context or tls_context_for(endpoint)

    async def post(self, path: str, headers: Mapping[str, str], body: bytes) -> Ending:
        """Send these octets once, as JSON."""
        return await self._send("POST", path, headers, body)

    async def put(self, path: str, headers: Mapping[str, str], body: bytes) -> Ending:
        """Send these octets once, as JSON."""
        return await self._send("PUT", path, headers, body)

    async def patch(self, path: str, headers: Mapping[str, str], body: bytes) -> Ending:
        """Send these octets once, as JSON."""
        return await self._send("PATCH", path, headers, body)

    async def get(self, path: str, headers: Mapping[str, str], query: Mapping[str, str]) -> Ending:
        """Ask once."""
        target = f"{path}?{httpx2.QueryParams(query)}"
        return await self._once("GET", target, headers, None)

    async def _send(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> Ending:
        return await self._once(method, path, {**headers, "content-type": "application/json"}, body)

    async def _once(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> Ending:
        """Make one request; every way this can end is an ``Ending``, but cancellation."""
        journey = _Journey(self._most_answer_octets, self._secrets)
        try:
            async with asyncio.timeout(self._bound_seconds):
                # A compressed answer could unpack to any size; identity is asked for, and anything
                # else is not unpacked. Resend turns away requests without a User-Agent.
                request = httpx2.Request(
                    method,
                    self._endpoint.base_url + target,
                    headers={
                        "accept": "application/json",
                        "accept-encoding": "identity",
                        "connection": "close",
                        "user-agent": "signoff",
                        **headers,
                    },
                    content=body,
                    extensions={"trace": journey.observe},
                )
                async with self._transport() as transport:
                    response = await transport.handle_async_request(request)
                    journey.answered(response)
                    await journey.read(response)
        # Whatever else ends an exchange proves only what its phase proves, so the widest net is the
        # honest one; cancellation is no Exception and passes.
        except Exception as error:
            return journey.ended_by(error, self._bound_seconds)
        finally:
            await journey.close()
        return journey.whole()

    def _transport(self) -> httpx2.AsyncHTTPTransport:
        return httpx2.AsyncHTTPTransport(
            verify=self._tls_context,
            trust_env=False,
            http1=True,
            http2=False,
            retries=0,
            limits=httpx2.Limits(max_connections=1, max_keepalive_connections=0),
        )


def tls_context_for(endpoint: Endpoint) -> ssl.SSLContext:
    """Read the trusted certificates, once for all requests; in the clear, trust none."""
    if endpoint.base_url.startswith("https://"):
        return httpx2.create_ssl_context()
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class _Journey:
    """How far one request came."""

    def __init__(self, most_octets: int, secrets: Sequence[str]) -> None:
        self._most_octets = most_octets
        self._secrets = secrets
        self._phase = Phase.CONNECT
        self._answer: Answered | None = None
        self._octets: list[bytes] = []
        self._length = 0
        self._complete = False
        self._socket: Any = None

    async def observe(self, event: str, info: dict[str, Any]) -> None:
        """Hear of httpx2's steps; see its trace extension."""
        if event == "connection.connect_tcp.complete":
            self._socket = info["return_value"]
        elif event.endswith("send_request_headers.started"):
            self._phase = Phase.REQUEST
        elif event.endswith("receive_response_headers.started"):
            self._phase = Phase.RESPONSE

    def answered(self, response: httpx2.Response) -> None:
        """Keep the status line and the headers, whatever becomes of the body."""
        self._phase = Phase.ANSWER
        headers = {name.lower(): value for name, value in response.headers.items()}
        self._answer = Answered(response.status_code, MappingProxyType(headers), None)

    async def read(self, response: httpx2.Response) -> None:
        """Read the body as far as is sensible."""
        if response.headers.get("content-encoding", "identity").strip().lower() != "identity":
            return
        async for chunk in response.aiter_raw():
            self._length += len(chunk)
            if self._length > self._most_octets:
                return
            self._octets.append(chunk)
        self._complete = True

    async def close(self) -> None:
        """Close what httpcore2 (2.16.2) leaves open when a TLS handshake is given up."""
        if self._phase is Phase.CONNECT and self._socket is not None:
            await self._socket.aclose()

    def whole(self) -> Ending:
        """Say how an exchange ended that nothing interrupted."""
        assert self._answer is not None
        body = self._without_secrets(b"".join(self._octets)) if self._complete else None
        return Answered(self._answer.status, self._answer.headers, body)

    def _without_secrets(self, body: bytes) -> bytes:
        for secret in self._secrets:
            # JSON may escape a solidus.
            for spelt in (secret, secret.replace("/", "\\/")):
                body = body.replace(spelt.encode(), HIDDEN)
        return body

    def ended_by(self, error: Exception, bound_seconds: float) -> Ending:
        """Say how an exchange ended that an error interrupted."""
        if self._answer is not None:
            # The status was read; what broke afterwards, in the body or in closing, cannot undo it.
            return self.whole()
        problem = _problem(error, bound_seconds)
        if self._phase is Phase.CONNECT:
            return NeverLeft(problem, _may_pass(error))
        return Lost(self._phase, problem)


def _problem(error: Exception, bound_seconds: float) -> str:
    """Say in our own words why an exchange ended; a library's words may hold what was sent."""
    # First, since what the cancelled step left behind stands in its context.
    if isinstance(error, TimeoutError | httpx2.TimeoutException):
        return f"no answer within {bound_seconds:g} s"
    chain = causes_of(error)
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in chain):
        return "the server's certificate was not accepted"
    if any(isinstance(cause, ssl.SSLError) for cause in chain):
        return "the encrypted connection could not be set up or broke"
    if any(isinstance(cause, ConnectionRefusedError) for cause in chain):
        return "the connection was refused"
    if isinstance(error, httpx2.ConnectError):
        return "the server was not reached"
    if isinstance(error, httpx2.NetworkError | httpx2.RemoteProtocolError):
        return "the connection was lost"
    return f"the exchange failed ({type(error).__name__})"


def _may_pass(error: Exception) -> bool:
    """Tell whether the reason can change by itself."""
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes_of(error)):
        return False
    return isinstance(error, OSError | httpx2.NetworkError | httpx2.TimeoutException)
