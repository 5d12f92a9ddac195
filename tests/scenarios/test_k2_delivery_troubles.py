"""K2: an approval that nobody can see is told to people who can act, and heals by itself."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import aiohttp
import pytest

from bot import replies
from bot.sandbox.faults import Fault
from bot.sandbox.model import Channel, Message
from executor.domain.operation import OperationStatus
from executor.domain.turn import PATIENCE
from tests.support.bot_harness import (
    APPROVALS,
    REQUESTER,
    REVIEWER,
    SECOND,
    SUPPORT,
    Harness,
    make_policy,
)
from tests.support.card_reading import action_ids

SPARE = "C0SPARE"
A_LITTLE = timedelta(seconds=3)
A_MINUTE = timedelta(seconds=61)


def with_fallback() -> dict[str, Any]:
    return {"policy": make_policy(slack={"fallback_channel": SPARE})}


@pytest.fixture
async def h(database_url: str) -> AsyncIterator[Harness]:
    async with Harness(database_url, **with_fallback()) as harness:
        members = set(harness.workspace.channels[APPROVALS].members)
        harness.workspace.channels[SPARE] = Channel(SPARE, "approvals-spare", members)
        yield harness


@pytest.fixture
async def bare(database_url: str) -> AsyncIterator[Harness]:
    """Without a fallback channel."""
    async with Harness(database_url) as harness:
        yield harness


def archive(h: Harness) -> Callable[[], None]:
    channel = h.workspace.channels[APPROVALS]
    channel.is_archived = True
    return lambda: setattr(channel, "is_archived", False)


def remove_bot(h: Harness) -> Callable[[], None]:
    members = h.workspace.channels[APPROVALS].members
    members.discard(h.workspace.app.user_id)
    return lambda: members.add(h.workspace.app.user_id)


def delete(h: Harness) -> Callable[[], None]:
    channel = h.workspace.channels.pop(APPROVALS)
    return lambda: h.workspace.channels.update({APPROVALS: channel})


def share(h: Harness) -> Callable[[], None]:
    channel = h.workspace.channels[APPROVALS]
    channel.is_ext_shared = True
    return lambda: setattr(channel, "is_ext_shared", False)


def restrict(h: Harness) -> Callable[[], None]:
    planned = h.slack.faults.add(
        "chat.postMessage",
        fault=Fault.REFUSED,
        error="restricted_action",
        when=lambda args: args.get("channel") == APPROVALS,
        times=1_000,
    )
    return lambda: setattr(planned, "times", 0)


LASTING = {
    "is_archived": (archive, "the channel is archived"),
    "not_in_channel": (remove_bot, "the app is not in the channel"),
    "channel_not_found": (delete, "the channel is gone"),
    "channel_is_shared": (share, "another organisation reads along"),
    "restricted_action": (restrict, "do not let the app post there"),
}


async def health(h: Harness) -> dict[str, Any]:
    async with aiohttp.ClientSession() as session, session.get(f"{h.bots[-1].url}/readyz") as said:
        found: dict[str, Any] = await said.json()
    # A test that moves the database's clock has moved it away from this host's.
    assert set(found["problems"]) <= {"clock_skew"}
    return found


async def unseen(h: Harness) -> int:
    return int((await health(h))["approvals_unseen"])


def told(h: Harness, place: str) -> list[Message]:
    """The notices of approvals that cannot be seen, which have no buttons."""
    return [m for m in h.workspace.visible(place) if "nobody can see" in m.text and not m.blocks]


async def pass_time_until(h: Harness, found: Callable[[], object], step: timedelta) -> None:
    """Let time pass, in steps, until the bots have done something."""

    async def look() -> object:
        if not found():
            await h.move_time(step)
        return found()

    await h.until(look, bool)


@pytest.mark.parametrize("problem", LASTING)
async def test_a_card_whose_channel_cannot_be_used_goes_to_the_fallback_and_is_told_there_first(
    h: Harness, problem: str
) -> None:
    break_it, why = LASTING[problem]
    break_it(h)
    await h.start_run("close 4101", channel=SUPPORT)
    card = await h.card(channel=SPARE)
    [notice] = told(h, SPARE)
    assert notice.ts < card.ts
    assert "op_1 waits" in notice.text
    assert why in notice.text
    assert f"<#{APPROVALS}>" in notice.text
    delivery = await h.person(REVIEWER).click(card.channel, card.ts, "approve")
    assert delivery.status == 200
    await h.until_operation(OperationStatus.SUCCEEDED)
    await h.workspace.wait_for(lambda _: "Done." in str(card.blocks))
    assert len(told(h, SPARE)) == 1, "told once"
    assert (await health(h))["delivery_troubles"][0]["problem"] == problem


@pytest.mark.parametrize("problem", LASTING)
async def test_a_channel_that_can_be_used_again_is_used_without_anybody_restarting_anything(
    bare: Harness, problem: str, caplog: pytest.LogCaptureFixture
) -> None:
    h = bare
    break_it, why = LASTING[problem]
    mend = break_it(h)
    await h.start_run("close 4101", channel=SUPPORT)
    for person in (REVIEWER, SECOND, REQUESTER):
        await h.until(lambda: _told(h, f"D0{person}"), bool)  # noqa: B023
        [notice] = told(h, f"D0{person}")
        assert why in notice.text
        assert action_ids(notice.blocks) == []
    assert await h.operations() == [OperationStatus.AWAITING]
    report = await health(h)
    assert report["approvals_unseen"] == 1
    assert report["approvals_unseen_problems"] == {problem: 1}
    [trouble] = report["delivery_troubles"]
    assert (trouble["where"], trouble["problem"]) == ("channel", problem)
    await h.move_time(A_MINUTE)
    await h.until(lambda: _logged(caplog, "waits for a decision that nobody can make"), bool)
    assert (await health(h))["approvals_unseen_oldest_seconds"] >= 60
    mend()
    await h.move_time(A_MINUTE)
    card = await h.settled_card()
    await h.until(lambda: unseen(h), lambda n: n == 0)
    assert (await health(h))["delivery_troubles"] == []
    assert [r for r in caplog.records if "waits for a decision that nobody" in r.message][1:] == []
    assert await _logged(caplog, "op_1 is shown now, after")
    await h.person(REVIEWER).click(card.channel, card.ts, "approve")
    await h.until_operation(OperationStatus.SUCCEEDED)


async def _told(h: Harness, place: str) -> int:
    return len(told(h, place))


async def _logged(caplog: pytest.LogCaptureFixture, words: str) -> list[logging.LogRecord]:
    return [record for record in caplog.records if words in record.getMessage()]


@pytest.mark.parametrize(
    "error", ["token_revoked", "account_inactive", "invalid_auth", "missing_scope"]
)
async def test_a_workspace_that_takes_nothing_is_named_and_heals(
    h: Harness, error: str, caplog: pytest.LogCaptureFixture
) -> None:
    everything = [
        h.slack.faults.add(method, fault=Fault.REFUSED, error=error, times=10_000)
        for method in ("chat.postMessage", "chat.update", "auth.test", "conversations.info")
    ]
    await h.start_run("close 4101")
    await h.until(lambda: _logged(caplog, f"nothing can be shown in the workspace: {error}"), bool)
    report = await health(h)
    assert report["delivery_troubles"][0]["where"] == "workspace"
    await h.until_operation(OperationStatus.AWAITING)
    assert (await health(h))["approvals_unseen_problems"] == {error: 1}
    await h.move_time(A_MINUTE)
    await h.until(lambda: _logged(caplog, "waits for a decision that nobody can make"), bool)
    assert told(h, SPARE) == []
    calls = len(h.slack.record.calls("chat.postMessage"))
    for planned in everything:
        planned.times = 0
    await h.move_time(A_MINUTE)
    await h.settled_card()
    assert len(h.slack.record.calls("chat.postMessage")) - calls <= 2
    assert (await health(h))["delivery_troubles"] == []


async def test_an_uninstalled_app_is_known_at_once_and_works_again_once_it_is_back(
    h: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    h.workspace.uninstall()
    await h.person(REVIEWER).cause({"type": "app_uninstalled"})
    await h.until(lambda: _logged(caplog, "nothing can be shown in the workspace"), bool)
    assert (await health(h))["delivery_troubles"][0]["problem"] == "app_uninstalled"
    assert await h.value("SELECT count(*) FROM inbox WHERE handled_at IS NULL") == 0
    h.workspace.restore()
    await h.move_time(A_LITTLE)
    await h.start_run("close 4101")
    await h.settled_card()
    await h.until(lambda: _troubles(h), lambda found: found == [])


async def _troubles(h: Harness) -> list[Any]:
    found: list[Any] = (await health(h))["delivery_troubles"]
    return found


@pytest.mark.parametrize(
    ("event", "mended"),
    [
        ({"type": "channel_unarchive", "channel": APPROVALS, "user": REVIEWER}, archive),
        (
            {
                "type": "member_joined_channel",
                "channel": APPROVALS,
                "user": "U0SIGNOFF",
                "inviter": REVIEWER,
            },
            remove_bot,
        ),
    ],
)
async def test_an_event_hastens_what_heals(
    bare: Harness, event: dict[str, Any], mended: Callable[[Harness], Callable[[], None]]
) -> None:
    h = bare
    mend = mended(h)
    await h.start_run("close 4101", channel=SUPPORT)
    # As if it had been so for long, so that the next look is far away.
    await h.until(lambda: _troubles(h), bool)
    for _ in range(8):
        await h.move_time(timedelta(seconds=30))
        await h.until(lambda: _next_look(h), lambda seconds: seconds > 0)
    assert await _next_look(h) > 20
    mend()
    await h.person(REVIEWER).cause(event)
    await h.settled_card(timeout=8)


async def _next_look(h: Harness) -> float:
    return float(
        await h.value(
            "SELECT extract(epoch FROM max(look_at) - signoff_clock()) FROM delivery_troubles"
        )
    )


async def test_a_fallback_that_cannot_be_used_either_leaves_notices_to_each(h: Harness) -> None:
    archive(h)
    h.workspace.channels[SPARE].is_archived = True
    await h.start_run("close 4101", channel=SUPPORT)
    for person in (REVIEWER, SECOND, REQUESTER):
        await h.workspace.wait_for(lambda _, p=person: told(h, f"D0{p}"), 15)  # type: ignore[misc]
    assert h.cards(SPARE) == []
    h.workspace.channels[SPARE].is_archived = False
    await h.move_time(A_MINUTE)
    await h.card(channel=SPARE)


async def test_a_passing_trouble_is_waited_for_before_the_card_goes_elsewhere(h: Harness) -> None:
    h.slack.faults.add(
        "chat.postMessage",
        fault=Fault.ERROR_500_BEFORE_COMMIT,
        when=lambda args: args.get("channel") == APPROVALS,
        times=10_000,
    )
    await h.start_run("close 4101", channel=SUPPORT)
    await h.until(lambda: _troubles(h), bool)
    assert told(h, SPARE) == []
    await h.move_time(A_MINUTE)
    await h.workspace.wait_for(lambda _: told(h, SPARE))
    assert [m for m in h.cards(SPARE) if m.blocks] == []
    await h.move_time(PATIENCE)
    await h.workspace.wait_for(lambda _: [m for m in h.cards(SPARE) if m.blocks])
    assert [m for m in h.cards(APPROVALS) if m.blocks] == []
    await h.card(channel=SPARE)


async def test_a_card_that_is_refused_itself_is_told_in_its_own_channel(h: Harness) -> None:
    h.slack.faults.add(
        "chat.postMessage",
        fault=Fault.REFUSED,
        error="invalid_blocks",
        when=lambda args: bool(args.get("blocks")),
        times=10_000,
    )
    await h.start_run("close 4101", channel=SUPPORT)
    await pass_time_until(h, lambda: told(h, APPROVALS), timedelta(seconds=20))
    [notice] = told(h, APPROVALS)
    assert "Slack refuses what it shows (invalid_blocks)" in notice.text
    assert told(h, SPARE) == []


async def test_a_deleted_card_is_noticed_while_it_can_still_be_decided(h: Harness) -> None:
    await h.start_run("close 4101")
    card = await h.settled_card()
    until = await h.value("SELECT decide_by FROM approvals")
    h.workspace.delete(card)
    await h.move_time(timedelta(seconds=601))
    again = await h.card(lambda m: m.ts != card.ts and "approve" in action_ids(m.blocks))
    await h.settled_card()
    assert await h.value("SELECT decide_by FROM approvals") == until
    assert "Decide by" in str(again.blocks)
    await h.person(REVIEWER).click(again.channel, again.ts, "approve")
    await h.until_operation(OperationStatus.SUCCEEDED)


async def test_a_card_in_a_channel_that_becomes_shared_is_taken_out_of_it(h: Harness) -> None:
    await h.start_run("close 4101")
    card = await h.settled_card()
    share(h)
    # What was found well is believed for a minute of this host's own time.
    await h.bots[0].stop()
    await h.start_bot()
    await h.move_time(timedelta(seconds=601))
    await h.workspace.wait_for(lambda _: replies.replaced_card() in str(card.blocks), 15)
    assert "pat@" not in str(card.blocks)
    await h.card(channel=SPARE)
