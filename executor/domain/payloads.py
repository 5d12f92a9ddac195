"""JSON as it is stored and digested: RFC 8785 canonical form, and what may not be in it."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import rfc8785

from executor.domain.errors import InvalidContent

JsonValue: TypeAlias = (
    "bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
)
JsonObject: TypeAlias = Mapping[str, JsonValue]

_NOT_STORABLE = re.compile("[\\x00\\ud800-\\udfff]")
_AS_THEY_ARE = frozenset({str, int, bool, float, type(None)})


def canonical(value: JsonValue) -> bytes:
    """Spell a JSON value in its one canonical form (RFC 8785).

    Integers beyond 2**53 - 1 and lone surrogates have no canonical form: ``InvalidContent``.
    """
    try:
        return rfc8785.dumps(_plain(value))
    except (rfc8785.CanonicalizationError, UnicodeEncodeError) as error:
        raise InvalidContent(
            "payload", f"it has no canonical JSON form ({error})", "Send plain text and integers."
        ) from error


def digest(value: JsonValue) -> bytes:
    """Return the SHA-256 (32 bytes) over the canonical form."""
    return hashlib.sha256(canonical(value)).digest()


def storable_text(text: str) -> str:
    """Replace what PostgreSQL's jsonb cannot hold (NUL, lone surrogates) by U+FFFD.

    For untrusted text that is only recorded. Content that is to be approved is refused instead.
    """
    return _NOT_STORABLE.sub("\ufffd", text)


def storable(value: JsonValue) -> JsonValue:
    """Apply ``storable_text`` to every string and key of a JSON value.

    Numbers that JSON does not know, which some write all the same, become their names.
    """
    if isinstance(value, str):
        return storable_text(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {storable_text(key): storable(item) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [storable(item) for item in value]
    return value


def _plain(value: JsonValue) -> JsonValue:
    """Turn mappings and sequences into the dicts and lists that rfc8785 knows."""
    if type(value) in _AS_THEY_ARE:  # what most values are, and what is asked fastest
        return value
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    return value
