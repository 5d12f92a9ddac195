"""Which listener answers what. Exactly one for each; Bolt runs a second one that matches."""

from __future__ import annotations

import logging
import re

from slack_bolt.async_app import AsyncApp
from slack_bolt.response import BoltResponse

from bot.card_buttons import MENU
from bot.ingress.handler import UNAVAILABLE
from bot.listeners.asking import Asking
from bot.listeners.clicks import OUR_ACTIONS, Clicks
from bot.listeners.commands import COMMAND, Commands
from bot.listeners.editing import Editing
from bot.listeners.home import HomePresses
from bot.listeners.menu import Menu
from bot.listeners.proposing import Proposing
from bot.listeners.settling import Settling
from bot.listeners.views import Views
from bot.listeners.withdrawing import Withdrawing
from executor.domain.errors import ExecutorError

_log = logging.getLogger(__name__)

_NOT_OURS = re.compile(rf"^(?!(?:{'|'.join(OUR_ACTIONS)})$)")


def register(
    app: AsyncApp,
    clicks: Clicks,
    settling: Settling,
    editing: Editing,
    proposing: Proposing,
    asking: Asking,
    withdrawing: Withdrawing,
    home: HomePresses,
    views: Views,
    commands: Commands,
) -> None:
    """Let Bolt find our listeners, and let a failure be one that the person sees."""
    app.command(COMMAND)(commands.signoff)
    app.action("approve")(clicks.approve)
    app.action("reject")(clicks.reject)
    app.action("review")(clicks.review)
    app.action("settle_sent")(settling.sent)
    app.action("settle_not_sent")(settling.not_sent)
    app.action("settle_send_again")(settling.send_again)
    app.action("settle_leave")(settling.leave)
    app.action("edit")(editing.ask)
    app.action("propose_again")(proposing.again)
    app.action("ask")(asking.ask)
    app.action("withdraw")(withdrawing.withdraw)
    app.action("cancel_run")(home.cancel_run)
    choices = {"ask": asking.ask, "withdraw": withdrawing.withdraw}
    app.action(MENU)(Menu(choices, clicks.outdated).chosen)
    app.action(_NOT_OURS)(clicks.outdated)
    app.view("reject_reason")(views.reject_reason)
    app.view("full_view")(views.full_view)
    app.view("word")(settling.word)
    app.view("edit")(editing.submitted)
    app.view("ask")(asking.submitted)
    app.error(_failed)


async def _failed(error: Exception) -> BoltResponse:
    if isinstance(error, ExecutorError):
        _log.warning("a request could not be taken on: %s", type(error).__name__)
        return BoltResponse(status=UNAVAILABLE, body="unavailable")
    _log.error("a request failed", exc_info=error)
    return BoltResponse(status=500, body="failed")
