"""What Slack says about a person becomes an observation; where Slack says nothing, nobody may act.

Observations carry the database's time from before the question was asked, so that no host's clock
can make one look younger than it is. The executor reads them and never asks Slack itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from slack_sdk.web.async_client import AsyncWebClient

from bot.groups import GroupWatch
from bot.kept_work import KeptWork, TooMuchAtOnce
from bot.slack_answers import LOST_CALL, trouble
from executor.domain.errors import DatabaseUnavailable, ExecutorError
from executor.domain.identity import Identity, nobody, somebody_elsewhere
from executor.domain.ids import PrincipalId, TenantId, slack_principal, slack_user
from executor.engine.engine import Engine
from executor.engine.people import observe, to_look_at, wanted, who_acts
from executor.engine.status import database_time

_log = logging.getLogger(__name__)

READ_WITHIN_SECONDS = 0.4
LOOK_WITHIN_SECONDS = 0.6
_LOOK_SECONDS = 5.0
_AGAIN_SECONDS = 1.0
_POLL_SECONDS = 2.0

T = TypeVar("T")

Wait = Callable[[float], Awaitable[bool]]
"""Waits for news at most so many seconds; says whether there was any."""


def identity_from(user: Mapping[str, object], observed_at: datetime) -> Identity:
    """Read one user of ``users.info``; a flag that is missing counts against the person.

    ``is_app_user`` is said of members too who have authorised the app: by itself it tells nothing.
    Who is no member has none of a member's flags beside it.
    """
    bot = bool(user.get("is_bot", True)) or user.get("id") == "USLACKBOT"
    guest = bool(user.get("is_restricted", True)) or bool(user.get("is_ultra_restricted", True))
    member = "is_restricted" in user and "is_ultra_restricted" in user
    enterprise = user.get("enterprise_user")
    grid = enterprise if isinstance(enterprise, Mapping) else {}
    teams = grid.get("teams")
    return Identity(
        team_id=_id(user.get("team_id")),
        deleted=bool(user.get("deleted", True)),
        is_bot=bot,
        is_guest=guest and not bot,
        is_stranger=bool(user.get("is_stranger", False)),
        observed_at=observed_at,
        is_app_only=bool(user.get("is_app_user", False)) and not member,
        enterprise_id=_id(grid.get("enterprise_id")),
        teams=tuple(filter(None, map(_id, teams))) if isinstance(teams, list) else (),
    )


def _id(value: object) -> str:
    """Read an opaque id; anything else names nothing."""
    return value if isinstance(value, str) else ""


class IdentityWatch:
    """Keeps observations fresh: of people somebody waits for, and of whoever acts just now."""

    def __init__(
        self, engine: Engine, tenant: TenantId, client: AsyncWebClient, kept: KeptWork
    ) -> None:
        self._engine = engine
        self._tenant = tenant
        self._client = client
        self._kept = kept
        self._groups = GroupWatch(engine, tenant, client)

    async def ensure_fresh(self, people: Sequence[PrincipalId], groups: Sequence[str] = ()) -> bool:
        """Have observations of ``people`` that can be decided on; ``False``: Slack was too slow.

        ``groups``, and those that the active policy names, are looked at as well; who does not act
        by one of them is not kept waiting by it. A look that is too slow goes on, so that the next
        click finds it done. Opens its own transactions. Raises ``DatabaseUnavailable``.
        """
        old = await self._read(to_look_at(self._engine, self._tenant, people, groups))
        seen, _ = await asyncio.gather(
            self._in_time(self._look_at_all(old.people)),
            self._groups_in_time(old.groups),
        )
        return seen

    async def acting(self, claimed: PrincipalId) -> PrincipalId | None:
        """Name who acts, looked at just now; ``None``: Slack was too slow.

        ``claimed`` names the sender of a request by the workspace that Slack puts beside them: our
        own, another of the same enterprise, or one that only shares a channel with us. Who is not
        one of ours, or not whom the request says, keeps the claimed name, by which nobody can do
        anything here. Opens its own transactions. Raises ``DatabaseUnavailable``.
        """
        user = slack_user(claimed)
        if user is None:
            return claimed
        member = slack_principal(self._tenant, user[1])
        if not await self.ensure_fresh([member]):
            return None
        if claimed == member:
            return member
        return await self._read(who_acts(self._engine, self._tenant, claimed, member))

    async def run(self, wait: Wait) -> None:
        """Look at whomever the executor waits for, until cancelled."""
        while True:
            try:
                asked = await wanted(self._engine, self._tenant)
                looked = all(
                    await asyncio.gather(
                        self._look_at_all(asked.people), self._look_at_groups(asked.groups)
                    )
                )
            except ExecutorError as error:
                _log.warning("nobody could be looked at: %s", type(error).__name__)
                looked = False
            if looked:
                await wait(_POLL_SECONDS)
            else:
                await asyncio.sleep(_AGAIN_SECONDS)

    async def _read(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            return await self._kept.within(READ_WITHIN_SECONDS, work)
        except (TimeoutError, TooMuchAtOnce) as error:
            raise DatabaseUnavailable("who acts could not be read in time") from error

    async def _in_time(self, looking: Coroutine[Any, Any, bool]) -> bool:
        try:
            return await self._kept.within(LOOK_WITHIN_SECONDS, looking)
        except (TimeoutError, TooMuchAtOnce):
            return False

    async def _groups_in_time(self, groups: Sequence[str]) -> bool:
        try:
            return await self._in_time(self._look_at_groups(groups))
        except ExecutorError as error:
            _log.warning("user groups could not be looked at: %s", type(error).__name__)
            return False

    async def _look_at_all(self, people: Sequence[PrincipalId]) -> bool:
        return all(await asyncio.gather(*(self._look_in_time(who) for who in people)))

    async def _look_at_groups(self, groups: Sequence[str]) -> bool:
        return all(await asyncio.gather(*(self._groups.look(group) for group in groups)))

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
        if user[0] != self._tenant:
            elsewhere = somebody_elsewhere(user[0], observed_at)
            await observe(self._engine, self._tenant, who, elsewhere)
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
