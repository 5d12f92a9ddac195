"""``signoff demo``: each story to its true end, and nothing that is lost or left behind."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest

from bot.sandbox.crash_points import Story
from tests.support.demo import OpenDemo, demo_once, open_demo, processes_in
from tests.support.theatre import Theatre

pytestmark = pytest.mark.timeout(180)


@pytest.mark.parametrize(
    ("flags", "status", "mails", "ticket"),
    [((), "succeeded", 1, "closed"), (("--expire",), "expired", 0, "open")],
)
async def test_the_command_plays_a_story_to_its_true_end(
    flags: tuple[str, ...], status: str, mails: int, ticket: str, folder: Path
) -> None:
    done = await demo_once(*flags, temporary=folder)
    assert done.report is not None, done.errors
    assert (done.code, done.report["ok"]) == (0, True), done.report["checks"]
    _check(done.report, status, mails, ticket)
    assert list(folder.iterdir()) == [], "a temporary home is removed"


@pytest.mark.parametrize(
    ("story", "status", "mails", "ticket"),
    [
        (Story.REJECT, "succeeded", 1, "closed"),
        (Story.CANCEL, "withdrawn", 0, "open"),
        (Story.STALE, "stale", 0, "open"),
        (Story.MENTION, "succeeded", 1, "closed"),
        (Story.SETTLE, "succeeded", 1, "closed"),
        (Story.ASK, "succeeded", 1, "closed"),
        (Story.WITHDRAW, "withdrawn", 0, "open"),
    ],
)
@pytest.mark.asyncio(loop_scope="module")
async def test_a_story_comes_to_its_true_end(
    story: Story, status: str, mails: int, ticket: str, theatre: Theatre
) -> None:
    _check((await theatre.play(story)).report, status, mails, ticket)


def _check(report: dict[str, Any], status: str, mails: int, ticket: str) -> None:
    assert report["operation"]["status"] == status
    assert report["operation"]["digest"][:16] in report["card"]
    assert report["emails_accepted"] == mails
    assert report["email_matches_card"] is (True if mails else None)
    assert report["ticket"]["status"] == ticket
    assert report["journal_verified"] is True


async def test_a_story_that_comes_to_no_end_says_what_it_waited_for(folder: Path) -> None:
    done = await demo_once(temporary=folder, timeout_seconds=1.0)
    assert done.code == 1
    assert "not within 1 s: waited for" in done.errors
    assert "The executor said last:" in done.errors
    assert processes_in(folder) == []
    assert list(folder.iterdir()) == []


async def test_a_demo_that_is_stopped_loses_nothing(folder: Path) -> None:
    async with open_demo(folder) as demo:
        await _close_a_ticket(demo)
        second = await demo_once("--home", str(folder), temporary=folder)
        assert (second.code, second.report) == (1, None)
        assert "another demo runs" in second.errors
        before = await _everything(demo)
        assert await demo.stop() == 0
    assert processes_in(folder) == []
    async with open_demo(folder) as demo:
        assert await _everything(demo) == before
        assert await demo.stop(signal.SIGTERM) == 0
    assert len(before["mail"]) == 1


async def test_what_waits_when_the_demo_stops_is_decided_after_the_next_start(
    folder: Path,
) -> None:
    async with open_demo(folder) as demo:
        await demo.act("slash", user="U0REQUESTER", channel="C0SUPPORT", text="/signoff run 4102")
        waiting = await _card(demo)
        assert await demo.stop() == 0
    async with open_demo(folder) as demo:
        assert (await _card(demo))["ts"] == waiting["ts"]
        await _approve(demo, waiting)
        assert [run["status"] for run in await demo.get("runs")] == ["succeeded"]


async def test_nothing_outlives_a_demo_that_was_killed(folder: Path) -> None:
    async with open_demo(folder) as demo:
        working = processes_in(folder)
        names = {process.name() for process in working}
        assert "postgres" in names
        assert len(working) > 3
        await demo.stop(signal.SIGKILL)
        _, alive = await asyncio.to_thread(psutil.wait_procs, working, 45)
        assert alive == []
    assert processes_in(folder) == []


async def _close_a_ticket(demo: OpenDemo) -> None:
    await demo.act("slash", user="U0REQUESTER", channel="C0SUPPORT", text="/signoff run 4101")
    await _approve(demo, await _card(demo))


async def _approve(demo: OpenDemo, card: dict[str, Any]) -> None:
    await demo.act(
        "click", user="U0REVIEWER", channel="C0APPROVALS", ts=card["ts"], action_id="approve"
    )
    async for state in _states(demo):
        if "Done. " in str(state) and "finished" in str(state):
            return


async def _card(demo: OpenDemo) -> dict[str, Any]:
    """Wait for the card that can be approved."""
    async for state in _states(demo):
        for channel in state["channels"]:
            for message in channel["messages"]:
                if "'action_id': 'approve'" in str(message):
                    found: dict[str, Any] = message
                    return found
    raise AssertionError("the stream of changes ended")


async def _states(demo: OpenDemo) -> Any:
    """Yield the workspace now and after each change."""
    async with demo.session.get(f"{demo.url}/sandbox/events") as stream:
        async for line in stream.content:
            if line.startswith(b"data:"):
                yield await demo.get("state")


async def _everything(demo: OpenDemo) -> dict[str, Any]:
    """Read what a restart must not lose."""
    state = await demo.get("state")
    return {
        "messages": [channel["messages"] for channel in state["channels"]],
        **{path: await demo.get(path) for path in ("mail", "tickets", "runs", "runs/1/timeline")},
    }
