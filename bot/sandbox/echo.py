"""What Slack makes of the blocks it was given: ids and defaults filled in, text encoded.

Stored blocks are literal. What leaves towards the app (API echo, history, click payloads) has `&`,
`<` and `>` of plain text encoded once, as reported in slackapi/bolt-python#513; rich text and
mrkdwn leave as they came. `decode_text` is the exact inverse.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

from bot.sandbox.blocks import interactive_elements
from bot.sandbox.model import Json


def encode_text(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def decode_text(text: str) -> str:
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def sanitised(blocks: list[Json], new_id: Callable[[], str]) -> list[Json]:
    """Return a copy with missing `block_id`s and `action_id`s generated and defaults filled in."""
    stored = copy.deepcopy(blocks)
    for block in stored:
        block.setdefault("block_id", new_id())
        for _, element in interactive_elements(block):
            element.setdefault("action_id", new_id())
        _fill_defaults(block)
    return stored


def _fill_defaults(node: object) -> None:
    if isinstance(node, list):
        for item in node:
            _fill_defaults(item)
    elif isinstance(node, dict):
        if node.get("type") == "plain_text":
            node.setdefault("emoji", True)
        elif node.get("type") == "mrkdwn":
            node.setdefault("verbatim", False)
        for value in node.values():
            _fill_defaults(value)


def echoed(blocks: list[Json]) -> list[Json]:
    """Return the blocks as Slack sends them to the app."""
    return [_echoed(block) for block in blocks]


def _echoed(node: Json) -> Json:
    encode = node.get("type") == "plain_text"
    result: Json = {}
    for key, value in node.items():
        if isinstance(value, dict):
            result[key] = _echoed(value)
        elif isinstance(value, list):
            result[key] = _echoed_list(value)
        elif encode and key == "text":
            result[key] = encode_text(value)
        else:
            result[key] = value
    return result


def _echoed_list(items: list[object]) -> list[object]:
    result: list[object] = []
    for item in items:
        if isinstance(item, dict):
            result.append(_echoed(item))
        elif isinstance(item, list):
            result.append(_echoed_list(item))
        else:
            result.append(item)
    return result
