"""The workspace itself: waiting without polling, revisions, evidence that is bounded."""

from __future__ import annotations

import asyncio

import pytest

from bot.sandbox.clock import VirtualClock
from bot.sandbox.record import Record
from bot.sandbox.workspace import Workspace
from tests.bot.sandbox.conftest import CHANNEL, make_card


async def test_waiting_ends_with_the_change_that_satisfies_it(workspace: Workspace) -> None:
    waiting = asyncio.create_task(workspace.wait_for(lambda w: len(w.visible(CHANNEL)) == 2))
    await asyncio.sleep(0)
    workspace.post(CHANNEL, "U0REVIEWER", "one")
    await asyncio.sleep(0)
    assert not waiting.done()
    workspace.post(CHANNEL, "U0REVIEWER", "two")
    await waiting


async def test_waiting_in_vain_shows_what_there_was(workspace: Workspace) -> None:
    workspace.post(CHANNEL, "U0REVIEWER", "the only message")
    with pytest.raises(TimeoutError, match="the only message"):
        await workspace.wait_for(lambda w: False, timeout_seconds=0.01)


async def test_closing_the_workspace_ends_a_wait_for_change(workspace: Workspace) -> None:
    waiting = asyncio.create_task(workspace.next_change(workspace.version))
    await asyncio.sleep(0)
    workspace.close()
    await waiting


def test_every_revision_is_kept_and_recorded(workspace: Workspace) -> None:
    message = workspace.post(CHANNEL, "U0SIGNOFF", "card", make_card(1), app=workspace.app)
    workspace.revise(message, "card", make_card(2), None)
    assert [r.blocks[1]["block_id"] for r in message.revisions] == ["body.1", "body.2"]
    assert [e.data["revision"] for e in workspace.record.cards(CHANNEL, message.ts)] == [0, 1]


def test_sent_blocks_are_not_shared_with_the_sender(workspace: Workspace) -> None:
    blocks = make_card()
    message = workspace.post(CHANNEL, "U0SIGNOFF", "card", blocks)
    blocks[0]["text"]["text"] = "changed later"
    assert message.blocks[0]["text"]["text"] == "Close ticket 4101"


def test_the_record_is_bounded_and_counts_what_it_dropped() -> None:
    record = Record(limit=2)
    for number in range(3):
        record.add("call", "m", 0.0, {"number": number})
    assert [e.data["number"] for e in record] == [1, 2]
    assert (record.dropped, [e.number for e in record]) == (1, [2, 3])


async def test_a_virtual_clock_wakes_only_those_whose_time_has_come() -> None:
    clock = VirtualClock(start=100.0)
    early, late = (asyncio.create_task(clock.sleep(s)) for s in (10, 20))
    await clock.until_sleeping(2)
    clock.advance(10)
    await early
    assert not late.done()
    assert clock.now() == 110.0
    clock.advance(10)
    await late


def test_stamps_grow_per_channel_while_the_clock_stands_or_goes_back(
    workspace: Workspace, clock: VirtualClock
) -> None:
    stamps = [workspace.new_ts(CHANNEL)]
    clock.advance(-5)
    stamps += [workspace.new_ts(CHANNEL) for _ in range(3)]
    assert stamps == sorted(set(stamps))


def test_an_unknown_person_is_nobody(workspace: Workspace) -> None:
    with pytest.raises(KeyError):
        workspace.person("U0NOBODY")
