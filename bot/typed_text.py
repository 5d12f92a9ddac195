"""What somebody typed, behind what Slack makes of it on its way to us. Pure.

Where the app's manifest asks for it (``should_escape``), Slack encodes ``&``, ``<`` and ``>`` of a
command's text and puts mentions, channels and links between ``<`` and ``>`` (docs.slack.dev, slash
commands and formatting, 2026). So a ``<`` that arrives is Slack's own, and names a person for sure.
"""

from __future__ import annotations

import re

USER_MENTION = re.compile(r"<@([UW][A-Z0-9]{2,20})(?:\|[^<>]*)?>")
_ENCODED = re.compile(
    r"<(?P<sign>[@#!])(?P<id>[A-Za-z0-9^_]+)(?:\|(?P<name>[^<>]*))?>"
    r"|<(?P<link>(?:https?://|mailto:)[^\s<>|]+)(?:\|(?P<label>[^<>]*))?>"
    r"|&(?P<entity>lt|gt|amp);"
)
_CHARACTERS = {"lt": "<", "gt": ">", "amp": "&"}
_SCHEME = re.compile(r"^(?:https?://|mailto:)")


def as_typed(text: str) -> str:
    """Undo Slack's encoding, once; a mention that Slack gives no name keeps its id."""
    return _ENCODED.sub(_typed, text)


def _typed(found: re.Match[str]) -> str:
    if found["entity"]:
        return _CHARACTERS[found["entity"]]
    if found["link"]:
        return _link(_decoded(found["link"]), _decoded(found["label"] or ""))
    name = _decoded(found["name"] or "")
    if found["sign"] == "!":
        return name or f"@{found['id']}"
    return f"{found['sign']}{name}" if name else found[0]


def _link(address: str, label: str) -> str:
    """Spell a link as it was typed; one that shows something else is told with its address."""
    if not label:
        return address
    return label if label in (address, _SCHEME.sub("", address)) else f"{label} ({address})"


def _decoded(text: str) -> str:
    return re.sub(r"&(lt|gt|amp);", lambda found: _CHARACTERS[found[1]], text)
