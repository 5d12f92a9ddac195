"""What the octets of an answer say of what was charged, whether or not a library could use them.

Only final counts are taken: what a broken stream has told so far is less than what was charged. An
answer that claims to have read nothing tells nothing either.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from executor.adapters.models.one_request import Exchange
from executor.engine.ports import Usage

_CODE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")


@dataclass(frozen=True, slots=True)
class Told:
    """``is_complete`` when the answer came to its own end."""

    usage: Usage | None
    is_complete: bool


def document_of(octets: bytes | bytearray) -> Mapping[str, Any]:
    """Read one JSON object; anything else is an empty one."""
    try:
        read = json.loads(octets)
    except (ValueError, RecursionError):
        return {}
    return read if isinstance(read, dict) else {}


def events_of(exchange: Exchange) -> Iterator[Mapping[str, Any]]:
    """Read the data of server-sent events; the last one of a broken stream may be cut."""
    for line in bytes(exchange.octets).splitlines():
        if line.startswith(b"data:"):
            yield document_of(line[5:])


def usage_of(read: object, wrote: object, cache_read: object, cache_write: object) -> Usage | None:
    """Make a usage of counts, if they are counts; those of the cache may be missing."""
    counts = (read, wrote, cache_read or 0, cache_write or 0)
    if not all(type(count) is int and 0 <= count < 2**40 for count in counts) or not read:
        return None
    return Usage(*(int(str(count)) for count in counts))


def object_in(value: object, key: str) -> Mapping[str, Any]:
    """Return an object of a JSON object, or an empty one."""
    found = value.get(key) if isinstance(value, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def code_of(*candidates: object) -> str | None:
    """Return the first code among what an error calls itself, never a sentence."""
    for candidate in candidates:
        if isinstance(candidate, str) and _CODE.fullmatch(candidate):
            return candidate
    return None
