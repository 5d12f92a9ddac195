"""The run's machine, for every status and every event."""

from __future__ import annotations

from itertools import product

import pytest

from executor.domain.run import (
    EDGES,
    ENDED,
    Claimed,
    Completed,
    DoubtSettled,
    Event,
    MustWait,
    RunStatus,
    Stopped,
    decide,
)
from executor.domain.transition import NoChange, Reason, Refused, Transition

S = RunStatus
EVENTS: dict[str, Event] = {
    "claimed": Claimed(),
    "must wait": MustWait(),
    "completed": Completed(),
    "stopped along with a rejection": Stopped(Reason.REJECTED_AND_STOPPED, in_doubt=False),
    "cancelled": Stopped(Reason.CANCELLED, in_doubt=False),
    "cancelled in doubt": Stopped(Reason.CANCELLED, in_doubt=True),
    "over its limit": Stopped(Reason.STEP_LIMIT, in_doubt=False),
    "doubt of a cancelled one settled": DoubtSettled(Reason.CANCELLED),
    "doubt of a failed one settled": DoubtSettled(Reason.STEP_LIMIT),
}
MOVES: dict[tuple[RunStatus, str], RunStatus] = {
    (S.QUEUED, "claimed"): S.RUNNING,
    (S.WAITING, "claimed"): S.RUNNING,
    (S.PAUSED, "claimed"): S.RUNNING,
    (S.RUNNING, "must wait"): S.WAITING,
    (S.RUNNING, "completed"): S.SUCCEEDED,
    (S.CANCELLING, "doubt of a cancelled one settled"): S.CANCELLED,
    (S.CANCELLING, "doubt of a failed one settled"): S.FAILED,
    **{(s, "cancelled"): S.CANCELLED for s in (S.QUEUED, S.RUNNING, S.WAITING, S.PAUSED)},
    **{
        (s, "stopped along with a rejection"): S.CANCELLED
        for s in (S.QUEUED, S.RUNNING, S.WAITING, S.PAUSED)
    },
    **{(s, "cancelled in doubt"): S.CANCELLING for s in (S.QUEUED, S.RUNNING, S.WAITING, S.PAUSED)},
    **{(s, "over its limit"): S.FAILED for s in (S.QUEUED, S.RUNNING, S.WAITING, S.PAUSED)},
}


@pytest.mark.parametrize(("status", "name"), list(product(RunStatus, EVENTS)))
def test_every_status_answers_every_event(status: RunStatus, name: str) -> None:
    decision = decide(status, EVENTS[name])
    target = MOVES.get((status, name))
    if target is None:
        assert isinstance(decision, NoChange | Refused)
        if status in ENDED:
            assert decision == Refused(Reason.ALREADY_ENDED)
    else:
        assert isinstance(decision, Transition)
        assert (decision.source, decision.target) == (status, target)
        assert (status.value, target.value) in EDGES


def test_a_second_claim_and_a_second_cancel_change_nothing() -> None:
    assert decide(S.RUNNING, Claimed()) == NoChange()
    assert decide(S.CANCELLING, EVENTS["cancelled"]) == NoChange(Reason.CANCELLED)


def test_an_end_has_no_way_out() -> None:
    assert {source for source, _ in EDGES}.isdisjoint(status.value for status in ENDED)
