"""Slack tells of a change, and from then on nobody acts on what was seen before it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from bot.people_events import Change, change_of
from bot.sandbox.faults import Fault
from bot.sandbox.model import Message
from bot.sandbox.seed import REVIEWERS
from executor.domain.ids import TenantId, slack_principal
from executor.store.people import read_groups
from tests.support.bot_harness import APPROVALS, REQUESTER, REVIEWER, Harness, make_policy

TENANT = TenantId("TSIGNOFF")
RENE = slack_principal(TENANT, REVIEWER)


@pytest.mark.parametrize(
    ("event", "change"),
    [
        ({"type": "user_change", "user": {"id": REVIEWER}}, Change(people=(RENE,))),
        ({"type": "team_join", "user": {"id": REVIEWER}}, Change(people=(RENE,))),
        ({"type": "user_change", "user": {"id": "W0GRID", "team_id": "TOTHER"}},
         Change(people=(slack_principal(TENANT, "W0GRID"),))),
        ({"type": "subteam_updated", "subteam": {"id": "S1"}}, Change(groups=("S1",))),
        ({"type": "subteam_members_changed", "subteam_id": "S1"}, Change(groups=("S1",))),
        ({"type": "user_change", "user": REVIEWER}, Change()),
        ({"type": "user_change", "user": {"id": 7}}, Change()),
        ({"type": "subteam_updated"}, Change()),
        ({"type": "app_mention", "user": REVIEWER}, None),
        (["user_change"], None),
    ],
)  # fmt: skip
def test_an_event_says_whom_to_look_at_again(event: Any, change: Change | None) -> None:
    assert change_of({"event": event}, TENANT) == change


@pytest.fixture
async def h(database_url: str) -> AsyncIterator[Harness]:
    policy = make_policy(people={"approvers": [REVIEWER, f"group:{REVIEWERS}"]})
    async with Harness(database_url, policy=policy) as harness:
        yield harness


async def handled(h: Harness) -> int:
    count: int = await h.value("SELECT count(*) FROM inbox WHERE handled_at IS NOT NULL")
    return count


async def told(h: Harness, event: dict[str, Any]) -> None:
    before = await handled(h)
    assert (await h.person(REQUESTER).cause(event)).status == 200
    await h.until(lambda: handled(h), lambda now: now > before)


async def ready_card(h: Harness) -> Message:
    await h.start_run("close 4101", by=REQUESTER)
    return await h.settled_card()


async def test_somebody_deactivated_a_moment_ago_decides_nothing(h: Harness) -> None:
    card = await ready_card(h)
    rene = h.person(REVIEWER)
    await rene.slash(APPROVALS, "/signoff", "status")
    looks = len(h.slack.record.calls("users.info"))
    h.workspace.users[REVIEWER].deleted = True
    await told(h, {"type": "user_change", "user": {"id": REVIEWER, "deleted": True}})
    await rene.click(card.channel, card.ts, "approve")
    await h.whispered(REVIEWER, "deactivated accounts may not act here")
    assert await h.decisions() == []
    assert len(h.slack.record.calls("users.info")) > looks


async def test_until_slack_tells_who_changed_somebody_is_nobody(h: Harness) -> None:
    card = await ready_card(h)
    rene = h.person(REVIEWER)
    await rene.slash(APPROVALS, "/signoff", "status")
    h.slack.faults.add("users.info", fault=Fault.ERROR_500_BEFORE_COMMIT, times=1_000)
    await told(h, {"type": "user_change", "user": {"id": REVIEWER}})
    await rene.click(card.channel, card.ts, "approve")
    await h.whispered(REVIEWER, "Slack")
    assert await h.decisions() == []
    h.slack.faults.clear()
    await h.until(lambda: nobody_is_awaited(h), bool)
    await rene.click(card.channel, card.ts, "approve")
    await h.until(h.decisions, bool)


async def nobody_is_awaited(h: Harness) -> bool:
    count = await h.value("SELECT count(*) FROM identity_observations WHERE wanted_at IS NOT NULL")
    return bool(count == 0)


async def test_whoever_was_not_looked_at_lately_is_not_looked_at_for_an_event(h: Harness) -> None:
    await h.person(REVIEWER).slash(APPROVALS, "/signoff", "status")
    await h.move_time(timedelta(minutes=5))
    looks = len(h.slack.record.calls("users.info"))
    await told(h, {"type": "user_change", "user": {"id": REVIEWER}})
    await told(h, {"type": "user_change", "user": {"id": "U0NEVERSEEN"}})
    assert (
        await h.value("SELECT count(*) FROM identity_observations WHERE wanted_at IS NOT NULL") == 0
    )
    assert len(h.slack.record.calls("users.info")) == looks


async def test_a_changed_group_is_looked_at_again(h: Harness) -> None:
    async def members() -> set[str]:
        async with h.database.transaction() as conn:
            seen = await read_groups(conn, [(TENANT, REVIEWERS)])
        return {who for observation in seen.values() for who in observation.members}

    await h.person(REQUESTER).slash(APPROVALS, "/signoff", "status")
    assert RENE in await members()
    h.workspace.usergroups[REVIEWERS].remove(REVIEWER)
    await told(h, {"type": "subteam_members_changed", "subteam_id": REVIEWERS})
    await h.move_time(timedelta(seconds=5))
    await h.until(members, bool)
    assert RENE not in await members()


async def test_an_event_of_another_workspace_says_nothing_here(h: Harness) -> None:
    await h.person(REVIEWER).slash(APPROVALS, "/signoff", "status")
    home = h.workspace.team.id
    h.workspace.team.id = "TOTHER"
    try:
        event = {"type": "user_change", "user": {"id": REVIEWER}}
        assert (await h.person(REQUESTER).cause(event)).status == 200
    finally:
        h.workspace.team.id = home
    assert await h.value("SELECT count(*) FROM inbox") == 0
