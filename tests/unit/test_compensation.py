"""What becomes of a closing without its email, and when nothing does."""

from __future__ import annotations

from itertools import product

import pytest

from executor.domain import operation
from executor.domain.compensation import Propose, Reopening, conclude, decide, is_overtaken
from executor.domain.operation import IN_DOUBT, UNOPENED, OperationStatus
from executor.domain.policy import WhenMailIsNotSent
from executor.domain.transition import NoChange, Reason, Refused, Transition

S = OperationStatus
MOVED = Refused(Reason.CHANGED_SINCE_CLOSE, {"version": 9})


@pytest.mark.parametrize(
    ("status", "when", "moved"), list(product(S, WhenMailIsNotSent, [None, MOVED]))
)
def test_reopening_is_proposed_only_for_what_is_partial_and_as_we_left_it(
    status: OperationStatus, when: WhenMailIsNotSent, moved: Refused | None
) -> None:
    decision = decide(status, when, moved)
    if status is not S.PARTIAL:
        assert decision == NoChange()
    elif when is WhenMailIsNotSent.LEAVE:
        assert isinstance(decision, operation.LeftSo)
        assert decision.reason is Reason.LEFT_BY_POLICY
    elif moved is not None:
        assert decision == operation.LeftSo(
            MOVED.reason, {"left": {"reason": "changed_since_close", "version": 9}}
        )
    else:
        assert decision == Propose(by_policy=when is WhenMailIsNotSent.REOPEN)


@pytest.mark.parametrize(("closing", "reopening"), list(product(S, S)))
def test_a_closing_ends_with_its_reopening_and_never_otherwise(
    closing: OperationStatus, reopening: OperationStatus
) -> None:
    event = conclude(closing, Reopening("r", 13, reopening, None))
    pending = reopening in UNOPENED | IN_DOUBT
    assert is_overtaken(closing, reopening) == (closing is not S.PARTIAL and reopening in UNOPENED)
    if closing is not S.PARTIAL or pending:
        assert event == NoChange()
        return
    assert not isinstance(event, NoChange)
    moved = operation.decide(closing, event)
    assert isinstance(moved, Transition)
    assert moved.target is (S.COMPENSATED if reopening is S.SUCCEEDED else S.LEFT)
