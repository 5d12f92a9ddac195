"""Presses of *Propose again*, recorded before the ack; a notice tells each what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from slack_bolt.async_app import AsyncAck

from bot import replies
from bot.button_value import ButtonValue
from bot.identity import IdentityWatch
from bot.ingress.handler import REQUEST_HASH
from bot.kept_work import KeptWork
from bot.listeners.clicks import read_click
from bot.listeners.pressing import Outdated, Pressing
from bot.listeners.recording import Recording
from bot.whisper import Whisperer
from executor.domain.ids import TenantId
from executor.engine.engine import Engine
from executor.engine.pressing import read_back
from executor.engine.proposing_again import propose_again
from executor.engine.replacement import AskAgain, AskAgainResult
from executor.engine.replacement_scene import Workshop


class Proposing:
    """Takes the presses of one process.

    ``outdated`` answers a button whose value is not ours. Without a ``shop`` none can be taken.
    """

    def __init__(
        self,
        engine: Engine,
        shop: Workshop | None,
        tenant: TenantId,
        people: IdentityWatch,
        pressing: Pressing,
        whisperer: Whisperer,
        kept: KeptWork,
        outdated: Outdated,
    ) -> None:
        self._shop = shop
        self._tenant = tenant
        self._pressing = pressing
        self._whisperer = whisperer
        self._outdated = outdated
        self._recording: Recording[AskAgain, AskAgainResult] = Recording(
            self._propose, partial(read_back, engine), people, whisperer, kept, most=1
        )

    async def again(self, ack: AsyncAck, body: dict[str, Any], context: Mapping[str, Any]) -> None:
        """Propose the same again for the ticket as it is now."""
        click = read_click(body)
        if click is None or not self._pressing.is_ours(click):
            await ack()
            return
        value = ButtonValue.decode(click.action.value)
        if value is None:
            await self._outdated(ack, body)
            return
        if self._shop is None:
            text = replies.cannot_edit_here()
            self._whisperer.say(click.container.channel_id, click.user.id, text)
            await ack()
            return
        await self._recording.record(
            AskAgain(
                self._tenant,
                value.operation,
                value.approval,
                value.digest,
                value.content_revision,
                value.nonce,
                click.principal(self._tenant),
                click.container.channel_id,
                click.container.message_ts,
                context[REQUEST_HASH],
                click.user.id,
            )
        )
        await ack()

    async def idle(self) -> None:
        """Wait until every press that was taken has been answered."""
        await self._recording.idle()

    async def _propose(self, asked: Sequence[AskAgain]) -> list[AskAgainResult]:
        """Take one press; each has a commit of its own."""
        assert self._shop is not None, "no press is taken otherwise"
        [one] = asked
        return [await propose_again(self._shop, one)]
