from __future__ import annotations

import asyncio
import gzip
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path

import pytest

from executor.adapters.http_exchange import (
    MOST_ANSWER_OCTETS,
    Answered,
    Ending,
    Exchanges,
    Lost,
    NeverLeft,
    Phase,
    parse_endpoint,
)

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def server(serve: Serve, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """A raw server; what it was sent is for `serve` to read."""

    serving: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                await serve(reader, writer)
        finally:
            writer.transport.abort()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(handle(reader, writer))
        serving.add(task)
        task.add_done_callback(serving.discard)

    listening = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=tls)
    try:
        yield int(listening.sockets[0].getsockname()[1])
    finally:
        listening.close()
        remaining = list(serving)
        for task in remaining:
            task.cancel()
        await asyncio.gather(*remaining, return_exceptions=True)
        await asyncio.sleep(0)


async def post(
    port: int,
    *,
    bound: float = 10.0,
    scheme: str = "http",
    host: str = "127.0.0.1",
    tls: ssl.SSLContext | None = None,
    body: bytes = b"{}",
) -> Ending:
    endpoint = parse_endpoint(f"{scheme}://{host}:{port}", setting="URL")
    return await Exchanges(endpoint, bound, tls).post("/x", {"authorization": "s3cr3t"}, body)


def answering(answer: bytes) -> Serve:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    return serve


@pytest.fixture
def certificate(tmp_path: Path) -> ssl.SSLContext:
    """A server's context whose certificate nobody knows."""
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes"),
            *("-subj", "/CN=localhost", "-keyout", str(key), "-out", str(cert)),
        ],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    return context


async def test_an_unknown_certificate_is_met_before_anything_leaves(
    certificate: ssl.SSLContext,
) -> None:
    async with server(answering(b""), certificate) as port:
        ending = await post(port, scheme="https")
    assert ending == NeverLeft("the server's certificate was not accepted", retryable=False)


async def test_a_handshake_that_never_ends_is_left_with_nothing_sent() -> None:
    seen, closed = bytearray(), asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while chunk := await reader.read(4096):
                seen.extend(chunk)
        closed.set()

    async with server(silent) as port:
        ending = await post(port, scheme="https", bound=0.3)
        async with asyncio.timeout(5):
            await closed.wait()
    assert ending == NeverLeft("no answer within 0.3 s", retryable=True)
    assert b"s3cr3t" not in seen


async def test_a_server_that_speaks_no_tls_is_sent_nothing() -> None:
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()
        await reader.read(10)

    async with server(plain) as port:
        ending = await post(port, scheme="https")
    assert isinstance(ending, NeverLeft)
    assert "encrypted" in ending.problem


async def test_a_name_that_nobody_knows_is_nothing_sent() -> None:
    ending = await post(1, host="mail.invalid")
    assert ending == NeverLeft("the server was not reached", retryable=True)


async def test_a_hang_up_on_accepting_proves_nothing() -> None:
    async def hasty(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    async with server(hasty) as port:
        ending = await post(port)
    assert isinstance(ending, Lost)


async def test_a_body_that_nobody_reads_is_lost_at_the_bound() -> None:
    async def deaf(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await asyncio.Event().wait()

    async with server(deaf) as port:
        ending = await post(port, body=b"x" * 30_000_000, bound=0.5)
    assert ending == Lost(Phase.REQUEST, "no answer within 0.5 s")


async def test_an_answer_that_trickles_is_believed_as_far_as_it_goes() -> None:
    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        while True:
            writer.write(b"x")
            await asyncio.sleep(0.05)

    async with server(slow) as port:
        ending = await post(port, bound=0.5)
    assert isinstance(ending, Answered)
    assert (ending.status, ending.body) == (200, None)


@pytest.mark.parametrize(
    "half", [b"", b"HTTP/1.1", b"HTTP/1.1 200 OK\r\nContent-", b"garbage\r\n\r\n", b"\x16\x03\x01"]
)
async def test_half_a_status_line_is_no_answer(half: bytes) -> None:
    async with server(answering(half)) as port:
        ending = await post(port)
    assert ending == Lost(Phase.RESPONSE, "the connection was lost")


async def test_a_redirect_is_an_answer_and_not_a_second_request() -> None:
    requests = 0

    async def moved(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal requests
        requests += 1
        await answering(b"HTTP/1.1 307 Moved\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n")(
            reader, writer
        )

    async with server(moved) as port:
        ending = await post(port)
    assert isinstance(ending, Answered)
    assert (ending.status, requests) == (307, 1)


async def test_proxies_and_credentials_of_the_environment_are_not_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login pat password nope\n")
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    head = bytearray()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head.extend(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        await writer.drain()

    async with server(serve) as port:
        ending = await post(port)
    assert isinstance(ending, Answered)
    assert head.lower().count(b"authorization:") == 1
    assert b"authorization: s3cr3t" in head.lower()


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * (MOST_ANSWER_OCTETS + 1),
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + gzip.compress(b"0" * 10_000_000),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
    ids=["too long", "packed", "no chunk"],
)
async def test_a_body_that_cannot_be_read_leaves_the_status_standing(answer: bytes) -> None:
    async with server(answering(answer)) as port:
        ending = await post(port)
    assert isinstance(ending, Answered)
    assert (ending.status, ending.body) == (200, None)


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ("5", timedelta(seconds=5)),
        ("-5", None),
        ("soon", None),
        ("9" * 9, timedelta(days=1)),
        ("9" * 400, None),
        ("Wed, 21 Oct 2026 07:28:00 GMT", None),
        ("\u0665", None),
    ],
)
def test_a_wait_is_read_only_as_a_number_of_seconds(value: str, read: timedelta | None) -> None:
    assert Answered(429, {"retry-after": value}, b"").retry_after == read


async def test_cancellation_passes_and_closes_the_connection() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        begun.set()
        try:
            await reader.read()
        finally:
            ended.set()

    async with server(silent) as port:
        task = asyncio.create_task(post(port))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with asyncio.timeout(5):
            await ended.wait()


async def test_an_answer_that_repeats_our_secrets_is_read_without_them() -> None:
    token, credentials = "gh_0123456789", "YWdlbnQ/dG9rZW4="
    said = b'{"message": "bad: gh_0123456789, YWdlbnQ/dG9rZW4=, YWdlbnQ\\/dG9rZW4=, pat, x"}'
    answer = b"HTTP/1.1 422 No\r\ncontent-length: %d\r\n\r\n%s" % (len(said), said)
    async with server(answering(answer)) as port:
        endpoint = parse_endpoint(f"http://127.0.0.1:{port}", setting="URL")
        exchanges = Exchanges(endpoint, 10.0, secrets=(token, credentials, "x"))
        ending = await exchanges.post("/x", {"authorization": token}, b"{}")
    assert isinstance(ending, Answered)
    assert ending.body == b'{"message": "bad: ***, ***, ***, pat, x"}'
