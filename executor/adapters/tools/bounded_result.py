"""A tool's result as it is kept: its words and its data, as much as fits, and what was left out."""

from __future__ import annotations

import json
from collections.abc import Callable

import mcp_types as types

from executor.domain.payloads import JsonObject, JsonValue, storable

Hide = Callable[[str], str]
"""Takes our own secrets out of what a server says."""


def bounded_result(result: types.CallToolResult, most: int, hide: Hide) -> JsonObject:
    """Spell a result: ``text``, ``data`` where the text does not say the same, ``left_out``.

    ``cut`` counts the characters that were too many.
    """
    texts, left_out = [], list[JsonValue]()
    for block in result.content:
        text, missing = _told(block)
        texts += [text] if text else []
        left_out += [missing] if missing else []
    text = hide("\n".join(texts))
    kept: dict[str, JsonValue] = {}
    if result.structured_content is not None and not _says(text, result.structured_content):
        data = hide(_spelled(result.structured_content))
        if len(data) + len(text) <= most:
            kept["data"] = _read(data)
        else:
            text = f"{text}\n{data}" if text else data
    if text or not kept:
        kept["text"] = text[:most]
    if len(text) > most:
        kept["cut"] = len(text) - most
    if left_out:
        kept["left_out"] = left_out[:20]
    stored = storable(kept)
    assert isinstance(stored, dict)
    return stored


def _told(block: types.ContentBlock) -> tuple[str, str | None]:
    """Split a block into what can be read here and the name of what cannot."""
    match block:
        case types.TextContent():
            return block.text, None
        case types.EmbeddedResource(resource=types.TextResourceContents() as resource):
            return resource.text, None
        case types.ImageContent() | types.AudioContent():
            return "", f"{block.type} ({block.mime_type[:80]})"
        case types.ResourceLink():
            return f"{block.name}: {block.uri}", None
        case _:
            return "", "a file"


def _says(text: str, data: object) -> bool:
    """Say whether a text is this data spelt out, as the protocol asks servers to do.

    Python's servers wrap a mere text, as the protocol takes nothing but objects.
    """
    return bool(text) and (data == {"result": text} or _read(text) == data)


def _spelled(data: object) -> str:
    try:
        return json.dumps(data, ensure_ascii=False)
    except ValueError:
        # A number of so many digits is not spelled at all.
        return "(data that cannot be read)"


def _read(text: str) -> JsonValue:
    try:
        read: JsonValue = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return read
