"""What is read of a request before anything in it is believed: its bytes and single headers."""

from __future__ import annotations

import asyncio

from aiohttp import web

_CHUNK_BYTES = 65_536
LONGEST_READ_SECONDS = 5.0
"""How long a body may take to arrive; who sends nothing keeps nothing waiting."""


class BodyRefused(Exception):
    """A body that is not read to its end; ``status`` and ``text`` are the answer."""

    status = 400
    text = "bad request"


class BodyTooLarge(BodyRefused):
    """The body goes on beyond the limit."""

    status = 413
    text = "too large"


class BodyTooSlow(BodyRefused):
    """The body did not arrive in time."""

    status = 408
    text = "too slow"


class BodyNotPlain(BodyRefused):
    """The body is packed or broken off: its bytes are not what was signed."""


async def read_body(request: web.Request, most: int) -> bytes:
    """Read the raw body up to ``most`` bytes, whatever its length header said.

    Raises ``BodyRefused``.
    """
    if "Content-Encoding" in request.headers:
        raise BodyNotPlain
    if (request.content_length or 0) > most:
        raise BodyTooLarge
    pieces = bytearray()
    try:
        async with asyncio.timeout(LONGEST_READ_SECONDS):
            async for piece in request.content.iter_chunked(_CHUNK_BYTES):
                pieces += piece
                if len(pieces) > most:
                    raise BodyTooLarge
    except TimeoutError as error:
        raise BodyTooSlow from error
    except (OSError, web.RequestPayloadError) as error:
        raise BodyNotPlain from error
    return bytes(pieces)


def single_header(request: web.Request, name: str) -> str | None:
    """Return a header that stands there exactly once."""
    values = request.headers.getall(name, [])
    return values[0] if len(values) == 1 else None
