"""Reads a drawing back as a reviewer does, independently of how it was drawn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from bot.visible import conceal

OWN_TYPES = frozenset(
    {"header", "context", "actions", "button", "rich_text", "rich_text_section"}
    | {"rich_text_preformatted", "text", "plain_text", "user", "date"}
)
"""Everything that a card is made of: no markup, no links, no broadcasts."""


def nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """Every JSON object of some blocks, outermost first."""
    if isinstance(tree, dict):
        yield tree
        for value in tree.values():
            yield from nodes(value)
    elif isinstance(tree, list):
        for item in tree:
            yield from nodes(item)


def types(tree: Any) -> set[str]:
    """The types of all objects that have one."""
    return {node["type"] for node in nodes(tree) if "type" in node}


def literals(tree: Any) -> list[str]:
    """The texts of the preformatted parts, in order."""
    return [
        "".join(element["text"] for element in node["elements"])
        for node in nodes(tree)
        if node.get("type") == "rich_text_preformatted"
    ]


def outside_literals(tree: Any) -> str:
    """Every string of some blocks that does not stand in a literal part, joined."""
    if isinstance(tree, dict):
        if tree.get("type") in {"rich_text_preformatted", "plain_text"}:
            return ""
        return "\n".join(outside_literals(value) for value in tree.values())
    if isinstance(tree, list):
        return "\n".join(outside_literals(item) for item in tree)
    return str(tree)


def part(blocks: Sequence[Any], label: str) -> str:
    """The literal text under the label that begins so, with the blocks that go on with it."""
    for position, block in enumerate(blocks):
        if block["type"] != "rich_text" or len(block["elements"]) != 2:
            continue
        section, preformatted = block["elements"]
        words = section["elements"][0].get("text", "")
        if not words.startswith(label) or preformatted["type"] != "rich_text_preformatted":
            continue
        text = "".join(literals([preformatted]))
        for further in blocks[position + 1 :]:
            if further["type"] != "rich_text" or len(further["elements"]) != 1:
                break
            text += "".join(literals([further]))
        return text
    raise AssertionError(f"no part is labelled {label!r}")


def field(blocks: Sequence[Any], name: str) -> str:
    """The first value of a header field of the email, as it was before it was revealed."""
    for line in part(blocks, "The email").split("\n"):
        if line.startswith(f"{name} "):
            return conceal(line[11:])
    raise AssertionError(f"no field is named {name!r}")


def body(blocks: Sequence[Any], label: str = "Text") -> str:
    """One body of the email, as it was before it was revealed."""
    return conceal(part(blocks, label))


def action_ids(blocks: Sequence[Any]) -> list[str]:
    """The actions that a person can take on a card, in order."""
    return [node["action_id"] for node in nodes(blocks) if node.get("type") == "button"]
