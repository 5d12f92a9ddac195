"""What stands on a message of ours that looked like a card and is none any more. Pure."""

from __future__ import annotations

from bot import replies
from executor.domain.payloads import JsonObject


def replaced_message() -> tuple[str, list[JsonObject]]:
    """Return the text and the blocks; rich text, since nothing else may replace rich text."""
    text = replies.replaced_card()
    section: JsonObject = {
        "type": "rich_text_section",
        "elements": [{"type": "text", "text": text}],
    }
    return text, [{"type": "rich_text", "elements": [section]}]
