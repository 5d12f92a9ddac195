"""What people press on their Home tab: they stop runs of theirs there, and see what came of it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from slack_bolt.async_app import AsyncAck

from bot import command_replies, replies
from bot.home_delivery import HomeDelivery
from bot.identity import IdentityWatch
from bot.kept_work import KeptWork, TooMuchAtOnce
from bot.listeners.cancelling import cancel_run
from bot.listeners.clicks import read_click
from bot.listeners.payload import ButtonClick
from bot.listeners.pressing import Pressing
from executor.domain.errors import CommitUnknown, DatabaseUnavailable
from executor.domain.ids import TenantId, parse_run_number
from executor.engine.engine import Engine

_log = logging.getLogger(__name__)

_ANSWER_SECONDS = 2.0


class HomePresses:
    """Answers presses on Home tabs."""

    def __init__(
        self,
        engine: Engine,
        tenant: TenantId,
        people: IdentityWatch,
        pressing: Pressing,
        homes: HomeDelivery,
        kept: KeptWork,
    ) -> None:
        self._engine = engine
        self._tenant = tenant
        self._people = people
        self._pressing = pressing
        self._homes = homes
        self._kept = kept

    async def cancel_run(
        self, ack: AsyncAck, body: dict[str, Any], context: Mapping[str, Any]
    ) -> None:
        """Stop a run, by the rule of the slash command, and show the tab with what came of it."""
        click = read_click(body)
        if click is not None and self._pressing.is_ours(click):
            note = await self._cancel(click)
            self._homes.refresh(click.user.id, note)
        await ack()

    async def _cancel(self, click: ButtonClick) -> str:
        number = parse_run_number(click.action.value)
        if number is None:
            return command_replies.run_unknown()
        try:
            principal = await self._people.acting(click.principal(self._tenant))
            if principal is None:
                return replies.identity_unverified()
            return await self._kept.within(
                _ANSWER_SECONDS, cancel_run(self._engine, self._tenant, number, principal)
            )
        except (DatabaseUnavailable, TooMuchAtOnce):
            return command_replies.command_not_recorded()
        except (CommitUnknown, TimeoutError):
            return command_replies.command_not_confirmed()
