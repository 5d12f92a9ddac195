"""Which listener answers what. Exactly one for each; Bolt runs a second one that matches."""

from __future__ import annotations

import re

from slack_bolt.async_app import AsyncApp

from bot.listeners.clicks import OUR_ACTIONS, Clicks
from bot.listeners.commands import COMMAND, Commands
from bot.listeners.views import Views

_NOT_OURS = re.compile(rf"^(?!(?:{'|'.join(OUR_ACTIONS)})$)")


def register(app: AsyncApp, clicks: Clicks, views: Views, commands: Commands) -> None:
    """Let Bolt find our listeners."""
    app.command(COMMAND)(commands.signoff)
    app.action("approve")(clicks.approve)
    app.action("reject")(clicks.reject)
    app.action("review")(clicks.review)
    app.action(_NOT_OURS)(clicks.outdated)
    app.view("reject_reason")(views.reject_reason)
    app.view("full_view")(views.full_view)
