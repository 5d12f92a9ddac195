"""Whether Slack kept a card as it was sent: its answer holds the blocks that people now see.

Slack fills in defaults and encodes ``&``, ``<`` and ``>`` of plain text once
(slackapi/bolt-python#513, 2022); any other difference means that people do not see what was sent.
Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from executor.domain.payloads import JsonValue

_CONTENT = frozenset({"text", "elements", "fields", "accessory", "url", "title", "blocks", "value"})


def is_kept(sent: JsonValue, echoed: JsonValue) -> bool:
    """Say whether ``echoed`` shows everything of ``sent`` and no content beside it."""
    if isinstance(sent, Mapping):
        if not isinstance(echoed, Mapping) or any(key not in echoed for key in sent):
            return False
        if any(key in _CONTENT for key in set(echoed) - set(sent)):
            return False
        encoded = sent.get("type") == "plain_text"
        return all(
            _is_same_text(value, echoed[key])
            if encoded and key == "text"
            else is_kept(value, echoed[key])
            for key, value in sent.items()
        )
    if isinstance(sent, Sequence) and not isinstance(sent, str):
        return (
            isinstance(echoed, Sequence)
            and not isinstance(echoed, str)
            and len(sent) == len(echoed)
            and all(is_kept(a, b) for a, b in zip(sent, echoed, strict=True))
        )
    return sent == echoed


def _is_same_text(sent: JsonValue, echoed: JsonValue) -> bool:
    if sent == echoed:
        return True
    if not isinstance(sent, str) or not isinstance(echoed, str):
        return False
    return sent.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;") == echoed
