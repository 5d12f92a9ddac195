"""The operation's machine, for every status and every event."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executor.domain.effect import EffectStatus
from executor.domain.operation import (
    EDGES,
    LIVE,
    UNOPENED,
    Denied,
    EffectsMoved,
    Event,
    Granted,
    LeftSo,
    Opened,
    OperationStatus,
    RevalidationFailed,
    RunEnded,
    Superseded,
    TakenBack,
    TimeRanOut,
    Undone,
    decide,
    refusal_for,
)
from executor.domain.transition import NoChange, Reason, Refused, Transition

S = OperationStatus
E = EffectStatus
EVENTS: dict[str, tuple[Event, set[OperationStatus], OperationStatus]] = {
    "granted": (Granted(), {S.AWAITING}, S.APPROVED),
    "denied": (Denied("p", "no"), {S.AWAITING}, S.REJECTED),
    "time ran out": (TimeRanOut(Reason.EXPIRED), {*UNOPENED}, S.EXPIRED),
    "superseded": (Superseded("x"), {*UNOPENED}, S.SUPERSEDED),
    "run ended": (RunEnded(Reason.CANCELLED), {*UNOPENED}, S.WITHDRAWN),
    "taken back": (
        TakenBack("p", Reason.WITHDRAWN_BY_REQUESTER), {*UNOPENED}, S.WITHDRAWN,
    ),
    "revalidation failed": (
        RevalidationFailed(Refused(Reason.VERSION_CHANGED)), {*UNOPENED}, S.STALE,
    ),
    "opened": (Opened(), {S.APPROVED}, S.EXECUTING),
    "undone": (Undone("x", {}), {S.PARTIAL}, S.COMPENSATED),
    "left so": (LeftSo(Reason.LEFT_BY_POLICY, {}), {S.PARTIAL}, S.LEFT),
}  # fmt: skip


@pytest.mark.parametrize(("status", "name"), list(product(OperationStatus, EVENTS)))
def test_every_status_answers_every_event(status: OperationStatus, name: str) -> None:
    event, sources, target = EVENTS[name]
    decision = decide(status, event)
    if status in sources:
        assert isinstance(decision, Transition)
        assert (decision.source, decision.target) == (status, target)
        assert (status.value, target.value) in EDGES
    elif status is target:
        assert decision == NoChange()
    else:
        assert decision == Refused(refusal_for(status))


@pytest.mark.parametrize(
    ("statuses", "target"),
    [
        ([E.APPLIED, E.APPLIED], S.SUCCEEDED),
        ([E.APPLIED, E.NOT_APPLIED], S.PARTIAL),
        ([E.APPLIED, E.UNKNOWN], S.UNKNOWN),
        ([E.NOT_APPLIED, E.UNKNOWN], S.UNKNOWN),
        ([E.NOT_APPLIED, E.NOT_APPLIED], S.FAILED),
        ([E.NOT_APPLIED, E.PLANNED], S.FAILED),
        ([E.APPLIED, E.DISPATCHED], None),
        ([E.UNKNOWN, E.DISPATCHED], None),
    ],
)
def test_the_whole_follows_from_its_parts(
    statuses: list[EffectStatus], target: OperationStatus | None
) -> None:
    decision = decide(S.EXECUTING, EffectsMoved(statuses))
    if target is None:
        assert decision == NoChange()
    else:
        assert isinstance(decision, Transition)
        assert decision.target is target


@given(st.sampled_from(list(OperationStatus)), st.lists(st.sampled_from(list(E)), min_size=1))
def test_effects_never_move_an_operation_along_an_edge_that_is_none(
    status: OperationStatus, statuses: list[EffectStatus]
) -> None:
    decision = decide(status, EffectsMoved(statuses))
    if isinstance(decision, Transition):
        assert (decision.source.value, decision.target.value) in EDGES
        if decision.target is S.SUCCEEDED:
            assert set(statuses) == {E.APPLIED}
        if decision.target is S.FAILED:
            assert E.APPLIED not in statuses
            assert E.UNKNOWN not in statuses
    assert decide(status, EffectsMoved(statuses, will_continue=True)) == NoChange()


def test_what_succeeded_stays_so_and_what_is_live_is_not_over() -> None:
    assert all(source != "succeeded" for source, _ in EDGES)
    assert {S.UNKNOWN, S.PARTIAL} < LIVE


def test_only_what_stops_its_run_says_so() -> None:
    stops = decide(S.AWAITING, TimeRanOut(Reason.EXPIRED, stops_run=True))
    told = decide(S.AWAITING, TimeRanOut(Reason.EXPIRED))
    assert isinstance(stops, Transition)
    assert isinstance(told, Transition)
    assert (stops.detail, told.detail) == ({"stops_run": True}, {})
