"""The reference job with a SIGKILL at every failpoint: it ends in the truth, with one mail at most.

Either nothing was opened before the crash, and the job succeeds with exactly one mail; or the crash
fell between the opening and the report, and the card says that nobody can know.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bot.sandbox.crash_points import CRASH_PLANS, CrashPlan, Story
from tests.support.demo import demo_once
from tests.support.theatre import Theatre

_WORDS = {
    Story.APPROVE: ("succeeded", "Done. "),
    Story.MENTION: ("succeeded", "Done. "),
    Story.SETTLE: ("succeeded", "Done. "),
    Story.ASK: ("succeeded", "Done. "),
    Story.WITHDRAW: ("withdrawn", "Withdrawn: nothing was done. "),
    Story.CANCEL: ("withdrawn", "Withdrawn: nothing was done. "),
    Story.EXPIRE: ("expired", "Expired: nothing was done. "),
}
# The first two need a policy, and so a home, of their own; the third is a doubt after two crashes.
_BY_THE_COMMAND = {"expire.before", "expire.after", "reconcile.after"}


@pytest.mark.torture
@pytest.mark.timeout(240)
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    "plan",
    [plan for plan in CRASH_PLANS if plan.point not in _BY_THE_COMMAND],
    ids=lambda plan: plan.point,
)
async def test_a_crash_ends_in_the_truth(plan: CrashPlan, theatre: Theatre) -> None:
    truth = await theatre.play(plan.story, plan, seconds=200.0)
    _check(plan, truth.report)


@pytest.mark.torture
@pytest.mark.timeout(240)
@pytest.mark.parametrize("point", sorted(_BY_THE_COMMAND))
async def test_the_command_for_a_crash_ends_in_the_truth(point: str, folder: Path) -> None:
    [plan] = [plan for plan in CRASH_PLANS if plan.point == point]
    done = await demo_once("--crash", point, temporary=folder, timeout_seconds=200.0)
    assert done.report is not None, done.errors
    assert (done.code, done.report["ok"]) == (0, True), done.report["checks"]
    _check(plan, done.report)


def _check(plan: CrashPlan, report: dict[str, Any]) -> None:
    status, words = _WORDS[plan.story]
    if plan.in_doubt:
        status, words = "unknown", "Not known: it may have been sent. "
    assert report["crash"]["killed_at"] == [*plan.earlier, plan.point]
    assert report["operation"]["status"] == status
    assert words in report["card"]
    assert report["emails_accepted"] == plan.mails
    assert report["journal_verified"] is True
