"""Approvals that nobody can see are told to people who can act, once for as long as it lasts.

In the fallback channel, where the cards follow; or in their own channel, if only the cards are
refused there; or else to each approver that the policy names and to whoever asked. A notice has no
buttons: nothing can be decided on it. Where nobody can be told, it is tried again, ever later.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from slack_sdk.web.async_client import AsyncWebClient

from bot.delivery_troubles import DeliveryTroubles
from bot.delivery_words import unseen_text
from bot.slack_answers import LOST_CALL, Proof, Scope, Trouble, trouble
from executor.domain.ids import PrincipalId, slack_user
from executor.domain.turn import is_closed
from executor.engine.card_turns import Delivery, Family, reserve_post
from executor.engine.delivery_trouble import WORKSPACE, note_trouble
from executor.engine.engine import Engine
from executor.engine.unseen import (
    ToTell,
    Untold,
    alarm_unseen,
    approvers_to_tell,
    remember_telling,
    to_tell,
)

_log = logging.getLogger(__name__)

MOST_PEOPLE = 30
_CALL_SECONDS = 6.0


class UnseenNotices:
    """Tells of the unseen approvals of one workspace."""

    def __init__(
        self,
        engine: Engine,
        client: AsyncWebClient,
        delivery: Delivery,
        troubles: DeliveryTroubles,
    ) -> None:
        self._engine = engine
        self._client = client
        self._delivery = delivery
        self._troubles = troubles

    async def take(self, _: int) -> Sequence[ToTell]:
        """Alarm for what has become unseen, and take what people are to hear of now."""
        await alarm_unseen(self._engine)
        return await to_tell(self._engine, self._delivery)

    async def tell(self, untold: ToTell) -> None:
        """Tell of the approvals of one channel in the first way that works."""
        for channel in self._public_places(untold):
            follow = channel == self._delivery.route.fallback and not untold.of_cards
            text = self._text(untold, untold.approvals, here=follow)
            problem = await self._troubles.objection(channel) or await self._said(channel, text)
            if problem is None:
                await self._remember(untold.approvals)
                return
            if problem.proof is Proof.RATE_LIMITED or problem.scope is Scope.WORKSPACE:
                await self._left(problem)
                return
            _log.warning("unseen approvals could not be told in %s: %s", channel, problem.code)
            if problem.scope is Scope.CHANNEL:
                await self._troubles.note(channel, problem)
        await self._tell_each(untold)

    def _public_places(self, untold: ToTell) -> list[str]:
        own = [untold.channel] if untold.of_cards else []
        spare = self._delivery.route.fallback
        if spare is None or spare == untold.channel or is_closed(spare, untold.troubles):
            return own
        return [*own, spare]

    async def _tell_each(self, untold: ToTell) -> None:
        """Tell approvers of all of it, and whoever asked of theirs."""
        told: set[str] = set()
        for user, approvals in (await self._audience(untold.approvals)).items():
            problem = await self._said(user, self._text(untold, approvals, here=False))
            if problem is None:
                told.add(user)
            elif problem.proof is Proof.RATE_LIMITED or problem.scope is Scope.WORKSPACE:
                await self._left(problem)
                break
            else:
                _log.info("somebody could not be told of an unseen approval: %s", problem.code)
        if told:
            await self._remember(untold.approvals)
        else:
            _log.error("nobody could be told of %d unseen approvals", len(untold.approvals))

    async def _audience(self, approvals: Sequence[Untold]) -> dict[str, Sequence[Untold]]:
        """Name whom to write to, and of which approvals each is to hear."""
        named = await approvers_to_tell(self._engine, self._delivery.tenant_id)
        approvers = {user for who in named if (user := self._user(who)) is not None}
        audience: dict[str, Sequence[Untold]] = dict.fromkeys(sorted(approvers), approvals)
        for one in approvals:
            asked = self._user(one.requester)
            if asked is not None and asked not in approvers:
                audience[asked] = [*audience.get(asked, ()), one]
        return dict(list(audience.items())[:MOST_PEOPLE])

    def _user(self, principal: PrincipalId) -> str | None:
        """Name a member of this workspace; nobody else is written to."""
        user = slack_user(principal)
        return user[1] if user is not None and user[0] == self._delivery.tenant_id else None

    def _text(self, untold: ToTell, approvals: Sequence[Untold], *, here: bool) -> str:
        numbers = [one.number for one in approvals]
        return unseen_text(
            untold.channel, untold.problem, numbers, of_cards=untold.of_cards, here=here
        )

    async def _said(self, channel: str, text: str) -> Trouble | None:
        wait = await reserve_post(self._engine, self._delivery, channel)
        if wait > _CALL_SECONDS:
            return Trouble(Proof.RATE_LIMITED, "ratelimited", wait)
        await asyncio.sleep(wait)
        try:
            async with asyncio.timeout(_CALL_SECONDS):
                await self._client.chat_postMessage(
                    channel=channel,
                    text=text,
                    unfurl_links=False,
                    unfurl_media=False,
                    parse="none",
                    link_names=False,
                )
        except LOST_CALL as error:
            return trouble(error)
        return None

    async def _left(self, problem: Trouble) -> None:
        """Leave it for the next time: the database has put it off already."""
        _log.warning("people could not be told of unseen approvals: %s", problem.code)
        if problem.proof is Proof.RATE_LIMITED:
            await self._troubles.hold(Family.POST, problem)
        elif problem.scope is Scope.WORKSPACE:
            tenant = self._delivery.tenant_id
            await note_trouble(self._engine, tenant, WORKSPACE, problem.code, lasting=True)

    async def _remember(self, approvals: Sequence[Untold]) -> None:
        subjects = [one.subject for one in approvals]
        await remember_telling(self._engine, self._delivery.tenant_id, subjects)
