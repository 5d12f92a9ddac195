"""What Slack makes of a command's text where the manifest says ``should_escape``: people, channels
and links are put between ``<`` and ``>``, and what was typed of those is encoded.

Source: docs.slack.dev, slash commands and app manifests, 2026.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bot.sandbox.echo import encode_text

if TYPE_CHECKING:
    from bot.sandbox.workspace import Workspace

_NAMED = re.compile(r"(?<![\w@#])(?P<sign>[@#])(?P<name>[a-z0-9][a-z0-9._-]*[a-z0-9])")
_LINK = re.compile(r"(?<![\w<])https?://[^\s<>|]*[^\s<>|.,;:!?)]")


def escaped_command(workspace: Workspace, text: str) -> str:
    """Encode what was typed; ``@rene`` becomes a mention where somebody is called that."""
    people = {user.name: user.id for user in workspace.users.values()}
    channels = {channel.name: channel.id for channel in workspace.channels.values()}

    def named(found: re.Match[str]) -> str:
        known = people if found["sign"] == "@" else channels
        id_ = known.get(found["name"])
        return found[0] if id_ is None else f"<{found['sign']}{id_}|{found['name']}>"

    return _NAMED.sub(named, _LINK.sub(r"<\g<0>>", encode_text(text)))
