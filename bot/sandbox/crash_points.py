"""Every failpoint: which program reaches it, when, in which story, and what is true afterwards.

The list of failpoints is the executor's own, so a new commit with neither a plan nor a reason here
stops the import, and is in the crash matrix as soon as it has a plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from executor.engine.failpoint import ALL_POINTS, CALL, Commit


class Story(StrEnum):
    """What people do in one demo without a person."""

    APPROVE = "approve"
    REJECT = "reject"
    CANCEL = "cancel"
    STALE = "stale"
    EXPIRE = "expire"
    MENTION = "mention"
    SETTLE = "settle"
    ASK = "ask"
    WITHDRAW = "withdraw"


class Program(StrEnum):
    """One of our two programs."""

    BOT = "bot"
    EXECUTOR = "executor"


class Moment(StrEnum):
    """From when on the program runs with its failpoint.

    The executor looks for work as soon as it runs, so it has to be started when there is work that
    leads to the point: ``ASKED`` is after the run was asked for, ``DECIDED`` after the decision.
    """

    BEGINNING = "beginning"
    ASKED = "asked"
    DECIDED = "decided"


@dataclass(frozen=True, slots=True)
class CrashPlan:
    """How one failpoint is reached. ``earlier`` are points to be killed at before it.

    ``in_doubt``: the program is lost between the opening and the report, so that nobody can know
    whether the mail left; ``mails`` is how many did.
    """

    point: str
    program: Program
    moment: Moment
    story: Story
    earlier: tuple[str, ...] = ()
    in_doubt: bool = False
    mails: int = 1


_MAILS_IN_DOUBT = {
    "open.after": 0,
    "call.before": 0,
    "call.after": 1,
    "report.before": 1,
    "reconcile.before": 1,
    "reconcile.after": 1,
}


UNREACHED: Mapping[Commit, str] = {
    Commit.RECOVER: "the reference job sends by SMTP, which no machine can ask afterwards",
    Commit.RECORD_SEARCH: "the reference job sends by SMTP, which cannot be searched",
    Commit.COMPENSATE: "no demo ends with the ticket closed and the email proved not sent",
    Commit.PAUSE: "no demo runs into a limit of the budget",
    Commit.RESUME: "no demo runs into a limit of the budget",
    Commit.EDIT: "no demo edits what the agent wrote",
    Commit.PROPOSE_AGAIN: "no demo asks again for what was out of date",
    Commit.NUDGE: "no demo waits long enough for a reminder",
    Commit.GRANT: "no demo gives anybody a role",
    Commit.JUDGE_CODE: "no demo asks for a second factor",
}
"""Commits that no demo reaches, and why. These kill somebody at them, on both sides:
``tests/faults/test_recovery_crashes.py``, ``tests/engine/test_compensating.py``,
``tests/faults/test_edit_crashes.py``, ``tests/faults/test_grant_crashes.py`` and
``tests/faults/test_undemonstrated_crashes.py``."""


def crash_plan(point: str) -> CrashPlan:
    """Return how ``point`` is reached; raises ``KeyError`` where no demo reaches such a point."""
    if point not in ALL_POINTS:
        raise KeyError(point)
    name = point.rpartition(".")[0]
    if name == CALL:
        return _plan(point, Program.EXECUTOR, Moment.DECIDED)
    match Commit(name):
        case Commit.START | Commit.DECIDE:
            return _plan(point, Program.BOT, Moment.BEGINNING)
        case Commit.BEGIN_POSTING | Commit.PRESENT | Commit.FINISH_DRAWING:
            # Two messages come there: what the run says of itself, and the operation's card.
            return _plan(point, Program.BOT, Moment.BEGINNING, earlier=(point,))
        case Commit.STORE_EVENT:
            return _plan(point, Program.BOT, Moment.BEGINNING, Story.MENTION)
        case Commit.CANCEL:
            return _plan(point, Program.BOT, Moment.BEGINNING, Story.CANCEL)
        case Commit.CLAIM_RUN | Commit.RESERVE | Commit.RECORD_REPLY | Commit.RECORD_RESULT:
            return _plan(point, Program.EXECUTOR, Moment.ASKED)
        case Commit.ACCEPT | Commit.WAIT:
            return _plan(point, Program.EXECUTOR, Moment.ASKED)
        case Commit.EXPIRE:
            return _plan(point, Program.EXECUTOR, Moment.ASKED, Story.EXPIRE)
        case Commit.CLAIM_OPERATION | Commit.OPEN | Commit.REPORT | Commit.WAKE | Commit.END_RUN:
            return _plan(point, Program.EXECUTOR, Moment.DECIDED)
        case Commit.RECONCILE:
            return _plan(point, Program.EXECUTOR, Moment.DECIDED, earlier=("call.after",))
        case Commit.SETTLE:
            return _plan(point, Program.BOT, Moment.BEGINNING, Story.SETTLE)
        case Commit.ASK:
            return _plan(point, Program.BOT, Moment.BEGINNING, Story.ASK)
        case Commit.WITHDRAW:
            return _plan(point, Program.BOT, Moment.BEGINNING, Story.WITHDRAW)
        case _:
            raise KeyError(point)


def _plan(
    point: str,
    program: Program,
    moment: Moment,
    story: Story = Story.APPROVE,
    earlier: tuple[str, ...] = (),
) -> CrashPlan:
    in_doubt = point in _MAILS_IN_DOUBT
    sends = story in (Story.APPROVE, Story.MENTION, Story.REJECT, Story.SETTLE, Story.ASK)
    return CrashPlan(
        point,
        program,
        moment,
        story,
        earlier,
        in_doubt,
        _MAILS_IN_DOUBT[point] if in_doubt else int(sends),
    )


CRASH_PLANS: tuple[CrashPlan, ...] = tuple(
    crash_plan(point)
    for point in ALL_POINTS
    if point.rpartition(".")[0] not in {commit.value for commit in UNREACHED}
)
"""The plans of all failpoints that a demo reaches, in the order of the reference job."""
