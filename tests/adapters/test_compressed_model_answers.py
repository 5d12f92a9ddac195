"""A model's server that compresses what it was asked not to: it could unpack to any size."""

from __future__ import annotations

import asyncio
import gzip
import resource
from functools import cache

import pytest

from executor.adapters.models.model_choice import model_from
from tests.adapters.remote_models import WAYS, failure, settings_for

MEGABYTE = 1 << 20


@cache
def _bomb() -> bytes:
    return gzip.compress(b" " * (200 * MEGABYTE), 1)


@pytest.mark.parametrize(("kind", "streamed"), WAYS)
@pytest.mark.parametrize("media_type", ["application/json", "text/event-stream"])
async def test_a_compressed_answer_is_not_unpacked(
    kind: str, streamed: bool, media_type: str
) -> None:
    body = _bomb()
    head = (
        f"HTTP/1.1 200 OK\r\ncontent-type: {media_type}\r\ncontent-encoding: gzip\r\n"
        f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
    )

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(head.encode() + body)
        await writer.drain()
        writer.close()

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        failed = await failure(model_from(settings_for(kind, url, streamed=streamed), 10.0))
    assert not failed.not_sent
    assert failed.cost_microusd is None
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 150 * MEGABYTE // 1024
