"""What Slack says of a user group becomes an observation; where it says nothing, nobody is in it.

Looks are few (Tier 2) and shared by all processes through the database: whoever comes second waits
a moment for what the first one finds.
"""

from __future__ import annotations

import asyncio
import logging

from slack_sdk.web.async_client import AsyncWebClient

from bot.slack_answers import LOST_CALL, Proof, Trouble, trouble
from executor.domain.groups import GroupObservation
from executor.domain.ids import TenantId, slack_principal
from executor.engine.engine import Engine
from executor.engine.people import (
    claim_group_look,
    group_is_silent,
    is_seen_lately,
    observe_group,
)

_log = logging.getLogger(__name__)

NOBODY_IN_IT = {
    "plan_upgrade_required": "this workspace's plan has no user groups",
    "no_such_subteam": "there is no such group in this workspace",
    "missing_scope": "the app lacks the scope usergroups:read; install it again with it",
}
"""Slack's refusals that are an answer, and what they mean: nobody acts by such a group."""

_LOOK_SECONDS = 5.0
_UNREADABLE = Trouble(Proof.UNKNOWN, "unreadable_answer")
_GLANCES = 5
_GLANCE_SECONDS = 0.1


class GroupWatch:
    """Looks at user groups for one tenant, and tells each trouble once."""

    def __init__(self, engine: Engine, tenant: TenantId, client: AsyncWebClient) -> None:
        self._engine = engine
        self._tenant = tenant
        self._client = client
        self._told: dict[str, str] = {}

    async def look(self, group: str) -> bool:
        """Have a new observation of one group; ``False``: there is none. Opens transactions."""
        asked_at = await claim_group_look(self._engine, self._tenant, group)
        if asked_at is None:
            return await self._seen_by_another(group)
        try:
            async with asyncio.timeout(_LOOK_SECONDS):
                # A token of a whole organisation has to name the workspace; others ignore it.
                answer = await self._client.usergroups_users_list(
                    usergroup=group, team_id=self._tenant
                )
        except LOST_CALL as error:
            problem = trouble(error)
            if problem.code not in NOBODY_IN_IT:
                await self._is_silent(group, problem)
                return False
            observation = GroupObservation(frozenset(), asked_at, problem.code)
            self._tell(group, problem.code)
        else:
            users = answer.get("users")
            if not isinstance(users, list) or not all(isinstance(user, str) for user in users):
                await self._is_silent(group, _UNREADABLE)
                return False
            members = frozenset(slack_principal(self._tenant, user) for user in users)
            observation = GroupObservation(members, asked_at)
            if self._told.pop(group, None) is not None:
                _log.info("Slack tells again who is in user group %s", group)
        await observe_group(self._engine, self._tenant, group, observation)
        return True

    async def _seen_by_another(self, group: str) -> bool:
        """Wait a moment for a look that somebody else has begun."""
        for _ in range(_GLANCES):
            await asyncio.sleep(_GLANCE_SECONDS)
            if await is_seen_lately(self._engine, self._tenant, group):
                return True
        return False

    async def _is_silent(self, group: str, problem: Trouble) -> None:
        self._tell(group, problem.code)
        await group_is_silent(
            self._engine, self._tenant, group, problem.code, problem.retry_after_seconds
        )

    def _tell(self, group: str, code: str) -> None:
        if self._told.get(group) != code:
            self._told[group] = code
            _log.warning("nobody acts by being in user group %s: Slack says %s", group, code)
