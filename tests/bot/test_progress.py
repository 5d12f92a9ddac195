"""A run tells what it does in one message where it was asked for, from first step to last word."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from bot.sandbox.faults import Fault
from bot.sandbox.model import Json, Message
from bot.sandbox.record import Entry
from bot.sandbox.scripted_person import rendered
from executor.domain.operation import OperationStatus
from executor.domain.run import RunStatus
from tests.support.bot_harness import (
    APPROVALS,
    REQUESTER,
    REVIEWER,
    SUPPORT,
    Harness,
    make_policy,
    proposing,
)
from tests.support.fake_model import FakeModel
from tests.support.unpaced import UNPACED

PLAN = make_policy(slack={"progress": "plan"})


@asynccontextmanager
async def harness(database_url: str, **given: Any) -> AsyncIterator[tuple[Harness, FakeModel]]:
    """A harness whose model says nothing before it is released."""
    model = proposing(held=True)
    async with Harness(database_url, model=model, **given) as h:
        yield h, model


def calls_about_runs(h: Harness, method: str) -> list[Entry]:
    return [
        call
        for call in h.slack.record.calls(method)
        if str(call.data["args"]["text"]).startswith("run_")
    ]


async def shown(h: Harness, *words: str, channel: str = SUPPORT) -> Message:
    """Wait until the one message about a run says all of these, and return it."""

    def says(_: object) -> bool:
        told = h.words(channel)
        return len(told) == 1 and all(word in rendered(told[0]) for word in words)

    await h.workspace.wait_for(says, 15)
    return h.words(channel)[0]


def holds_plan(args: Json) -> bool:
    return '"plan"' in json.dumps(args.get("blocks"))


async def decided(h: Harness, action: str = "approve") -> None:
    card = await h.settled_card()
    assert card.thread_ts is None, "a card to decide on is no reply"
    await h.person(REVIEWER).click(card.channel, card.ts, action)


async def test_a_mention_is_answered_in_its_thread_with_each_step_as_it_happens(
    database_url: str,
) -> None:
    async with harness(database_url) as (h, model):
        await h.person(REQUESTER).mention(SUPPORT, "close 4101")
        [asked] = [m for m in h.workspace.visible(SUPPORT) if m.user == REQUESTER]
        first = await shown(h, "Working.", "Thinks about what to do next …")
        assert first.thread_ts == asked.ts
        model.release()
        await shown(h, "Read ticket 4101 ✓", "Thinks about what to do next …")
        model.release()
        waits = await shown(
            h, "Waiting.", "Proposed to close ticket 4101: op_1, waiting for a decision …"
        )
        assert "Thinks" not in rendered(waits)
        await decided(h)
        await shown(h, "Proposed to close ticket 4101: op_1, done ✓")
        model.release()
        last = await shown(h, "Finished.", "The agent says that it is finished.", "That is all.")
        assert last.ts == first.ts
        assert len(calls_about_runs(h, "chat.postMessage")) == 1


async def test_a_command_is_answered_by_one_message_in_its_channel(database_url: str) -> None:
    async with harness(database_url) as (h, model):
        model.release(9)
        number = await h.start_run("close 4101", channel=SUPPORT)
        await decided(h)
        await h.until_run(number, RunStatus.SUCCEEDED)
        last = await shown(h, "Finished.", "op_1, done ✓", "That is all.")
        assert last.thread_ts is None
        assert h.words(APPROVALS) == []
        assert len(h.cards(APPROVALS)) == 1


async def test_a_run_without_a_word_left_says_why_it_ended(database_url: str) -> None:
    async with harness(database_url) as (h, _):
        number = await h.start_run("close 4101", channel=SUPPORT)
        await shown(h, "Working.")
        await h.person(REQUESTER).slash(SUPPORT, "/signoff", f"cancel run_{number}")
        await shown(h, "Cancelled.", "The run was cancelled.")


async def test_steps_that_follow_fast_on_each_other_cost_one_update(database_url: str) -> None:
    paces = replace(UNPACED, rests=timedelta(hours=1))
    async with harness(database_url, paces=paces) as (h, model):
        await h.start_run("close 4101", channel=SUPPORT)
        await shown(h, "Working.")
        # Only once it was drawn it rests.
        await h.until(lambda: h.value("SELECT rests_until FROM cards"), bool)
        model.release(2)
        await h.card()
        await h.until_operation(OperationStatus.AWAITING)
        await h.until(lambda: h.value("SELECT status FROM runs"), lambda found: found == "waiting")
        assert calls_about_runs(h, "chat.update") == []
        await h.move_time(timedelta(hours=1))
        await shown(h, "Read ticket 4101 ✓", "op_1, waiting for a decision …")
        assert len(calls_about_runs(h, "chat.update")) == 1


async def test_what_changes_nothing_that_it_says_is_not_sent(database_url: str) -> None:
    policy = make_policy(approval={"quorum": 2})
    async with harness(database_url, policy=policy) as (h, model):
        model.release(2)
        await h.start_run("close 4101", channel=SUPPORT)
        card = await h.settled_card()
        await shown(h, "Waiting.", "waiting for a decision")
        await h.settled_card()
        before = len(calls_about_runs(h, "chat.update"))
        await h.person(REVIEWER).click(card.channel, card.ts, "approve")
        # The card shows the vote, and the run was asked to say how its operation stands.
        wanted = "SELECT wanted_revision FROM cards WHERE subject_kind = 'run'"
        asked = await h.value(wanted)
        await h.until(lambda: h.value(wanted), lambda found: found > asked)
        await h.settled_card()
        assert len(calls_about_runs(h, "chat.update")) == before


async def test_a_plan_is_drawn_where_the_policy_wants_one(database_url: str) -> None:
    async with harness(database_url, policy=PLAN) as (h, model):
        model.release()
        await h.start_run("close 4101", channel=SUPPORT)
        message = await shown(h, "(complete) Read ticket 4101", "(in_progress) Thinks")
        [plan] = [block for block in message.blocks if block["type"] == "plan"]
        assert [task["task_id"] for task in plan["tasks"]] == ["step_1", "step_2"]
        model.release()
        message = await shown(h, "(pending) Proposed to close ticket 4101: op_1, waiting")
        [plan] = [block for block in message.blocks if block["type"] == "plan"]
        assert [task["task_id"] for task in plan["tasks"]] == ["step_1", "step_2"]


@pytest.mark.parametrize("method", ["chat.postMessage", "chat.update"])
async def test_where_slack_does_not_take_a_plan_it_is_drawn_plain_from_then_on(
    database_url: str, method: str
) -> None:
    async with harness(database_url, policy=PLAN) as (h, model):
        h.slack.faults.add(
            method, fault=Fault.REFUSED, error="invalid_blocks", when=holds_plan, times=1_000
        )
        await h.start_run("close 4101", channel=SUPPORT)
        await shown(h, "Thinks about what to do next")
        model.release()
        await shown(h, "Read ticket 4101 ✓", "Thinks about what to do next …")
        model.release()
        message = await shown(h, "op_1, waiting for a decision …")
        assert [block["type"] for block in message.blocks].count("plan") == 0
        refused = [call for call in calls_about_runs(h, method) if holds_plan(call.data["args"])]
        assert len(refused) == 1, "it is remembered"
        assert await h.value("SELECT max(failures) FROM cards") == 0
