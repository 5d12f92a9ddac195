"""What recovery decides: never a second sending without a key, never past its window."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executor.domain.effect import (
    Attempt,
    AttemptStatus,
    Capability,
    Outcome,
    OutcomeKind,
    Terms,
)
from executor.domain.ids import AttemptId, EffectId
from executor.domain.payloads import JsonObject
from executor.domain.recovery import (
    MOST_LOOKUPS,
    MOST_SENDINGS,
    READING_LAG,
    REPEAT_WAITS,
    AskPerson,
    Declared,
    LookUp,
    Recovery,
    SendAgain,
    Settled,
    Wait,
    Why,
    as_recorded,
    plan,
    recover,
    sendings,
)

T0 = datetime(2026, 1, 1, tzinfo=UTC)
MARGIN = timedelta(seconds=75)
WINDOW = timedelta(hours=24)
LAG = timedelta(minutes=5)
TERMS = {
    Capability.KEYED: Terms(key_window=WINDOW),
    Capability.LOOKUP: Terms(lookup_lag=LAG),
    Capability.OPAQUE: Terms(),
    Capability.CONDITIONAL: Terms(),
}
UNKNOWN, DISPATCHED = AttemptStatus.UNKNOWN, AttemptStatus.DISPATCHED
APPLIED, NOT_APPLIED = AttemptStatus.APPLIED, AttemptStatus.NOT_APPLIED
KEYED, LOOKUP, OPAQUE = Capability.KEYED, Capability.LOOKUP, Capability.OPAQUE


def attempt(
    capability: Capability,
    status: AttemptStatus = UNKNOWN,
    *,
    number: int = 1,
    at: timedelta = timedelta(0),
    stop: bool = False,
    lookups: int = 0,
) -> Attempt:
    """Make one attempt that was opened ``at`` after the beginning."""
    return Attempt(
        AttemptId(UUID(int=number)),
        EffectId(UUID(int=0)),
        number,
        status,
        capability,
        T0 + at,
        T0 + at + timedelta(seconds=10),
        T0 + at + MARGIN,
        evidence={"stop": True} if stop else {},
        terms=TERMS[capability],
        lookups=lookups,
    )


def decided(
    *attempts: Attempt,
    after: timedelta = timedelta(minutes=2),
    may_send: bool = True,
    declared: Declared | None = None,
    not_before: timedelta = timedelta(0),
) -> Recovery:
    """Decide ``after`` the beginning."""
    return recover(
        attempts,
        declared or as_recorded(attempts[-1]),
        may_send=may_send,
        now=T0 + after,
        not_before=T0 + not_before,
    )


EDGE = WINDOW - MARGIN
TICK = timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (decided(attempt(KEYED)), SendAgain()),
        (decided(attempt(KEYED), after=EDGE - TICK), SendAgain()),
        (decided(attempt(KEYED), after=EDGE), AskPerson(Why.WINDOW_OVER)),
        (decided(attempt(KEYED), not_before=EDGE), AskPerson(Why.WINDOW_OVER)),
        (decided(attempt(KEYED), not_before=EDGE - TICK), Wait(T0 + EDGE - TICK)),
        (decided(attempt(KEYED), may_send=False), AskPerson(Why.NOT_PERMITTED)),
        (decided(attempt(KEYED, stop=True)), AskPerson(Why.STOPPED)),
        (
            decided(attempt(KEYED, stop=True), attempt(KEYED, number=2)),
            AskPerson(Why.STOPPED),
        ),
        (
            decided(*(attempt(KEYED, number=n + 1) for n in range(MOST_SENDINGS))),
            AskPerson(Why.SENDINGS_USED_UP),
        ),
        (
            decided(attempt(KEYED), attempt(KEYED, DISPATCHED, number=2)),
            Wait(T0 + MARGIN),
        ),
        (decided(attempt(KEYED), attempt(KEYED, APPLIED, number=2)), Settled()),
        (decided(attempt(KEYED, NOT_APPLIED)), Settled()),
        # A repeat would be harmless for the second only.
        (
            decided(attempt(OPAQUE), attempt(KEYED, number=2)),
            AskPerson(Why.NOBODY_CAN_LOOK),
        ),
        # The window counts from the first attempt, also from one that was refused.
        (
            decided(
                attempt(KEYED, NOT_APPLIED),
                attempt(KEYED, number=2, at=timedelta(hours=1)),
                after=EDGE,
            ),
            AskPerson(Why.WINDOW_OVER),
        ),
        (decided(attempt(OPAQUE)), AskPerson(Why.NOBODY_CAN_LOOK)),
        (decided(attempt(LOOKUP)), Wait(T0 + LAG)),
        (decided(attempt(LOOKUP), after=LAG), LookUp()),
        (decided(attempt(LOOKUP), after=LAG, may_send=False), LookUp()),
        (decided(attempt(LOOKUP, lookups=1), after=LAG), Wait(T0 + MARGIN + LAG)),
        (decided(attempt(LOOKUP, lookups=3), after=LAG), Wait(T0 + MARGIN + 7 * LAG)),
        (
            decided(attempt(LOOKUP, lookups=MOST_LOOKUPS), after=WINDOW),
            AskPerson(Why.LOOKUPS_USED_UP),
        ),
    ],
)
def test_the_next_step_follows_from_records_capability_and_time(
    found: Recovery, wanted: Recovery
) -> None:
    assert found == wanted


@pytest.mark.parametrize(
    ("recorded", "now", "wanted"),
    [
        (KEYED, Declared(OPAQUE, Terms(), MARGIN), AskPerson(Why.DECLARED_OTHERWISE)),
        (KEYED, Declared(LOOKUP, TERMS[LOOKUP], MARGIN), AskPerson(Why.DECLARED_OTHERWISE)),
        (KEYED, Declared(KEYED, Terms(), MARGIN), AskPerson(Why.WINDOW_OVER)),
        (
            KEYED,
            Declared(KEYED, Terms(key_window=timedelta(minutes=3)), MARGIN),
            AskPerson(Why.WINDOW_OVER),
        ),
        (KEYED, Declared(KEYED, TERMS[KEYED], WINDOW), AskPerson(Why.WINDOW_OVER)),
        (OPAQUE, Declared(KEYED, TERMS[KEYED], MARGIN), AskPerson(Why.NOBODY_CAN_LOOK)),
        (LOOKUP, Declared(KEYED, TERMS[KEYED], MARGIN), AskPerson(Why.DECLARED_OTHERWISE)),
        (LOOKUP, Declared(LOOKUP, Terms(lookup_lag=2 * LAG), MARGIN), Wait(T0 + 2 * LAG)),
        (LOOKUP, Declared(LOOKUP, Terms(lookup_lag=LAG / 5), MARGIN), Wait(T0 + LAG)),
    ],
)
def test_what_is_declared_later_can_only_make_recovery_stricter(
    recorded: Capability, now: Declared, wanted: Recovery
) -> None:
    assert decided(attempt(recorded), declared=now) == wanted


LOST = Outcome(OutcomeKind.UNKNOWN, {})
NOW = T0 + timedelta(seconds=30)


@pytest.mark.parametrize(
    ("attempts", "outcome", "wanted"),
    [
        ([attempt(KEYED)], LOST, Wait(NOW + REPEAT_WAITS[0])),
        ([attempt(KEYED), attempt(KEYED, number=2)], LOST, Wait(NOW + REPEAT_WAITS[1])),
        (
            [attempt(KEYED)],
            replace(LOST, retry_after=timedelta(seconds=9)),
            Wait(NOW + timedelta(seconds=9)),
        ),
        (
            [attempt(KEYED), attempt(KEYED, NOT_APPLIED, number=2)],
            Outcome(OutcomeKind.NOT_APPLIED, {}, retryable=True),
            Wait(NOW + REPEAT_WAITS[1]),
        ),
        (
            [attempt(KEYED), attempt(KEYED, NOT_APPLIED, number=2)],
            Outcome(OutcomeKind.NOT_APPLIED, {}),
            AskPerson(Why.REFUSED),
        ),
        ([attempt(KEYED, APPLIED)], Outcome(OutcomeKind.APPLIED, {}), Settled()),
        ([attempt(LOOKUP)], LOST, Wait(T0 + LAG)),
        ([attempt(OPAQUE)], LOST, AskPerson(Why.NOBODY_CAN_LOOK)),
    ],
)
def test_what_comes_after_a_report_is_planned_with_it(
    attempts: list[Attempt], outcome: Outcome, wanted: Recovery
) -> None:
    assert plan(attempts, outcome, now=NOW) == wanted


def test_refusals_before_the_first_doubt_use_up_no_repeat() -> None:
    tried = [attempt(KEYED, NOT_APPLIED, number=n) for n in (1, 2, 3)]
    assert sendings([*tried, attempt(KEYED, number=4)]) == 1
    assert decided(*tried, attempt(KEYED, number=4)) == SendAgain()


SECONDS = st.integers(0, 200_000).map(lambda n: timedelta(seconds=n))
CAPABILITIES = st.sampled_from([KEYED, LOOKUP, OPAQUE])


@st.composite
def histories(draw: st.DrawFn) -> list[Attempt]:
    """Draw attempts in the order of their numbers and times."""
    ats = sorted(draw(st.lists(SECONDS, min_size=1, max_size=5)))
    return [
        attempt(
            draw(CAPABILITIES),
            draw(st.sampled_from(list(AttemptStatus))),
            number=number,
            at=at,
            stop=draw(st.booleans()) and draw(st.booleans()),
            lookups=draw(st.integers(0, MOST_LOOKUPS + 1)),
        )
        for number, at in enumerate(ats, start=1)
    ]


@st.composite
def declarations(draw: st.DrawFn) -> Declared:
    """Draw what may be declared now, honest or not."""
    return Declared(
        draw(CAPABILITIES),
        Terms(draw(st.none() | SECONDS), draw(st.none() | SECONDS)),
        draw(SECONDS),
    )


@given(histories(), declarations(), st.booleans(), SECONDS, SECONDS)
def test_a_machine_sends_again_only_under_a_key_that_every_doubtful_attempt_had(
    attempts: list[Attempt],
    declared: Declared,
    may_send: bool,
    after: timedelta,
    not_before: timedelta,
) -> None:
    found = decided(
        *attempts, after=after, may_send=may_send, declared=declared, not_before=not_before
    )
    doubtful = [a for a in attempts if a.status in (UNKNOWN, DISPATCHED)]
    if found == SendAgain():
        assert may_send
        assert {a.status for a in doubtful} == {UNKNOWN}
        assert {a.capability for a in doubtful} == {KEYED} == {declared.capability}
        assert not any(a.evidence.get("stop") for a in attempts)
        assert APPLIED not in {a.status for a in attempts}
        assert len(doubtful) < MOST_SENDINGS
        # Whatever a repeat that is opened now can still do, it does inside both windows.
        first = min(a.opened_at for a in attempts)
        assert declared.terms.key_window is not None
        assert T0 + after + declared.margin < first + declared.terms.key_window
        assert T0 + after + MARGIN < first + WINDOW
    if found == LookUp():
        assert {a.capability for a in doubtful} == {LOOKUP}
        assert T0 + after >= max(a.conclude_at for a in doubtful)
        assert doubtful[-1].lookups < MOST_LOOKUPS
    if isinstance(found, Wait):
        assert found.until > T0 + after or any(a.status is DISPATCHED for a in doubtful)


@given(histories(), declarations(), SECONDS)
def test_recovery_ends_whatever_happens(
    attempts: list[Attempt], declared: Declared, after: timedelta
) -> None:
    now, rows = T0 + after, [a for a in attempts if a.status is not DISPATCHED]
    for _ in range(3 * (MOST_LOOKUPS + MOST_SENDINGS) + 3):
        found = recover(rows, declared, may_send=True, now=now, not_before=now)
        if isinstance(found, AskPerson | Settled):
            return
        if isinstance(found, Wait):
            now = found.until
        elif isinstance(found, LookUp):
            newest = max((a for a in rows if a.status is UNKNOWN), key=lambda a: a.number)
            index = rows.index(newest)
            rows[index] = replace(newest, lookups=newest.lookups + 1)
        else:
            number = len(attempts) + len(rows) + 1
            rows.append(attempt(KEYED, number=number, at=now - T0))
    raise AssertionError("it goes on and on")


# --- Conditional: read, and repeat only what has not moved ----------------------------------------

CONDITIONAL = Capability.CONDITIONAL


def changed(
    number: int = 1,
    status: AttemptStatus = UNKNOWN,
    *,
    lookups: int = 0,
    told: JsonObject | None = None,
) -> Attempt:
    """One attempt at an outside desk; ``told`` is its answer, and what readings have said of it."""
    made = attempt(CONDITIONAL, status, number=number, lookups=lookups)
    return replace(made, evidence=told or {})


def unchanged(number: int = 1, *, after: int | None = None, answer: int | None = None) -> Attempt:
    """One attempt that a reading has found to have changed nothing."""
    told: JsonObject = {"finding": "unchanged", "finding_after": after or number, "status": answer}
    return changed(number, lookups=1, told=told)


def recovered(
    *attempts: Attempt, may_send: bool = True, at: timedelta = timedelta(hours=1)
) -> Recovery:
    now = T0 + at
    declared = as_recorded(attempts[0])
    return recover(attempts, declared, may_send=may_send, now=now, not_before=T0)


def test_a_conditional_change_is_read_at_once_and_then_at_growing_distances() -> None:
    soon = timedelta(seconds=1)
    assert recovered(changed(), at=soon) == LookUp()
    waits = [recovered(changed(lookups=n), at=soon) for n in (1, 2, 3)]
    assert waits == [Wait(T0 + READING_LAG * (2**n - 1)) for n in (1, 2, 3)]
    assert recovered(changed(lookups=MOST_LOOKUPS)) == AskPerson(Why.LOOKUPS_USED_UP)


def test_only_what_a_reading_found_unchanged_after_every_attempt_is_sent_again() -> None:
    assert recovered(unchanged()) == SendAgain()
    for finding in ("moved", "unread", "marker"):
        told: JsonObject = {"finding": finding, "finding_after": 1}
        assert recovered(changed(lookups=1, told=told)) == LookUp()
    # A later attempt makes the reading old, whatever became of it.
    for status in (UNKNOWN, NOT_APPLIED):
        assert recovered(unchanged(), changed(2, status)) == LookUp()


def test_nothing_conditional_is_sent_again_where_nothing_may_be_sent() -> None:
    last = replace(unchanged(), lookups=MOST_LOOKUPS)
    assert recovered(unchanged(), may_send=False) == LookUp()
    assert recovered(last, may_send=False) == AskPerson(Why.NOT_PERMITTED)


def test_a_collision_is_repeated_once_and_then_put_to_a_person_after_a_last_reading() -> None:
    first = unchanged(1, answer=409)
    assert recovered(first) == SendAgain()
    second = unchanged(2, answer=409)
    assert recovered(first, second, at=timedelta(seconds=70)) == Wait(T0 + MARGIN)
    assert recovered(first, second) == LookUp()
    assert recovered(first, replace(second, lookups=2)) == AskPerson(Why.COLLIDES)


def test_lost_conditional_requests_are_bounded() -> None:
    tries = [unchanged(n, after=MOST_SENDINGS) for n in range(1, MOST_SENDINGS + 1)]
    tries[-1] = replace(tries[-1], lookups=2)
    assert recovered(*tries[:-1], unchanged(MOST_SENDINGS)) == LookUp()
    assert recovered(*tries) == AskPerson(Why.SENDINGS_USED_UP)


def test_a_desk_that_is_declared_otherwise_now_gets_nothing_more() -> None:
    for capability in (LOOKUP, OPAQUE):
        declared = Declared(capability, Terms(), MARGIN)
        decision = recover([unchanged()], declared, may_send=True, now=T0 + WINDOW, not_before=T0)
        assert decision == AskPerson(Why.DECLARED_OTHERWISE)
