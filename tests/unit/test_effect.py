"""What attempts prove about their effect, whatever order their results come in."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executor.domain.effect import (
    ATTEMPT_EDGES,
    EFFECT_EDGES,
    AttemptStatus,
    EffectStatus,
    Outcome,
    OutcomeKind,
    decide_attempt,
    decide_effect,
    effect_status_from,
)
from executor.domain.transition import NoChange, Transition

ATTEMPTS = st.lists(st.sampled_from(list(AttemptStatus)), max_size=6)


@pytest.mark.parametrize(("status", "kind"), list(product(AttemptStatus, OutcomeKind)))
def test_every_attempt_answers_every_outcome(status: AttemptStatus, kind: OutcomeKind) -> None:
    decision = decide_attempt(status, Outcome(kind, {"code": 1}))
    if (status.value, kind.value) in ATTEMPT_EDGES:
        assert isinstance(decision, Transition)
        assert (decision.source, decision.target.value) == (status, kind.value)
        assert decision.detail == {"evidence": {"code": 1}}
    else:
        assert decision == NoChange()


@given(st.sampled_from(list(AttemptStatus)), st.lists(st.sampled_from(list(OutcomeKind))))
def test_an_applied_attempt_stays_applied_and_knowledge_never_becomes_doubt(
    status: AttemptStatus, outcomes: list[OutcomeKind]
) -> None:
    for kind in outcomes:
        decision = decide_attempt(status, Outcome(kind, {}))
        if isinstance(decision, Transition):
            assert status is not AttemptStatus.APPLIED
            assert not (
                status is AttemptStatus.NOT_APPLIED and decision.target is AttemptStatus.UNKNOWN
            )
            status = decision.target


@given(ATTEMPTS)
def test_the_effect_follows_from_all_attempts_whatever_their_order(
    attempts: list[AttemptStatus],
) -> None:
    found = effect_status_from(attempts)
    assert found == effect_status_from(attempts[::-1])
    if not attempts:
        assert found is None
    elif AttemptStatus.APPLIED in attempts:
        assert found is EffectStatus.APPLIED
    elif AttemptStatus.DISPATCHED in attempts:
        assert found is EffectStatus.DISPATCHED
    elif AttemptStatus.UNKNOWN in attempts:
        assert found is EffectStatus.UNKNOWN
    else:
        assert found is EffectStatus.NOT_APPLIED


@given(ATTEMPTS, st.sampled_from([AttemptStatus.NOT_APPLIED, AttemptStatus.UNKNOWN]))
def test_a_later_refusal_cannot_hide_an_earlier_acceptance(
    attempts: list[AttemptStatus], later: AttemptStatus
) -> None:
    accepted = [AttemptStatus.APPLIED, *attempts, later]
    assert effect_status_from(accepted) is EffectStatus.APPLIED


@given(st.sampled_from(list(EffectStatus)), ATTEMPTS)
def test_an_effect_moves_along_edges_only_and_never_away_from_applied(
    status: EffectStatus, attempts: list[AttemptStatus]
) -> None:
    decision = decide_effect(status, attempts)
    if isinstance(decision, Transition):
        assert (decision.source.value, decision.target.value) in EFFECT_EDGES
        assert status is not EffectStatus.APPLIED
