"""The reference job with a SIGKILL at every failpoint: it ends in the truth, with one mail at most.

Either nothing was opened before the crash, and the job succeeds with exactly one mail; or the crash
fell between the opening and the report, and the card says that nobody can know.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.sandbox.crash_points import CRASH_PLANS, CrashPlan, Story
from tests.support.demo import demo_once

_WORDS = {
    Story.APPROVE: ("succeeded", "Done. "),
    Story.MENTION: ("succeeded", "Done. "),
    Story.SETTLE: ("succeeded", "Done. "),
    Story.CANCEL: ("withdrawn", "Withdrawn: nothing was done. "),
    Story.EXPIRE: ("expired", "Expired: nothing was done. "),
}


@pytest.mark.torture
@pytest.mark.timeout(240)
@pytest.mark.parametrize("plan", CRASH_PLANS, ids=lambda plan: plan.point)
async def test_a_crash_ends_in_the_truth(plan: CrashPlan, folder: Path) -> None:
    done = await demo_once("--crash", plan.point, temporary=folder, timeout_seconds=200.0)
    assert done.report is not None, done.errors
    assert (done.code, done.report["ok"]) == (0, True), done.report["checks"]
    status, words = _WORDS[plan.story]
    if plan.in_doubt:
        status, words = "unknown", "Not known: it may have been sent. "
    assert done.report["crash"]["killed_at"] == [*plan.earlier, plan.point]
    assert done.report["operation"]["status"] == status
    assert words in done.report["card"]
    assert done.report["emails_accepted"] == plan.mails
    assert done.report["journal_verified"] is True
