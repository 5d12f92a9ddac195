"""What is read of a request before anything in it is believed: its bytes and single headers."""

from __future__ import annotations

from aiohttp import web

_CHUNK_BYTES = 65_536


class BodyTooLarge(Exception):
    """The body goes on beyond the limit."""


async def read_body(request: web.Request, most: int) -> bytes:
    """Read the raw body up to ``most`` bytes, whatever its length header said.

    Raises ``BodyTooLarge``.
    """
    if (request.content_length or 0) > most:
        raise BodyTooLarge
    pieces = bytearray()
    async for piece in request.content.iter_chunked(_CHUNK_BYTES):
        pieces += piece
        if len(pieces) > most:
            raise BodyTooLarge
    return bytes(pieces)


def single_header(request: web.Request, name: str) -> str | None:
    """Return a header that stands there exactly once."""
    values = request.headers.getall(name, [])
    return values[0] if len(values) == 1 else None
