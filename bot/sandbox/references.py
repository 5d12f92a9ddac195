"""Whom a message pings and where it leads: what must never come from untrusted text.

Source: Slack, "Formatting message text": `<@U…>`, `<!here>`, `<!subteam^…>`, `<#C…>`, `<url|label>`
work in a message's text and in mrkdwn; names and bare URLs depend on `parse`, `link_names` and
`verbatim`. Preformatted and plain text make neither.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from bot.sandbox.model import Json, Message

_ANGLED = re.compile(r"<([@#!]|https?://|mailto:)([^<>|]*)(?:\|([^<>]*))?>")
_BARE_URL = re.compile(r"(?<![<|\w])https?://[^\s<>|]+")
_NAME = re.compile(r"(?<!\w)@(channel|here|everyone)\b")


@dataclass(frozen=True)
class Link:
    """A link a reader could follow; `label` is None where the address itself is shown."""

    url: str
    label: str | None = None


def pings(message: Message) -> list[str]:
    """Return the mentions that the message's present revision triggers."""
    sent = message.now.sent
    by_name = bool(sent.get("link_names")) or sent.get("parse") == "full"
    found = [f"{sign}{name}" for sign, name, _ in _angled(message) if sign in "@!"]
    if by_name:
        found += [f"!{name}" for text in _parsed_texts(message) for name in _NAME.findall(text)]
    for node in _nodes(message.blocks):
        match node.get("type"):
            case "user" if "user_id" in node:
                found.append(f"@{node['user_id']}")
            case "usergroup":
                found.append(f"!subteam^{node['usergroup_id']}")
            case "broadcast":
                found.append(f"!{node['range']}")
            case _:
                pass
    return found


def links(message: Message) -> list[Link]:
    """Return the links of the message's present revision, those of bare URLs included."""
    found = [
        Link(sign + rest, label or None)
        for sign, rest, label in _angled(message)
        if sign not in "@#!"
    ]
    for text in _parsed_texts(message):
        found += [Link(url) for url in _BARE_URL.findall(text)]
    for node in _nodes(message.blocks):
        if node.get("type") == "link":
            found.append(Link(node["url"], node.get("text")))
        elif node.get("type") == "button" and "url" in node:
            found.append(Link(node["url"], node["text"]["text"]))
    return found


def _angled(message: Message) -> Iterator[tuple[str, str, str]]:
    texts = [message.text, *(text for text, _ in _mrkdwn(message))]
    for text in texts:
        yield from _ANGLED.findall(text)


def _parsed_texts(message: Message) -> Iterator[str]:
    """Yield the texts in which Slack looks for bare URLs and names."""
    if message.now.sent.get("parse") != "none":
        yield message.text
    yield from (text for text, verbatim in _mrkdwn(message) if not verbatim)


def _mrkdwn(message: Message) -> Iterator[tuple[str, bool]]:
    for node in _nodes(message.blocks):
        if node.get("type") == "mrkdwn":
            yield node["text"], bool(node.get("verbatim"))
        elif node.get("type") == "markdown":
            yield node["text"], False


def _nodes(node: object) -> Iterator[Json]:
    if isinstance(node, list):
        for item in node:
            yield from _nodes(item)
    elif isinstance(node, dict):
        yield node
        yield from _nodes([value for value in node.values() if isinstance(value, dict | list)])
