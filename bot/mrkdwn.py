"""What stands in ``mrkdwn`` among our own words: people, commands, and names with their escapes.

Slack asks for ``&``, ``<`` and ``>`` to be escaped there (docs.slack.dev, formatting, 2026).
"""

from __future__ import annotations

import re

from executor.domain.ids import PrincipalId, is_policy, slack_user

_USER_ID = re.compile(r"[UW][A-Z0-9_]{1,30}")


def mention(principal: PrincipalId) -> str:
    """Name a principal in ``mrkdwn``: a Slack user by a mention, all others by their escaped id."""
    user = slack_user(principal)
    if user is not None and _USER_ID.fullmatch(user[1]):
        return f"<@{user[1]}>"
    return "the policy" if is_policy(principal) else escape_mrkdwn(principal)


def escape_mrkdwn(text: str) -> str:
    """Escape exactly what Slack asks for in ``mrkdwn`` and ``text``."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def hint(words: str) -> str:
    """Spell the slash command with these words."""
    return f"`/signoff {words}`"
