"""Asks Slack, before anything is started, whether it tells who is in a policy's user groups."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from slack_sdk.web.async_client import AsyncWebClient

from bot.config import SLACK_API_URL
from bot.groups import NOBODY_IN_IT
from bot.slack_answers import LOST_CALL, trouble
from executor.domain.policy import Policy

_SECONDS = 10


def group_lines(policy: Policy, environ: Mapping[str, str]) -> list[str]:
    """Say of each user group how many are in it, or why nobody acts by being in it."""
    groups = sorted(policy.groups)
    token = environ.get("SLACK_BOT_TOKEN")
    if not groups:
        return []
    if not token:
        named = ", ".join(groups)
        return [f"Set SLACK_BOT_TOKEN to ask Slack who is in user groups it names: {named}."]
    client = AsyncWebClient(
        token=token,
        base_url=(environ.get("SLACK_API_URL") or SLACK_API_URL).rstrip("/") + "/",
        timeout=_SECONDS,
        retry_handlers=[],
    )
    return asyncio.run(_lines(client, policy.slack.team, groups))


async def _lines(client: AsyncWebClient, team: str, groups: list[str]) -> list[str]:
    return [await _line(client, team, group) for group in groups]


async def _line(client: AsyncWebClient, team: str, group: str) -> str:
    try:
        answer = await client.usergroups_users_list(usergroup=group, team_id=team)
    except LOST_CALL as error:
        code = trouble(error).code
        why = NOBODY_IN_IT.get(code, "it counts again when Slack answers")
        return f"Nobody acts by being in user group {group}: Slack says {code}; {why}."
    count = len(answer.get("users") or ())
    return f"User group {group} has {count} {'member' if count == 1 else 'members'}."
