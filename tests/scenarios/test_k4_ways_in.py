"""K4: only the signed word of somebody who may decide now decides, and it is known whose it was."""

from __future__ import annotations

import json
import os
import re
import sys
from asyncio import create_subprocess_exec
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import aiohttp
import pytest

from bot.account_text import story
from bot.sandbox.model import Installation, Message, User
from bot.sandbox.seed import REVIEWERS, SCOPES
from executor.domain.identity import Identity
from executor.domain.ids import TenantId, slack_principal
from executor.domain.operation import OperationStatus
from executor.engine.doubt import account_of
from executor.engine.start import Started, StartRequest, start
from executor.store import clock
from executor.store.people import put_identity
from tests.support.bot_harness import (
    APPROVALS,
    REQUESTER,
    REVIEWER,
    SECOND,
    Harness,
    make_policy,
    policy_document,
)
from tests.support.card_reading import nodes

TEAM, OTHER = "TSIGNOFF", "T0OTHER"
OTHER_TOKEN = "xoxb-of-another-workspace"
OTHER_APP = Installation(OTHER, "U0OTHERBOT", "B0OTHERBOT", "A0SIGNOFF", SCOPES)


@pytest.fixture
async def h(database_url: str) -> AsyncIterator[Harness]:
    async with Harness(database_url) as harness:
        yield harness


async def waiting_card(h: Harness) -> Message:
    await h.start_run("close 4101")
    return await h.settled_card()


async def test_b043_a_workspace_is_taken_by_its_own_token_and_not_by_its_id(
    h: Harness, tmp_path: Path
) -> None:
    h.workspace.add_token(OTHER_TOKEN, OTHER_APP)
    h.workspace.users[OTHER_APP.user_id] = User(OTHER_APP.user_id, OTHER, "theirs", "Theirs")
    before = await h.rows("SELECT id, policy_version FROM tenants")
    policy = policy_document(people={"requesters": "everyone", "approvers": ["U0THEIRS"]})
    path = tmp_path / "policy.toml"
    path.write_text(_toml(policy))
    process = await create_subprocess_exec(
        sys.executable,
        "-m",
        "bot",
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(Path.cwd()),
            "SIGNOFF_POLICY": str(path),
            "SLACK_BOT_TOKEN": OTHER_TOKEN,
            "SLACK_SIGNING_SECRET": h.workspace.signing_secret,
            "SLACK_API_URL": h.slack.api_url,
            "DATABASE_URL": h.database_url,
            "SIGNOFF_PORT": "0",
        },
        stdout=PIPE,
        stderr=STDOUT,
    )
    output, _ = await process.communicate()
    assert process.returncode == 78, output
    assert b"the token belongs to workspace T0OTHER, the policy names TSIGNOFF" in output
    assert await h.rows("SELECT id, policy_version FROM tenants") == before


async def test_b043_cards_do_not_go_to_a_channel_of_another_workspace(database_url: str) -> None:
    policy = make_policy(slack={"team": OTHER, "channel": APPROVALS})
    h = Harness(database_url, policy=policy)
    h.workspace.add_token(OTHER_TOKEN, OTHER_APP)
    h.workspace.users[OTHER_APP.user_id] = User(OTHER_APP.user_id, OTHER, "theirs", "Theirs")
    h.workspace.bot_token = OTHER_TOKEN
    async with h:
        requester = slack_principal(OTHER, "U0THEIRS")
        async with h.database.transaction() as conn:
            now = await clock.now(conn)
            seen = Identity(OTHER, False, False, False, False, now)
            await put_identity(conn, TenantId(OTHER), requester, seen)
        request = StartRequest(TenantId(OTHER), requester, "close 4101", "their-start", {})
        assert isinstance((await start(h.engine, [request]))[0], Started)
        await h.until_operation(OperationStatus.AWAITING)
        # What becomes of the card is known when somebody else is told that it cannot be shown.
        await h.until(lambda: _calls(h, "chat.postMessage"), lambda posts: posts - {APPROVALS})
        assert APPROVALS in await _calls(h, "conversations.info")
        assert h.workspace.visible(APPROVALS) == []
        assert await h.decisions() == []


async def _calls(h: Harness, method: str) -> set[str]:
    """The channels that a method was called for."""
    return {str(call.data["args"].get("channel")) for call in h.slack.record.calls(method)}


def _toml(document: dict[str, dict[str, object]]) -> str:
    return "\n".join(
        f"[{section}]\n" + "\n".join(f"{key} = {json.dumps(value)}" for key, value in rows.items())
        for section, rows in document.items()
    )


async def test_b044_who_left_the_group_of_approvers_does_not_decide_an_older_card(
    database_url: str,
) -> None:
    policy = make_policy(people={"approvers": [f"group:{REVIEWERS}"]})
    async with Harness(database_url, policy=policy) as h:
        card = await waiting_card(h)
        h.workspace.usergroups[REVIEWERS].remove(REVIEWER)
        event = {"type": "subteam_members_changed", "subteam_id": REVIEWERS}
        await h.person(REQUESTER).cause(event)
        await h.until(lambda: h.rows("SELECT 1 FROM inbox WHERE handled_at IS NOT NULL"), bool)
        await h.move_time(timedelta(seconds=5))
        await h.person(REVIEWER).click(card.channel, card.ts, "approve")
        await h.whispered(REVIEWER, "You may not decide here")
        assert await h.operations() == [OperationStatus.AWAITING]
        await h.person(SECOND).click(card.channel, card.ts, "approve")
        await h.until_operation(OperationStatus.SUCCEEDED)
        assert await h.decisions() == [(f"slack:{TEAM}:{SECOND}", "approve")]


async def test_b045_who_left_the_group_since_has_approved_nothing(database_url: str) -> None:
    policy = make_policy(people={"approvers": [f"group:{REVIEWERS}"]})
    async with Harness(database_url, policy=policy) as h:
        card = await waiting_card(h)
        await h.workers[0].stop()
        await h.person(REVIEWER).click(card.channel, card.ts, "approve")
        await h.until_operation(OperationStatus.APPROVED)
        h.workspace.usergroups[REVIEWERS].remove(REVIEWER)
        await h.move_time(timedelta(seconds=61))
        await h.start_worker()
        await h.until_operation(OperationStatus.STALE)
        assert h.mailbox.accepted == 0


@pytest.mark.parametrize("plan", ["paid", "free"])
async def test_a_group_that_slack_does_not_tell_of_gives_nobody_a_vote(
    database_url: str, plan: str
) -> None:
    policy = make_policy(people={"approvers": [SECOND, f"group:{REVIEWERS}"]})
    async with Harness(database_url, policy=policy) as h:
        h.workspace.paid_plan = plan == "paid"
        card = await waiting_card(h)
        await h.person(REVIEWER).click(card.channel, card.ts, "approve")
        if plan == "free":
            await h.whispered(REVIEWER, "You may not decide here")
            await h.person(SECOND).click(card.channel, card.ts, "approve")
        await h.until_operation(OperationStatus.SUCCEEDED)
        who = REVIEWER if plan == "paid" else SECOND
        assert await h.decisions() == [(f"slack:{TEAM}:{who}", "approve")]


@pytest.mark.parametrize("slack_tells_of_it", [True, False])
async def test_b045_an_approver_who_left_since_has_approved_nothing(
    h: Harness, slack_tells_of_it: bool
) -> None:
    card = await waiting_card(h)
    await h.workers[0].stop()
    await h.person(REVIEWER).click(card.channel, card.ts, "approve")
    await h.until_operation(OperationStatus.APPROVED)
    h.workspace.users[REVIEWER].deleted = True
    if slack_tells_of_it:
        await h.person(REQUESTER).cause({"type": "user_change", "user": {"id": REVIEWER}})
        await h.until(lambda: _changes(h), bool)
    else:
        await h.move_time(timedelta(seconds=61))
    await h.start_worker()
    await h.until_operation(OperationStatus.STALE)
    await h.workspace.wait_for(lambda _: "deactivated accounts may not act" in str(card.blocks))
    assert h.mailbox.accepted == 0
    assert await h.value("SELECT status FROM desk_tickets WHERE id = '4101'") == "open"


async def _changes(h: Harness) -> int:
    count: int = await h.value(
        "SELECT count(*) FROM identity_observations WHERE changed_at IS NOT NULL"
    )
    return count


async def test_b047_each_right_is_checked_by_itself_and_a_refusal_names_it(
    database_url: str,
) -> None:
    policy = make_policy(people={"requesters": [REQUESTER, SECOND], "approvers": [REVIEWER]})
    async with Harness(database_url, policy=policy) as h:
        h.workspace.users[SECOND].is_admin = True
        first = await waiting_card(h)
        await h.start_run("close 4102")
        second = await h.card(lambda m: m.ts != first.ts and "4102" in str(m.blocks))
        await h.person(SECOND).click(second.channel, second.ts, "approve")
        said = await h.whispered(SECOND, "You may not decide here")
        assert "add you" in said
        await h.person(REVIEWER).click(first.channel, first.ts, "approve")
        await h.until_operation(OperationStatus.SUCCEEDED, OperationStatus.AWAITING)
        said = (await h.person(REVIEWER).slash(APPROVALS, "/signoff", "run close 4103")).said or ""
        assert "You may not start runs here" in said
        assert await h.decisions() == [(f"slack:{TEAM}:{REVIEWER}", "approve")]


async def test_b048_card_ticket_and_record_name_who_approved_whatever_they_are_called_later(
    h: Harness,
) -> None:
    card = await waiting_card(h)
    await h.person(REVIEWER).click(card.channel, card.ts, "approve")
    await h.until_operation(OperationStatus.SUCCEEDED)
    await h.workspace.wait_for(lambda _: "Done." in str(card.blocks))
    digest = await h.value("SELECT encode(digest, 'hex') FROM operations")

    async def told() -> tuple[Any, ...]:
        [note] = await h.rows(
            "SELECT author, body, happened_at FROM desk_events "
            "WHERE kind = 'closed' AND operation_id IS NOT NULL"
        )
        account = await account_of(h.engine, h.policy.tenant_id, 1)
        assert account is not None
        return card.blocks, tuple(note), await h.notes("voted"), list(story(account))

    blocks, note, [vote], lines = before = await told()
    assert REVIEWER in [n["user_id"] for n in nodes(blocks) if n.get("type") == "user"]
    assert digest[:16] in json.dumps(blocks)
    assert note[0] == f"slack:{TEAM}:{REVIEWER}"
    assert digest[:16] in note[1]
    assert note[2] is not None
    assert (vote["actor"], vote["digest"]) == (f"slack:{TEAM}:{REVIEWER}", digest)
    assert any(REVIEWER in str(line) and "approve" in str(line) for line in lines)

    user = h.workspace.users[REVIEWER]
    user.name, user.real_name = "u0second", "Sam Second reviewer"
    await h.person(REQUESTER).cause({"type": "user_change", "user": {"id": REVIEWER}})
    await h.until(lambda: _changes(h), bool)
    assert await told() == before


async def test_b050_nothing_that_is_merely_fetched_decides(h: Harness) -> None:
    card = await waiting_card(h)
    [button] = [n for n in nodes(card.blocks) if n.get("action_id") == "approve"]
    running = h.bots[0]
    shown = json.dumps([card.blocks, card.text, card.metadata])
    links = set(re.findall(r"https?://[^\s\"\\<>|]+", shown))
    links |= {running.url + _path(route) for route in running.bot.web_application().router.routes()}
    clicked = {
        "type": "block_actions",
        "team": {"id": TEAM},
        "user": {"id": REVIEWER, "team_id": TEAM},
        "container": {"channel_id": card.channel, "message_ts": card.ts},
        "actions": [{"action_id": "approve", "value": button["value"]}],
    }
    asked = urlencode({"payload": json.dumps(clicked), "value": button["value"]})
    links |= {f"{link}{'&' if '?' in link else '?'}{asked}" for link in list(links)}
    assert f"{running.url}/slack/events?{asked}" in links
    async with aiohttp.ClientSession() as session:
        for link in sorted(links):
            for method in ("GET", "HEAD"):
                async with session.request(method, link, allow_redirects=True) as answer:
                    await answer.read()
                assert "/slack/events" not in link or answer.status in (404, 405)
        unsigned = {"payload": json.dumps(clicked)}
        async with session.post(f"{running.url}/slack/events", data=unsigned) as answer:
            assert answer.status == 401
    assert await h.decisions() == []
    assert await h.operations() == [OperationStatus.AWAITING]
    await h.person(REVIEWER).click(card.channel, card.ts, "approve")
    await h.until_operation(OperationStatus.SUCCEEDED)


def _path(route: object) -> str:
    canonical: str = route.resource.canonical  # type: ignore[attr-defined]
    return canonical
