"""Who is in a user group is asked of Slack, rarely and for all processes; silence means nobody."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import aiohttp
import pytest
from slack_sdk.web.async_client import AsyncWebClient

from bot.groups import GroupWatch
from bot.identity import IdentityWatch
from bot.kept_work import KeptWork
from bot.sandbox.faults import Fault
from bot.sandbox.seed import REVIEWERS
from executor.domain.groups import GroupObservation
from executor.domain.ids import PrincipalId, slack_principal
from executor.store.people import read_groups, want_groups
from tests.support.bot_harness import REVIEWER, SECOND, Harness, make_policy

TEAM = "TSIGNOFF"
LIST = "usergroups.users.list"


def principals(*users: str) -> frozenset[PrincipalId]:
    return frozenset(slack_principal(TEAM, user) for user in users)


class Watched:
    """A workspace with one group in its policy, and a bot's worth of looking at it."""

    def __init__(self, harness: Harness) -> None:
        self.h = harness
        self.people = IdentityWatch(
            harness.engine, harness.policy.tenant_id, self.client(), KeptWork()
        )

    def client(self) -> AsyncWebClient:
        return AsyncWebClient(
            token=self.h.workspace.bot_token, base_url=self.h.slack.api_url, retry_handlers=[]
        )

    def watch(self) -> GroupWatch:
        return GroupWatch(self.h.engine, self.h.policy.tenant_id, self.client())

    async def act(self) -> bool:
        """Look as for a click of the reviewer."""
        return await self.people.ensure_fresh([slack_principal(TEAM, REVIEWER)])

    async def seen(self) -> GroupObservation | None:
        key = (self.h.policy.tenant_id, REVIEWERS)
        async with self.h.database.transaction() as conn:
            return (await read_groups(conn, [key])).get(key)

    async def members(self) -> frozenset[PrincipalId] | None:
        found = await self.seen()
        return None if found is None else found.members

    def looks(self) -> int:
        return len(self.h.slack.record.calls(LIST))


@pytest.fixture
async def w(database_url: str) -> AsyncIterator[Watched]:
    policy = make_policy(people={"approvers": [REVIEWER, f"group:{REVIEWERS}"]})
    async with Harness(database_url, policy=policy, worker=False, bot=False) as h:
        yield Watched(h)


async def test_whoever_acts_has_the_groups_of_the_policy_looked_at(w: Watched) -> None:
    assert await w.act()
    assert await w.members() == principals(REVIEWER, SECOND)
    await w.h.move_time(timedelta(seconds=25))
    assert await w.act()
    assert w.looks() == 1, "it is young enough"
    await w.h.move_time(timedelta(seconds=6))
    w.h.workspace.usergroups[REVIEWERS].remove(SECOND)
    assert await w.act()
    assert (w.looks(), await w.members()) == (2, principals(REVIEWER))


async def test_a_deactivated_member_of_a_group_is_not_among_its_members(w: Watched) -> None:
    w.h.workspace.users[SECOND].deleted = True
    await w.act()
    assert await w.members() == principals(REVIEWER)


async def test_processes_that_look_at_once_ask_slack_once(w: Watched) -> None:
    w.h.slack.faults.add(LIST, fault=Fault.SLOW, seconds=0.2)
    assert await asyncio.gather(*(w.watch().look(REVIEWERS) for _ in range(3))) == [True] * 3
    assert w.looks() == 1


async def test_a_group_is_looked_at_only_every_few_seconds(w: Watched) -> None:
    watch = w.watch()
    w.h.slack.faults.add(LIST, fault=Fault.ERROR_500_BEFORE_COMMIT)
    assert [await watch.look(REVIEWERS), await watch.look(REVIEWERS)] == [False, False]
    assert w.looks() == 1
    await w.h.move_time(timedelta(seconds=5))
    assert await watch.look(REVIEWERS)
    assert w.looks() == 2


@pytest.mark.parametrize("code", ["plan_upgrade_required", "no_such_subteam", "missing_scope"])
async def test_a_refusal_means_that_nobody_is_in_it_and_is_told_once(
    w: Watched, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    workspace = w.h.workspace
    match code:
        case "plan_upgrade_required":
            workspace.paid_plan = False
        case "no_such_subteam":
            del workspace.usergroups[REVIEWERS]
        case _:
            less = replace(workspace.app, scopes=workspace.app.scopes - {"usergroups:read"})
            workspace.tokens[workspace.bot_token] = less
    with caplog.at_level(logging.WARNING, "bot.groups"):
        for _ in range(2):
            assert await w.act(), "who is named by name is not held up"
            await w.h.move_time(timedelta(seconds=31))
    found = await w.seen()
    assert found is not None
    assert (found.members, found.problem) == (frozenset(), code)
    [told] = caplog.messages
    assert code in told
    assert (await ready(w.h))["groups_unknown"] == {code: 1}


async def test_a_rate_limit_leaves_what_was_seen_and_is_waited_out(
    w: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    watch = w.watch()
    assert await watch.look(REVIEWERS)
    first = await w.seen()
    w.h.slack.faults.add(LIST, fault=Fault.RATE_LIMITED, seconds=40)
    await w.h.move_time(timedelta(seconds=20))
    with caplog.at_level(logging.INFO, "bot.groups"):
        assert not await watch.look(REVIEWERS)
        assert await w.seen() == replace(first, problem="ratelimited") if first else False
        await w.h.move_time(timedelta(seconds=35))
        assert not await watch.look(REVIEWERS)
        assert w.looks() == 2, "Slack said when to come back"
        await w.h.move_time(timedelta(seconds=6))
        assert await watch.look(REVIEWERS)
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert (await ready(w.h))["groups_unknown"] == {}


async def test_an_answer_that_breaks_off_is_none(w: Watched) -> None:
    w.h.slack.faults.add(LIST, fault=Fault.TRUNCATED_BODY)
    assert not await w.watch().look(REVIEWERS)
    assert await w.seen() is None


@pytest.mark.parametrize("users", [None, {"U0REVIEWER": True}, ["U0REVIEWER", None]])
async def test_an_answer_that_is_no_list_of_ids_is_none(w: Watched, users: object) -> None:
    class Odd(AsyncWebClient):
        async def usergroups_users_list(self, **_: Any) -> Any:
            return {"ok": True, "users": users}

    watch = GroupWatch(w.h.engine, w.h.policy.tenant_id, Odd())
    assert not await watch.look(REVIEWERS)
    assert await w.seen() is None


async def test_a_slow_answer_about_a_group_holds_up_nobody_who_is_named(w: Watched) -> None:
    hanging = w.h.slack.faults.add(LIST, fault=Fault.HANGS_BEFORE_COMMIT)
    try:
        assert await asyncio.wait_for(w.act(), 2.0)
        assert await w.seen() is None
    finally:
        hanging.release()
    await w.h.until(w.members, bool)


async def test_a_group_that_somebody_waits_for_is_looked_at_until_slack_answers(
    w: Watched,
) -> None:
    await w.h.start_bot()
    w.h.slack.faults.add(LIST, fault=Fault.ERROR_500_BEFORE_COMMIT)
    async with w.h.database.transaction() as conn:
        await want_groups(conn, [(w.h.policy.tenant_id, REVIEWERS)], w.h.engine.clock.wall())
    await w.h.until(lambda: _looked(w, 1), bool)
    assert await w.seen() is None
    await w.h.move_time(timedelta(seconds=5))
    assert await w.h.until(w.members, bool) == principals(REVIEWER, SECOND)


async def _looked(w: Watched, times: int) -> bool:
    return w.looks() >= times


async def ready(h: Harness) -> dict[str, Any]:
    running = await h.start_bot()
    async with aiohttp.ClientSession() as session, session.get(f"{running.url}/readyz") as answer:
        said: dict[str, Any] = await answer.json()
        return said
