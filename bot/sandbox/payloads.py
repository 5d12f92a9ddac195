"""The bodies of requests to the bot, built from what the workspace stored and nothing else.

Source: Slack's payload pages block_actions, view-interactions, slash commands, events-api, 2026.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.sandbox.blocks import interactive_elements
from bot.sandbox.command_text import escaped_command
from bot.sandbox.echo import echoed
from bot.sandbox.model import Ephemeral, Installation, Json, Message, OpenView, User
from bot.sandbox.places import message_json

if TYPE_CHECKING:
    from bot.sandbox.workspace import Workspace

_OPTION_KINDS = ("overflow", "static_select", "radio_buttons")


class NothingToClick(LookupError):
    """Raised when a person tries what their screen does not offer."""


def find_element(
    blocks: list[Json], action_id: str, block_id: str | None, option: str | None
) -> Json:
    """Return the `actions[]` entry for pressing that element. Raises NothingToClick."""
    for block in blocks:
        if block_id not in (None, block["block_id"]):
            continue
        for _, element in interactive_elements(block):
            if element["action_id"] == action_id:
                return _action(element, block["block_id"], option)
    raise NothingToClick(f"no element {action_id!r} among the {len(blocks)} blocks shown")


def _action(element: Json, block_id: str, option: str | None) -> Json:
    action: Json = {"type": element["type"], "action_id": element["action_id"],
                    "block_id": block_id}  # fmt: skip
    if element["type"] == "button":
        action["text"] = element["text"]
        if "value" in element:
            action["value"] = element["value"]
    elif element["type"] in _OPTION_KINDS:
        chosen = [o for o in element.get("options", []) if o["value"] == option]
        if not chosen:
            raise NothingToClick(f"no option {option!r} in {element['action_id']!r}")
        action["selected_option"] = chosen[0]
    else:
        action["value"] = option
    return echoed([action])[0]


def click_on_message(
    workspace: Workspace, user: User, message: Message, revision: int, action: Json
) -> Json:
    """Build block_actions for a click on one stored revision of a message."""
    shown = message.revisions[revision]
    body = message_json(message) | {"text": shown.text, "blocks": echoed(shown.blocks)}
    return _actions(workspace, user, action, channel=message.channel) | {
        "container": {
            "type": "message",
            "message_ts": message.ts,
            "channel_id": message.channel,
            "is_ephemeral": False,
        },
        "message": body,
        "response_url": response_url(workspace, message.channel, user, message.ts),
    }


def click_on_ephemeral(workspace: Workspace, user: User, seen: Ephemeral, action: Json) -> Json:
    """Build block_actions for an ephemeral: the payload carries no message."""
    return _actions(workspace, user, action, channel=seen.channel) | {
        "container": {
            "type": "message",
            "message_ts": seen.ts,
            "channel_id": seen.channel,
            "is_ephemeral": True,
        },
        "response_url": response_url(workspace, seen.channel, user, seen.ts, is_ephemeral=True),
    }


def click_in_view(workspace: Workspace, user: User, opened: OpenView, action: Json) -> Json:
    """Build block_actions for a button inside a modal or Home tab."""
    return _actions(workspace, user, action, channel=None) | {
        "container": {"type": "view", "view_id": opened.id},
        "view": view_json(workspace, opened),
    }


def _actions(workspace: Workspace, user: User, action: Json, channel: str | None) -> Json:
    payload = _common(workspace, user) | {
        "type": "block_actions",
        "trigger_id": workspace.triggers.issue(user.id, workspace.now()),
        "state": {"values": {}},
        "actions": [action | {"action_ts": f"{workspace.now():.6f}"}],
    }
    if channel is not None:
        payload["channel"] = {"id": channel, "name": workspace.channels[channel].name}
    return payload


def _common(workspace: Workspace, user: User) -> Json:
    """Return who acts where. `team` is the app's workspace, `user.team_id` the person's own."""
    team = workspace.team
    enterprise = {"id": team.enterprise_id, "name": team.name} if team.enterprise_id else None
    return {
        "user": {
            "id": user.id,
            "username": user.name,
            "name": user.name,
            "team_id": user.team_id,
        },
        "api_app_id": workspace.app.app_id,
        "team": None if workspace.org_wide else {"id": team.id, "domain": team.domain},
        "enterprise": enterprise,
        "is_enterprise_install": workspace.org_wide,
    }


def view_submission(workspace: Workspace, user: User, opened: OpenView, values: Json) -> Json:
    """Build view_submission; `values` is {block_id: {action_id: state}}."""
    shown = view_json(workspace, opened)
    shown["state"] = {"values": values}
    return _common(workspace, user) | {
        "type": "view_submission",
        "trigger_id": workspace.triggers.issue(user.id, workspace.now()),
        "view": shown,
        "response_urls": [],
    }


def view_closed(workspace: Workspace, user: User, opened: OpenView, is_cleared: bool) -> Json:
    return _common(workspace, user) | {
        "type": "view_closed",
        "view": view_json(workspace, opened),
        "is_cleared": is_cleared,
    }


def view_json(workspace: Workspace, opened: OpenView) -> Json:
    """Return an open view as the API and payloads show it."""
    view = opened.view
    shown: Json = {
        "id": opened.id,
        "team_id": workspace.team.id,
        "app_id": workspace.app.app_id,
        "bot_id": workspace.app.bot_id,
        "app_installed_team_id": workspace.team.id,
        "hash": opened.hash,
        "root_view_id": opened.root_view_id,
        "previous_view_id": opened.previous_view_id,
        "state": {"values": {}},
        "private_metadata": "",
        "callback_id": "",
        "external_id": "",
        "clear_on_close": False,
        "notify_on_close": False,
        "title": None,
        "submit": None,
        "close": None,
    }
    given = {k: echoed([v])[0] if isinstance(v, dict) else v for k, v in view.items()}
    return shown | given | {"blocks": echoed(view["blocks"])}


def slash_fields(
    workspace: Workspace, user: User, channel: str, command: str, text: str
) -> dict[str, str]:
    """Return the form fields of a slash command; every value is a string, also the booleans.

    Its text is encoded, for the manifest asks for that.
    """
    team = workspace.team
    fields = {
        "token": "deprecated",
        "team_id": team.id,
        "team_domain": team.domain,
        "channel_id": channel,
        "channel_name": workspace.channels[channel].name,
        "user_id": user.id,
        "user_name": user.name,
        "command": command,
        "text": escaped_command(workspace, text),
        "api_app_id": workspace.app.app_id,
        "is_enterprise_install": "true" if workspace.org_wide else "false",
        "response_url": response_url(workspace, channel, user, None),
        "trigger_id": workspace.triggers.issue(user.id, workspace.now()),
    }
    if team.enterprise_id:
        fields |= {"enterprise_id": team.enterprise_id, "enterprise_name": team.name}
    return fields


def app_mention(workspace: Workspace, message: Message, user: User) -> Json:
    """Build the Events API envelope for a message that names the app."""
    event: Json = {
        "type": "app_mention",
        "user": message.user,
        "text": message.text,
        "ts": message.ts,
        "channel": message.channel,
        "event_ts": message.ts,
        "team": user.team_id,
    }
    if message.thread_ts:
        event["thread_ts"] = message.thread_ts
    shared = workspace.channels[message.channel].is_ext_shared
    return envelope(workspace, event) | {"is_ext_shared_channel": shared}


def app_home_opened(workspace: Workspace, user: User) -> Json:
    """Build the event of opening the Home tab. Source: Slack, event app_home_opened, 2026."""
    event: Json = {
        "type": "app_home_opened",
        "user": user.id,
        "channel": f"D0HOME{user.id.removeprefix('U')}",
        "tab": "home",
        "event_ts": f"{workspace.now():.6f}",
    }
    home = workspace.homes.get(user.id)
    return event if home is None else event | {"view": view_json(workspace, home)}


def mention_by_bot(
    workspace: Workspace,
    message: Message,
    user: User,
    app: Installation,
    *,
    in_event: bool,
    as_subtype: bool,
) -> Json:
    """Build the envelope for a message of another app's bot that names ours; see ``Agent``."""
    mention = app_mention(workspace, message, user)
    mention["event"] |= {
        "bot_id": app.bot_id,
        "app_id": app.app_id,
        "bot_profile": {
            "id": app.bot_id,
            "app_id": app.app_id,
            "team_id": app.team_id,
            "name": user.name,
            "deleted": user.deleted,
        },
    }
    if in_event and message.metadata:
        mention["event"]["metadata"] = message.metadata
    if as_subtype:
        mention["event"] |= {"type": "message", "subtype": "bot_message", "channel_type": "channel"}
    return mention


def envelope(workspace: Workspace, event: Json) -> Json:
    """Wrap an event as the Events API sends it."""
    return {
        "token": "deprecated",
        "team_id": workspace.team.id,
        "api_app_id": workspace.app.app_id,
        "event": event,
        "type": "event_callback",
        "event_id": workspace.new_id("Ev0"),
        "event_time": int(workspace.now()),
        "authorizations": [
            {
                "enterprise_id": workspace.team.enterprise_id,
                "team_id": workspace.team.id,
                "user_id": workspace.app.user_id,
                "is_bot": True,
                "is_enterprise_install": workspace.org_wide,
            }
        ],
    }


def response_url(
    workspace: Workspace, channel: str, user: User, ts: str | None, is_ephemeral: bool = False
) -> str:
    """Issue a response URL of this sandbox."""
    key = workspace.response_urls.issue(channel, user.id, workspace.now(), ts, is_ephemeral)
    return f"{workspace.public_url}/response/{key}"
