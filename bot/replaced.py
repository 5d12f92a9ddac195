"""What stands on a message of ours that looked like a card and is none any more. Pure."""

from __future__ import annotations

from bot import replies
from executor.domain.payloads import JsonObject


def replaced_message() -> tuple[str, list[JsonObject]]:
    """Return the text and the blocks; rich text, since nothing else may replace rich text."""
    text = replies.replaced_card()
    return text, [_said(text)]


def outdated_view() -> JsonObject:
    """Make the modal that takes the place of one that cannot be submitted any more."""
    return {
        "type": "modal",
        "title": {"type": "plain_text", "text": "Out of date", "emoji": False},
        "close": {"type": "plain_text", "text": "Close", "emoji": False},
        "blocks": [_said(replies.outdated_card())],
    }


def _said(text: str) -> JsonObject:
    section: JsonObject = {
        "type": "rich_text_section",
        "elements": [{"type": "text", "text": text}],
    }
    return {"type": "rich_text", "elements": [section]}
