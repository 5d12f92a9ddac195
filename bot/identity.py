"""What Slack says about a person becomes an observation; where Slack says nothing, nobody may act.

Observations carry the database's time from before the question was asked, so that no host's clock
can make one look younger than it is. The executor reads them and never asks Slack itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime

from slack_sdk.web.async_client import AsyncWebClient

from bot.kept_work import KeptWork, TooMuchAtOnce
from bot.slack_answers import LOST_CALL, trouble
from executor.domain.errors import DatabaseUnavailable, ExecutorError
from executor.domain.identity import Identity
from executor.domain.ids import PrincipalId, TenantId, slack_user
from executor.engine.engine import Engine
from executor.engine.people import observe, to_look_at, wanted
from executor.engine.status import database_time

_log = logging.getLogger(__name__)

READ_WITHIN_SECONDS = 0.4
LOOK_WITHIN_SECONDS = 0.6
_LOOK_SECONDS = 5.0
_AGAIN_SECONDS = 1.0
_POLL_SECONDS = 2.0

Wait = Callable[[float], Awaitable[bool]]
"""Waits for news at most so many seconds; says whether there was any."""


def identity_from(user: Mapping[str, object], observed_at: datetime) -> Identity:
    """Read one user of ``users.info``; a flag that is missing counts against the person."""
    bot = bool(user.get("is_bot", True)) or user.get("id") == "USLACKBOT"
    guest = bool(user.get("is_restricted", True)) or bool(user.get("is_ultra_restricted", True))
    return Identity(
        team_id=str(user.get("team_id", "")),
        deleted=bool(user.get("deleted", True)),
        is_bot=bot,
        is_guest=guest and not bot,
        is_stranger=bool(user.get("is_stranger", False)),
        observed_at=observed_at,
    )


def nobody(team_id: str, observed_at: datetime) -> Identity:
    """Describe somebody whom Slack does not know: as good as deactivated."""
    return Identity(team_id, True, False, False, False, observed_at)


class IdentityWatch:
    """Keeps observations fresh: of people somebody waits for, and of whoever acts just now."""

    def __init__(
        self, engine: Engine, tenant: TenantId, client: AsyncWebClient, kept: KeptWork
    ) -> None:
        self._engine = engine
        self._tenant = tenant
        self._client = client
        self._kept = kept

    async def ensure_fresh(self, people: Sequence[PrincipalId]) -> bool:
        """Have observations of ``people`` that can be decided on; ``False``: Slack was too slow.

        A look that is too slow goes on, so that the next click finds it done. Opens its own
        transactions. Raises ``DatabaseUnavailable``.
        """
        try:
            old = await self._kept.within(
                READ_WITHIN_SECONDS, to_look_at(self._engine, self._tenant, people)
            )
        except (TimeoutError, TooMuchAtOnce) as error:
            raise DatabaseUnavailable("who acts could not be read in time") from error
        try:
            return await self._kept.within(LOOK_WITHIN_SECONDS, self._look_at_all(old))
        except (TimeoutError, TooMuchAtOnce):
            return False

    async def run(self, wait: Wait) -> None:
        """Look at whomever the executor waits for, until cancelled."""
        while True:
            try:
                asked = await wanted(self._engine)
                mine = [who for tenant, who in asked if tenant == self._tenant]
                looked = await self._look_at_all(mine)
            except ExecutorError as error:
                _log.warning("nobody could be looked at: %s", type(error).__name__)
                looked = False
            if looked:
                await wait(_POLL_SECONDS)
            else:
                await asyncio.sleep(_AGAIN_SECONDS)

    async def _look_at_all(self, people: Sequence[PrincipalId]) -> bool:
        return all(await asyncio.gather(*(self._look_in_time(who) for who in people)))

    async def _look_in_time(self, who: PrincipalId) -> bool:
        try:
            async with asyncio.timeout(_LOOK_SECONDS):
                return await self._look(who)
        except TimeoutError:
            return False

    async def _look(self, who: PrincipalId) -> bool:
        """Ask Slack about one person and store the answer; ``False``: there was no answer."""
        user = slack_user(who)
        observed_at = await database_time(self._engine)
        if user is None:
            # Not a Slack user: nobody here can vouch for it.
            await observe(self._engine, self._tenant, who, nobody("", observed_at))
            return True
        try:
            answer = await self._client.users_info(user=user[1])
        except LOST_CALL as error:
            problem = trouble(error)
            if not problem.is_nobody:
                _log.warning("Slack did not say who somebody is: %s", problem.code)
                return False
            identity = nobody(user[0], observed_at)
        else:
            found = answer.get("user")
            if not isinstance(found, Mapping):
                return False
            identity = identity_from(found, observed_at)
        await observe(self._engine, self._tenant, who, identity)
        return True
