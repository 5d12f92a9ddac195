"""chat.*: what the app says. Each method checks everything, then commits in one step."""

from __future__ import annotations

from bot.sandbox import block_rules as rules
from bot.sandbox.api_call import ApiCall, ApiError
from bot.sandbox.message_body import MessageBody, read_body
from bot.sandbox.model import Channel, Json, Message
from bot.sandbox.places import channel_entered, channel_seen, message_json, own_message


def post_message(call: ApiCall) -> Json:
    """Post a message; a person's id as the channel is the app's conversation with that person."""
    channel = _direct(call) or channel_entered(call)
    if channel.is_archived:
        raise ApiError("is_archived")
    body = read_body(call, text_limit=None)
    thread_ts = call.text("thread_ts") or None
    if thread_ts and call.workspace.message(channel.id, thread_ts) is None:
        raise ApiError("thread_not_found")
    message = call.workspace.post(
        channel.id,
        call.caller.user_id,
        body.text,
        body.blocks,
        metadata=(body.metadata or None) if call.workspace.keeps_metadata else None,
        attachments=body.attachments,
        thread_ts=thread_ts,
        app=call.caller,
        sent=call.args,
    )
    answer = {
        "channel": channel.id,
        "ts": message.ts,
        "message": message_json(message, with_metadata=True),
    }
    return _with_warnings(answer, body)


def update(call: ApiCall) -> Json:
    """Replace a message. Text without blocks removes the blocks; metadata stays if not sent."""
    channel = channel_entered(call)
    if channel.is_archived:
        raise ApiError("is_inactive")
    message = own_message(call, channel, "cant_update_message")
    _refuse_closed_window(call, message)
    body = read_body(call, text_limit=rules.UPDATED_TEXT)
    blocks = body.blocks or []
    # Source: the error's own text, "Rich-text blocks cannot be replaced with non-rich-text blocks".
    if blocks and _has_rich_text(message.blocks) and not _has_rich_text(blocks):
        raise ApiError("block_mismatch")
    call.workspace.revise(
        message,
        body.text if body.has_text else message.text,
        blocks,
        message.metadata if body.metadata is None else body.metadata or None,
        body.attachments,
        sent=call.args,
    )
    answer = {
        "channel": channel.id,
        "ts": message.ts,
        "text": message.text,
        "message": message_json(message, with_metadata=True),
    }
    return _with_warnings(answer, body)


def delete(call: ApiCall) -> Json:
    channel = channel_entered(call)
    message = own_message(call, channel, "cant_delete_message")
    call.workspace.delete(message)
    return {"channel": channel.id, "ts": message.ts}


def post_ephemeral(call: ApiCall) -> Json:
    channel = channel_entered(call)
    if channel.is_archived:
        raise ApiError("is_archived")
    user = call.text("user")
    if user not in channel.members:
        raise ApiError("user_not_in_channel")
    body = read_body(call, text_limit=None)
    whispered = call.workspace.whisper(
        channel.id, user, body.text, body.blocks, call.text("thread_ts") or None
    )
    return _with_warnings({"message_ts": whispered.ts}, body)


def get_permalink(call: ApiCall) -> Json:
    channel = channel_seen(call)
    ts = call.text("message_ts")
    if call.workspace.message(channel.id, ts) is None:
        raise ApiError("message_not_found")
    domain = call.workspace.team.domain
    link = f"https://{domain}.slack.com/archives/{channel.id}/p{ts.replace('.', '')}"
    return {"channel": channel.id, "permalink": link}


def _direct(call: ApiCall) -> Channel | None:
    user = call.workspace.users.get(call.text("channel"))
    if user is None:
        return None
    if user.is_bot:
        raise ApiError("cannot_dm_bot")
    direct = call.workspace.direct(user.id)
    if direct is None:
        raise ApiError("channel_not_found")
    return direct


def _refuse_closed_window(call: ApiCall, message: Message) -> None:
    window = call.workspace.edit_window_seconds
    age = call.workspace.now() - message.revisions[0].at
    if message.edit_window_closed or (window is not None and age > window):
        raise ApiError("edit_window_closed")


def _has_rich_text(blocks: list[Json]) -> bool:
    return any(block["type"] == "rich_text" for block in blocks)


def _with_warnings(answer: Json, body: MessageBody) -> Json:
    if not body.warnings:
        return answer
    return answer | {
        "warning": ",".join(body.warnings),
        "response_metadata": {"warnings": list(body.warnings)},
    }
