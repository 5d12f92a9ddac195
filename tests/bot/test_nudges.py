"""A reminder stands in the thread of its card, names people, and is taken back by a decision."""

from __future__ import annotations

from datetime import timedelta

from executor.domain.operation import OperationStatus
from tests.support.bot_harness import APPROVALS, REVIEWER, SECOND, Harness, make_policy
from tests.support.words import press

RULES = make_policy(
    approval={
        "decide_within_seconds": 3_600,
        "remind_after_seconds": [600],
        "escalate_after_seconds": 1_200,
        "escalate_to": [SECOND],
    }
)


async def test_a_reminder_is_told_beforehand_and_comes_into_the_thread(database_url: str) -> None:
    async with Harness(database_url, policy=RULES) as h:
        await h.start_run()
        card = await h.settled_card()
        shown = h.workspace.shown()
        assert "Reminders at" in shown
        assert "If nobody has decided by" in shown
        assert "After that it expires: nothing is done, and the agent is told so." in shown
        await h.move_time(timedelta(seconds=601))
        reminder = await h.card(lambda m: m.thread_ts == card.ts)
        named = [part for part in _parts(reminder.blocks) if part["type"] == "user"]
        assert [part["user_id"] for part in named] == [REVIEWER, SECOND]
        await h.shown("op_1 still waits for a decision")
        await press(h, REVIEWER, card, "approve")
        await h.until_operation(OperationStatus.SUCCEEDED)
        await h.shown("op_1 does not wait any more.")
        told = [
            m for m in h.cards(APPROVALS) if m.thread_ts == card.ts and "op_1 " in str(m.blocks)
        ]
        assert len([m for m in told if "does not wait" in str(m.blocks)]) == 1


def _parts(blocks: list[dict]) -> list[dict]:  # type: ignore[type-arg]
    return [
        part
        for block in blocks
        for section in block.get("elements", [])
        for part in section.get("elements", [])
    ]
