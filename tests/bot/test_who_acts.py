"""Who acts: the directory says who somebody is, the request who sent it, and both must agree."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from bot.listeners.payload import ButtonClick, SlashCommand
from bot.sandbox.interaction import Person
from bot.sandbox.model import Message, User
from bot.sandbox.seed import REVIEWERS
from executor.domain.operation import OperationStatus
from tests.support.bot_harness import APPROVALS, REVIEWER, Harness, make_policy

TEAM, SIBLING, ENTERPRISE = "TSIGNOFF", "T0SIBLING", "E0ACME"
OTHER_ENTERPRISE = "E0OTHER"


def account(name: str, **facts: Any) -> User:
    return User(f"U0{name}", facts.pop("team_id", TEAM), name.lower(), name.title(), **facts)


def on_grid(name: str, team_id: str, *teams: str, enterprise: str = ENTERPRISE) -> User:
    user = account(name, team_id=team_id, enterprise_id=enterprise, teams=teams)
    return replace(user, id=f"W0{name}")


ACCOUNTS: list[tuple[User, str]] = [
    (account("LEFT", deleted=True), "deactivated accounts may not act here"),
    (account("MULTI", is_restricted=True), "guests may not act here"),
    (account("SINGLE", is_restricted=True, is_ultra_restricted=True), "guests may not act here"),
    (account("ROBOT", is_bot=True), "bots may not act here"),
    (account("APPONLY", is_app_user=True, is_member=False), "accounts that only use the app"),
    (account("HIDDEN", hidden=True), "people whom it does not know"),
    (account("STRANGE", is_stranger=True), "You belong to another workspace"),
    (account("CONNECT", team_id="TOUTSIDE"), "You belong to another workspace"),
    (on_grid("LONELY", SIBLING, SIBLING), "You belong to another workspace"),
    (on_grid("FAROFF", "T9", "T9", enterprise=OTHER_ENTERPRISE), "You belong to another workspace"),
]
GONE = account("GONE")
"""Somebody whom Slack no longer finds."""


def settle_in(h: Harness, *users: User) -> None:
    for user in users:
        h.workspace.users[user.id] = user
        h.workspace.channels[APPROVALS].members.add(user.id)


@asynccontextmanager
async def at_work(url: str, *users: User, **sections: dict[str, Any]) -> AsyncIterator[Harness]:
    """A workspace with these people, all of whom the policy names as approvers."""
    named = [REVIEWER, *(user.id for user in users)]
    async with Harness(url, policy=make_policy(people={"approvers": named}, **sections)) as h:
        settle_in(h, *users)
        yield h


async def ready_card(h: Harness) -> Message:
    await h.start_run("close 4101")
    return await h.settled_card()


async def told(h: Harness, person: Person, words: str) -> None:
    await h.workspace.wait_for(lambda _: any(words in e.text for e in person.ephemerals()), 15.0)


async def refusals(h: Harness) -> dict[str, str]:
    return {note["actor"]: note["reason"] for note in await h.notes("decision_refused")}


async def test_no_kind_of_account_but_a_full_member_decides_starts_cancels_or_sees_runs(
    database_url: str,
) -> None:
    users = [user for user, _ in ACCOUNTS]
    async with at_work(database_url, *users, GONE) as h:
        card = await ready_card(h)
        gone = h.person(GONE.id)
        del h.workspace.users[GONE.id]
        people = [(h.person(user.id), words) for user, words in ACCOUNTS]
        for person, words in [*people, (gone, "people whom it does not know")]:
            await person.click(card.channel, card.ts, "approve")
            await told(h, person, words)
            for command in ("run close 4102", "cancel run_1", "status", "status run_1"):
                said = (await person.slash(APPROVALS, "/signoff", command)).said
                assert words in (said or ""), (person.user.id, command)
        assert await h.decisions() == []
        assert await h.numbers() == {1}
        assert await h.operations() == [OperationStatus.AWAITING]
        assert len(await refusals(h)) >= len(ACCOUNTS) + 1
        assert (await h.person(REVIEWER).slash(APPROVALS, "/signoff", "status")).said


@pytest.mark.parametrize(
    "user",
    [
        account("AUTHORISER", is_app_user=True),
        account("BOSS", is_admin=True),
        on_grid("COLLEAGUE", SIBLING, SIBLING, TEAM),
        on_grid("ATHOME", TEAM, TEAM, SIBLING),
    ],
    ids=lambda user: user.name,
)
async def test_a_full_member_decides_wherever_else_they_belong(
    database_url: str, user: User
) -> None:
    async with at_work(database_url, user) as h:
        card = await ready_card(h)
        await h.person(user.id).click(card.channel, card.ts, "approve")
        await h.until_operation(OperationStatus.SUCCEEDED)
        assert await h.decisions() == [(f"slack:{TEAM}:{user.id}", "approve")]


async def test_a_request_that_says_another_workspace_than_the_directory_decides_nothing(
    database_url: str,
) -> None:
    async with at_work(database_url) as h:
        card = await ready_card(h)
        rene = h.person(REVIEWER)
        assert (await rene.slash(APPROVALS, "/signoff", "status")).said
        elsewhere = Person(h.workspace, replace(rene.user, team_id="TOUTSIDE"))
        await elsewhere.click(card.channel, card.ts, "approve")
        await h.whispered(REVIEWER, "You belong to another workspace")
        await elsewhere.click(card.channel, card.ts, "reject")
        assert rene.view() is None
        assert await refusals(h) == {f"slack:TOUTSIDE:{REVIEWER}": "other_workspace"}
        await rene.click(card.channel, card.ts, "reject")
        view = rene.view()
        assert view is not None
        await elsewhere.submit_view(view.id, {"reason": {"text": "No"}})
        await elsewhere.mention(APPROVALS, "close 4102")
        await h.workspace.wait_for(
            lambda _: len([e for e in rene.ephemerals() if "another workspace" in e.text]) == 4
        )
        assert await h.decisions() == []
        assert await h.numbers() == {1}
        await rene.click(card.channel, card.ts, "approve")
        await h.until_operation(OperationStatus.SUCCEEDED)


async def test_who_leaves_the_workspace_within_the_enterprise_decides_nothing(
    database_url: str,
) -> None:
    colleague = on_grid("COLLEAGUE", SIBLING, SIBLING, TEAM)
    async with at_work(database_url, colleague) as h:
        card = await ready_card(h)
        assert (await h.person(colleague.id).slash(APPROVALS, "/signoff", "status")).said
        colleague.teams = (SIBLING,)
        await h.move_time(timedelta(seconds=61))
        await h.person(colleague.id).click(card.channel, card.ts, "approve")
        await h.whispered(colleague.id, "You belong to another workspace")
        assert await h.decisions() == []


async def test_an_installation_of_a_whole_enterprise_takes_its_people_and_nobody_elses(
    database_url: str,
) -> None:
    ours = on_grid("COLLEAGUE", SIBLING, SIBLING)
    theirs = on_grid("FAROFF", "T9", "T9", enterprise=OTHER_ENTERPRISE)
    asker = on_grid("ASKER", TEAM, TEAM)
    policy = make_policy(
        slack={"team": ENTERPRISE, "channel": APPROVALS},
        people={"approvers": [ours.id, theirs.id, f"group:{REVIEWERS}"]},
    )
    h = Harness(database_url, policy=policy)
    h.workspace.org_wide = True
    h.workspace.team.enterprise_id = ENTERPRISE
    async with h:
        settle_in(h, ours, theirs, asker)
        await h.start_run("close 4101", by=asker.id)
        await h.person(asker.id).mention(APPROVALS, "close 4102")
        await h.until(h.numbers, lambda numbers: numbers == {1, 2})
        card = await h.settled_card()
        await h.person(theirs.id).click(card.channel, card.ts, "approve")
        await h.whispered(theirs.id, "You belong to another workspace")
        await h.person(REVIEWER).click(card.channel, card.ts, "approve")
        await h.whispered(REVIEWER, "You belong to another workspace")
        await h.person(ours.id).click(card.channel, card.ts, "approve")
        await h.until(h.decisions, bool)
        assert await h.decisions() == [(f"slack:{ENTERPRISE}:{ours.id}", "approve")]
        asked = h.slack.record.calls("usergroups.users.list")
        assert asked
        assert all(call.data["args"]["team_id"] == ENTERPRISE for call in asked)


CLICK: dict[str, Any] = {"user": {"id": REVIEWER}, "actions": [{"action_id": "approve"}]}
WHOLE = {"enterprise": {"id": ENTERPRISE}, "is_enterprise_install": True}


@pytest.mark.parametrize(
    ("sent", "to", "meant"),
    [
        ({"team": {"id": TEAM}}, TEAM, True),
        ({"team": {"id": TEAM}, "enterprise": {"id": ENTERPRISE}}, TEAM, True),
        ({"team": {"id": SIBLING}, "enterprise": {"id": ENTERPRISE}}, TEAM, False),
        ({"team": {"id": TEAM}, "enterprise": {"id": ENTERPRISE}}, ENTERPRISE, False),
        ({"team": None, **WHOLE}, ENTERPRISE, True),
        ({"team": {"id": TEAM}, **WHOLE}, ENTERPRISE, True),
        ({"team": None, **WHOLE}, TEAM, True),
        ({"team": {"id": SIBLING}, **WHOLE}, TEAM, False),
        ({"team": None, **WHOLE}, OTHER_ENTERPRISE, False),
        ({"team": None}, TEAM, False),
        ({"team": None, "enterprise": None, "is_enterprise_install": True}, TEAM, False),
    ],
)
def test_a_click_is_for_the_installation_that_it_names(
    sent: dict[str, Any], to: str, meant: bool
) -> None:
    assert ButtonClick.model_validate({**CLICK, **sent}).is_for(to) is meant


@pytest.mark.parametrize(
    ("sent", "to", "meant"),
    [
        ({}, TEAM, True),
        ({}, SIBLING, False),
        ({"enterprise_id": ENTERPRISE, "is_enterprise_install": "true"}, ENTERPRISE, True),
        ({"enterprise_id": ENTERPRISE, "is_enterprise_install": "false"}, ENTERPRISE, False),
        ({"enterprise_id": ENTERPRISE, "is_enterprise_install": "true"}, OTHER_ENTERPRISE, False),
    ],
)
def test_a_command_is_for_the_installation_that_it_names(
    sent: dict[str, Any], to: str, meant: bool
) -> None:
    form = {"team_id": TEAM, "user_id": REVIEWER, "channel_id": "C1", "trigger_id": "1.2"}
    assert SlashCommand.model_validate({**form, **sent}).is_for(to) is meant
