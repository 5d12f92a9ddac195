"""``signoff manifest``: the Slack app as a file to paste, made from what the code really uses.

Source: Slack, app manifest reference and ``slackapi/manifest-schema`` v2, 2026. The scopes are the
ones that the bot's calls need and no more: no ``chat:write.public``, no ``chat:write.customize``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from urllib.parse import urlsplit

import click

from bot.event_names import GROUP_EVENTS, HOME_EVENT, PEOPLE_EVENTS, WORKSPACE_EVENTS

EVENTS_PATH = "/slack/events"

BOT_SCOPES: Mapping[str, str] = {
    "app_mentions:read": "runs that are asked for by naming the bot",
    "channels:history": "finding a card whose posting was not confirmed",
    "channels:read": "refusing to show a card in a channel that is shared with others",
    "chat:write": "cards and private answers",
    "commands": "/signoff",
    "groups:history": "the same in a private channel",
    "groups:read": "the same for a private channel",
    "metadata.message:read": "requests that other bots put into a message's metadata",
    "usergroups:read": "who is in a user group that the policy names",
    "users:read": "who is a member, a guest, a bot or deactivated",
}
BOT_EVENTS = ("app_mention", HOME_EVENT, *PEOPLE_EVENTS, *GROUP_EVENTS, *WORKSPACE_EVENTS)


def slack_manifest(url: str) -> dict[str, object]:
    """Compose the manifest of an app whose requests go to ``url``."""
    request_url = url.rstrip("/") + EVENTS_PATH
    return {
        "display_information": {
            "name": "Signoff",
            "description": "An agent proposes, a person here signs it off, it is done once.",
            "background_color": "#1f3a2d",
        },
        "features": {
            "app_home": {"home_tab_enabled": True},
            "bot_user": {"display_name": "Signoff", "always_online": True},
            "slash_commands": [
                {
                    "command": "/signoff",
                    "url": request_url,
                    "description": "Start, follow and stop runs; give and pass on roles",
                    "usage_hint": "run close 4101 | status | cancel run_7 | pending | grants",
                    # Otherwise a mention arrives as a name, which is nobody's for sure.
                    "should_escape": True,
                }
            ],
        },
        "oauth_config": {"scopes": {"bot": sorted(BOT_SCOPES)}},
        "settings": {
            "event_subscriptions": {"request_url": request_url, "bot_events": list(BOT_EVENTS)},
            "interactivity": {"is_enabled": True, "request_url": request_url},
            "org_deploy_enabled": False,
            "socket_mode_enabled": False,
            "token_rotation_enabled": False,
        },
    }


def _checked_url(_: click.Context, __: click.Parameter, value: str) -> str:
    try:
        parts = urlsplit(value)
        secure = parts.scheme == "https" and bool(parts.hostname) and "@" not in parts.netloc
    except ValueError:
        secure = False
    if not secure or parts.query or parts.fragment:
        raise click.BadParameter(
            "Slack sends requests to https addresses only: write the address under which it "
            "reaches the bot, for example https://signoff.example.com"
        )
    if value.rstrip("/").endswith(EVENTS_PATH):
        raise click.BadParameter(f"leave {EVENTS_PATH} out: it is added to the address")
    return value


@click.command()
@click.option(
    "--url",
    required=True,
    metavar="URL",
    callback=_checked_url,
    help="Where Slack reaches the bot from outside, for example https://signoff.example.com",
)
def manifest(url: str) -> None:
    """Print the manifest of the Slack app, ready to paste.

    On api.slack.com/apps choose Create New App, From a manifest, and paste it as JSON. Then install
    the app, copy the Bot User OAuth Token into SLACK_BOT_TOKEN and the Signing Secret into
    SLACK_SIGNING_SECRET, and invite the app into the channel of the cards.
    """
    click.echo(json.dumps(slack_manifest(url), indent=2, ensure_ascii=False))
