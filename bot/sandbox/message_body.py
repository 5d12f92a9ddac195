"""What a message may be made of: the checks that posting, updating and whispering share.

Source: Slack's method pages of chat.postMessage, chat.update and chat.postEphemeral, 2026; the
budget over all blocks is reported in slackapi/bolt-js#2509 and #2867 and documented nowhere.
"""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass

from bot.sandbox import block_rules as rules
from bot.sandbox.api_call import ApiCall, ApiError
from bot.sandbox.blocks import BlockError, length, over_budget, validate_message
from bot.sandbox.model import Json


@dataclass(frozen=True)
class MessageBody:
    """The checked parts of a message. `blocks` and `metadata` are None when they were not sent."""

    text: str
    has_text: bool
    blocks: list[Json] | None
    attachments: list[Json]
    metadata: Json | None
    warnings: tuple[str, ...] = ()


def refuse_blocks(errors: list[BlockError]) -> ApiError:
    """Build the `invalid_blocks` answer: Slack's messages, and the errors in full."""
    messages = [f"[ERROR] {e.message} [json-pointer:{e.pointer}]" for e in errors]
    return ApiError(
        "invalid_blocks",
        errors=[e.to_json() for e in errors],
        response_metadata={"messages": messages},
    )


def checked_blocks(blocks: object, extra_text: str = "") -> list[Json]:
    """Return the blocks of a message if Slack would take them, else raise ApiError."""
    if not isinstance(blocks, list):
        raise ApiError("invalid_blocks_format")
    errors = validate_message(blocks)
    if errors:
        raise refuse_blocks(errors)
    if over_budget(blocks, extra_text):
        raise ApiError("msg_blocks_too_long")
    return blocks


def read_body(call: ApiCall, *, text_limit: int | None) -> MessageBody:
    """Check a call's message. Past `text_limit` it is `msg_too_long`; None truncates at 40,000."""
    blocks = call.decoded("blocks", "invalid_blocks_format")
    attachments = _attachments(call)
    text = call.text("text")
    markdown = call.text("markdown_text")
    if markdown:
        if text or blocks or attachments:
            raise ApiError("markdown_text_conflict")
        if length(markdown) > rules.MARKDOWN_BUDGET:
            raise ApiError("msg_too_long")
        blocks = [{"type": "markdown", "text": markdown}]
    if any(0xD800 <= ord(c) <= 0xDFFF for c in text):
        raise ApiError("invalid_arguments")
    checked = None if blocks is None else checked_blocks(blocks, _attachment_text(attachments))
    if not text.strip() and not checked and not attachments:
        raise ApiError("no_text")
    warnings: tuple[str, ...] = ()
    if text_limit is not None and length(text) > text_limit:
        raise ApiError("msg_too_long")
    if length(text) > rules.POSTED_TEXT:
        text, warnings = text[: rules.POSTED_TEXT], ("message_truncated",)
    if checked and call.trim_text:
        checked = trimmed(checked)
    return MessageBody(text, "text" in call.args, checked, attachments, _metadata(call), warnings)


def _attachments(call: ApiCall) -> list[Json]:
    attachments = call.decoded("attachments", "invalid_attachments") or []
    if not isinstance(attachments, list) or not all(isinstance(a, dict) for a in attachments):
        raise ApiError("invalid_attachments")
    if len(attachments) > rules.MAX_ATTACHMENTS:
        raise ApiError("too_many_attachments")
    for attachment in attachments:
        if "blocks" in attachment:
            checked_blocks(attachment["blocks"])
    return attachments


def _attachment_text(attachments: list[Json]) -> str:
    return "".join(json.dumps(a, ensure_ascii=False) for a in attachments)


def _metadata(call: ApiCall) -> Json | None:
    metadata = call.decoded("metadata", "invalid_metadata_format")
    if metadata is None:
        return None
    if not isinstance(metadata, dict):
        raise ApiError("invalid_metadata_format")
    if not metadata:
        return {}
    payload = metadata.get("event_payload")
    if not isinstance(metadata.get("event_type"), str) or not isinstance(payload, dict):
        raise ApiError("invalid_metadata_schema")
    if len(json.dumps(metadata)) > rules.METADATA_BYTES:
        raise ApiError("metadata_too_large")
    return {"event_type": metadata["event_type"], "event_payload": payload}


def trimmed(blocks: list[Json]) -> list[Json]:
    """Return the blocks as a Slack that trims text would store them."""
    result = copy.deepcopy(blocks)
    pending: list[object] = [*result]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            if isinstance(node.get("text"), str):
                node["text"] = node["text"].strip()
            pending.extend(node.values())
        elif isinstance(node, list):
            pending.extend(node)
    return result
