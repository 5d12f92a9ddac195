"""``/signoff grants`` and ``/signoff delegate``, as people type them in Slack."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from bot.sandbox.interaction import Sending
from executor.domain.errors import CommitUnknown
from executor.engine.setup import activate_policy
from tests.support.bot_harness import (
    APPROVALS,
    GUEST,
    OUTSIDER,
    REQUESTER,
    REVIEWER,
    SECOND,
    Harness,
    make_policy,
)
from tests.support.lost_answers import lose_first_answer

PEOPLE = {"requesters": "everyone", "approvers": [REVIEWER], "operators": [SECOND]}
TEAM = "TSIGNOFF"


@pytest.fixture
async def h(database_url: str) -> AsyncIterator[Harness]:
    """A tenant whose only approver is Rene and whose only operator is Sam; nobody works."""
    async with Harness(database_url, policy=make_policy(people=PEOPLE), worker=False) as harness:
        yield harness


async def say(h: Harness, who: str, text: str) -> str:
    delivery = await h.person(who).slash(APPROVALS, "/signoff", text)
    assert delivery.status == 200, delivery
    return delivery.said or ""


async def grants(h: Harness) -> list[tuple[str, str, str, str | None]]:
    rows = await h.rows("SELECT principal, role, status, on_behalf_of FROM grants ORDER BY number")
    return [tuple(row) for row in rows]


async def test_an_operator_gives_a_role_to_whom_they_mention(h: Harness) -> None:
    said = await say(
        h, SECOND, "grants give @riko approver until 2126-12-24 on ticket:builtin:4101"
    )
    assert said == (
        "Given (grant 1): <@U0REQUESTER> has the role approver on `ticket:builtin:4101` until the "
        "end of 2126-12-24 (Europe/Amsterdam). `/signoff grants revoke 1` takes it back."
    )
    assert await grants(h) == [(f"slack:{TEAM}:{REQUESTER}", "approver", "active", None)]
    listed = await say(h, SECOND, "grants")
    assert "• grant 1: <@U0REQUESTER> has the role approver on `ticket:builtin:4101`" in listed
    assert "given by <@U0SECOND> 20" in listed
    assert (await say(h, SECOND, "grants revoke 1")).startswith("Revoked (grant 1): <@U0REQ")
    assert await say(h, SECOND, "grants revoke 1") == (
        "It was revoked before. Nothing has changed."
    )
    assert "no more (revoked by <@U0SECOND>" in await say(h, SECOND, "grants past")


async def test_an_approver_passes_on_their_role_for_a_while(h: Harness) -> None:
    said = await say(h, REVIEWER, "delegate @sam approver until tomorrow")
    assert "on behalf of <@U0REVIEWER>" in said
    assert await grants(h) == [
        (f"slack:{TEAM}:{SECOND}", "approver", "active", f"slack:{TEAM}:{REVIEWER}")
    ]
    assert "who has it by the policy" in await say(h, REVIEWER, "grants")
    assert "Revoked (grant 1)" in await say(h, SECOND, "grants revoke #1")


async def test_people_see_the_grants_about_themselves_and_operators_all(h: Harness) -> None:
    await say(h, SECOND, "grants give @riko approver")
    await say(h, REVIEWER, "delegate @gus approver for 2h")
    assert "grant 1:" in await say(h, REQUESTER, "grants")
    assert "grant 2:" not in await say(h, REQUESTER, "grants")
    assert "grant 1:" not in await say(h, REVIEWER, "grants")
    everything = await say(h, SECOND, "grants list")
    assert everything.index("grant 2:") < everything.index("grant 1:")


async def test_only_an_operator_gives_and_revokes_what_is_not_their_own(h: Harness) -> None:
    refused = "You may not give or revoke roles of others here."
    assert refused in await say(h, REVIEWER, "grants give @riko approver until tomorrow")
    assert refused in await say(h, REQUESTER, "grants give @riko operator on behalf of @sam for 1h")
    assert "is not theirs" in await say(h, REQUESTER, "delegate @sam approver until tomorrow")
    await say(h, SECOND, "grants give @sam approver")
    assert refused in await say(h, REQUESTER, "grants revoke 1")
    assert [role for _, role, status, _ in await grants(h) if status == "active"] == ["approver"]
    noted = await h.notes("grant_refused")
    assert [(note["actor"], note["asked"]) for note in noted] == [
        (f"slack:{TEAM}:{REVIEWER}", "give"),
        (f"slack:{TEAM}:{REQUESTER}", "give"),
        (f"slack:{TEAM}:{REQUESTER}", "give"),
        (f"slack:{TEAM}:{REQUESTER}", "revoke"),
    ]
    assert {note["reason"] for note in noted} == {"not_permitted"}


async def test_an_operator_of_one_ticket_gives_no_roles(h: Harness) -> None:
    await say(h, SECOND, "grants give @riko operator on ticket:builtin:4101")
    said = await say(h, REQUESTER, "grants give @riko approver")
    assert "You may not give or revoke roles of others here." in said


async def test_strangers_and_guests_see_and_give_nothing(h: Harness) -> None:
    await say(h, SECOND, "grants give @gus operator")
    for who, why in ((OUTSIDER, "You belong to another workspace"), (GUEST, "guests may not act")):
        assert why in await say(h, who, "grants")
        assert "grant 1" not in await say(h, who, "grants give @otto approver")
    assert len(await grants(h)) == 1


async def test_whoever_was_deactivated_passes_nothing_on(h: Harness) -> None:
    h.workspace.users[REVIEWER].deleted = True
    await h.move_time(timedelta(seconds=61))
    said = await say(h, REVIEWER, "delegate @sam approver until tomorrow")
    assert "deactivated accounts may not act here" in said
    assert await grants(h) == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("grants give", "Whom, and which role?"),
        ("grants give rene approver", "Mention a person"),
        ("grants give @rene approver until soon", "This time cannot be read."),
        ("grants give @rene approver for ever", "This time cannot be read."),
        ("grants give @rene approver please", "Not everything was understood"),
        ("grants give @rene boss", "There are: approver, editor, operator, requester."),
        ("grants give @rene approver on everything", "A grant is about everything (*), or"),
        ("grants give @rene approver until 2020-01-01", "later than now"),
        ("grants revoke", "Which grant?"),
        ("grants revoke 4711", "There is no such grant."),
        ("delegate @rene approver", "until a date"),
        ("delegate @sam operator until tomorrow", "gives it to somebody else"),
        ("delegate", "To whom, which role, and until when?"),
    ],
)
async def test_what_cannot_be_done_is_answered_with_what_can(
    h: Harness, text: str, told: str
) -> None:
    assert told in await say(h, SECOND, text)
    assert await grants(h) == []


async def test_one_signed_request_gives_one_grant_however_often_it_arrives(h: Harness) -> None:
    sam = h.person(SECOND)
    given = "grants give @riko approver"
    delivery = await sam.slash(APPROVALS, "/signoff", given, sending=Sending(copies=3))
    assert delivery.status == 200
    assert len(await grants(h)) == 1


async def test_after_a_lost_answer_to_commit_the_grant_is_given_once(
    h: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bot.listeners import grant_commands

    lose_first_answer(monkeypatch, grant_commands, "give")
    said = await say(h, SECOND, "grants give @riko approver")
    assert said.startswith("This was handled before, and nothing was given twice.")
    assert len(await grants(h)) == 1


async def test_what_stays_unknown_is_said_to_be_not_confirmed(
    h: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bot.listeners import grant_commands

    async def lost(*_: object) -> object:
        raise CommitUnknown("the answer was lost")

    monkeypatch.setattr(grant_commands, "take_back", lost)
    said = await say(h, SECOND, "grants revoke 1")
    assert said == ("Not confirmed: it may have been recorded or not. `/signoff grants` shows it.")


async def test_a_goal_reaches_the_record_as_it_was_typed(h: Harness) -> None:
    goal = "close 4101 & tell @rene that 1 < 2, see https://help.acme.example/?a=1&b=2, &lt;ok&gt;"
    await h.start_run(goal)
    assert await h.value("SELECT goal FROM runs") == goal


async def test_a_changed_policy_stands_in_the_tenants_journal(h: Harness) -> None:
    other = make_policy(people={"approvers": [SECOND]})
    await activate_policy(h.engine, other)
    await activate_policy(h.engine, other)
    first, second = await h.notes("policy_activated")
    assert (first["from"], first["to"]) == (None, h.policy.version)
    assert (second["from"], second["to"]) == (h.policy.version, other.version)
    assert second["by"] == second["actor"] == "operator:policy file"
