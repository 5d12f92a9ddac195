"""Where the app may look and write, and the error Slack names when it may not."""

from __future__ import annotations

from bot.sandbox.api_call import ApiCall, ApiError
from bot.sandbox.echo import echoed
from bot.sandbox.model import Channel, Json, Message


def channel_seen(call: ApiCall, name: str = "channel") -> Channel:
    """Return the channel; a private one the bot is not in does not exist for it."""
    channel = call.workspace.channels.get(call.text(name))
    if channel is None or (channel.is_private and call.caller.user_id not in channel.members):
        raise ApiError("channel_not_found")
    return channel


def channel_entered(call: ApiCall) -> Channel:
    """Return a channel that the bot is a member of."""
    channel = channel_seen(call)
    if call.caller.user_id not in channel.members:
        raise ApiError("not_in_channel")
    return channel


def own_message(call: ApiCall, channel: Channel, refusal: str) -> Message:
    """Return a message of the calling app in that channel, or raise `refusal`."""
    message = call.workspace.message(channel.id, call.text("ts"))
    if message is None:
        raise ApiError("message_not_found")
    if message.bot_id != call.caller.bot_id:
        raise ApiError(refusal)
    return message


def message_json(message: Message, *, with_metadata: bool = False) -> Json:
    """Return a message as history and chat methods show it: encoded, with its ids."""
    shown: Json = {
        "type": "message",
        "user": message.user,
        "ts": message.ts,
        "text": message.text,
        "blocks": echoed(message.blocks),
    }
    if message.bot_id:
        shown |= {"bot_id": message.bot_id, "app_id": message.app_id}
    if message.thread_ts:
        shown["thread_ts"] = message.thread_ts
    if message.edited:
        shown["edited"] = dict(message.edited)
    if message.now.attachments:
        shown["attachments"] = message.now.attachments
    if with_metadata and message.metadata:
        shown["metadata"] = message.metadata
    return shown
