"""conversations.*: reading back. Newest first in history, oldest first in a thread, in pages."""

from __future__ import annotations

import base64
import binascii
import re

from bot.sandbox.api_call import ApiCall, ApiError
from bot.sandbox.model import Json, Message
from bot.sandbox.places import channel_entered, channel_seen, message_json

_TS = re.compile(r"\d+(\.\d+)?")


def history(call: ApiCall) -> Json:
    channel = channel_entered(call)
    newest_first = [m for m in reversed(_not_hidden(call, channel.id)) if not m.is_reply]
    return _page(call, _between(call, newest_first))


def replies(call: ApiCall) -> Json:
    channel = channel_entered(call)
    parent = call.text("ts")
    thread = [m for m in _not_hidden(call, channel.id) if parent in (m.ts, m.thread_ts)]
    if not thread:
        raise ApiError("thread_not_found")
    return _page(call, _between(call, thread))


def info(call: ApiCall) -> Json:
    channel = channel_seen(call)
    shown: Json = {
        "id": channel.id,
        "name": channel.name,
        "name_normalized": channel.name,
        "is_channel": not channel.is_private,
        "is_group": channel.is_private,
        "is_im": False,
        "is_mpim": False,
        "is_private": channel.is_private,
        "is_archived": channel.is_archived,
        "is_shared": channel.is_shared or channel.is_ext_shared or channel.is_org_shared,
        "is_ext_shared": channel.is_ext_shared,
        "is_org_shared": channel.is_org_shared,
        "is_pending_ext_shared": channel.is_pending_ext_shared,
        "is_member": call.caller.user_id in channel.members,
        "context_team_id": call.workspace.team.id,
    }
    if call.flag("include_num_members"):
        shown["num_members"] = len(channel.members)
    return {"channel": shown}


def members(call: ApiCall) -> Json:
    channel = channel_seen(call)
    everyone = sorted(channel.members)
    start, limit = _cursor(call), _limit(call)
    return {
        "members": everyone[start : start + limit],
        "response_metadata": {"next_cursor": _next(start + limit, len(everyone))},
    }


def _not_hidden(call: ApiCall, channel: str) -> list[Message]:
    visible = call.workspace.visible(channel)
    return visible[: len(visible) - call.hide_newest] if call.hide_newest else visible


def _between(call: ApiCall, messages: list[Message]) -> list[Message]:
    oldest, latest = _stamp(call, "oldest"), _stamp(call, "latest")
    inclusive = call.flag("inclusive")

    def inside(message: Message) -> bool:
        at = _micros(message.ts)
        if inclusive and at in (oldest, latest):
            return True
        return (oldest is None or at > oldest) and (latest is None or at < latest)

    return [message for message in messages if inside(message)]


def _stamp(call: ApiCall, name: str) -> int | None:
    value = call.args.get(name)
    if value in (None, ""):
        return None
    if not _TS.fullmatch(str(value)):
        raise ApiError(f"invalid_ts_{name}")
    return _micros(str(value))


def _micros(ts: str) -> int:
    """Compare stamps as integers; a float would merge neighbours."""
    seconds, _, fraction = ts.partition(".")
    return int(seconds) * 1_000_000 + int(fraction.ljust(6, "0")[:6])


def _page(call: ApiCall, messages: list[Message]) -> Json:
    start, limit = _cursor(call), min(_limit(call), call.workspace.history_page)
    chosen = messages[start : start + limit]
    with_metadata = call.flag("include_all_metadata")
    following = _next(start + limit, len(messages))
    answer: Json = {
        "messages": [message_json(m, with_metadata=with_metadata) for m in chosen],
        "has_more": bool(following),
    }
    if following:
        answer["response_metadata"] = {"next_cursor": following}
    return answer


def _limit(call: ApiCall) -> int:
    limit = call.number("limit", 100)
    if not 1 <= limit <= 999:
        raise ApiError("invalid_limit")
    return limit


def _cursor(call: ApiCall) -> int:
    cursor = call.text("cursor")
    if not cursor:
        return 0
    try:
        kind, _, start = base64.b64decode(cursor, validate=True).decode().partition(":")
        if kind != "next":
            raise ApiError("invalid_cursor")
        return int(start)
    except (binascii.Error, UnicodeDecodeError, ValueError):
        raise ApiError("invalid_cursor") from None


def _next(start: int, total: int) -> str:
    return base64.b64encode(f"next:{start}".encode()).decode() if start < total else ""
