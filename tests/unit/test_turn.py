"""Cards keep their order, go past troubles to the fallback, and hold nobody else up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from executor.domain.turn import PATIENCE, WORKSPACE, Route, Trouble, Turn, Waiting, next_turns

NOW = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
CARDS, SPARE, OTHER = "C0CARDS", "C0SPARE", "C0OTHER"
ROUTE = Route(CARDS, SPARE)


def subject(number: int) -> UUID:
    return UUID(int=number)


def operation(
    number: int,
    channel: str | None = None,
    *,
    due: bool = True,
    in_hand: bool = False,
    sought: bool = False,
    told: bool = False,
) -> Waiting:
    since = NOW - timedelta(minutes=1) + timedelta(seconds=number)
    return Waiting(subject(number), number, since, channel, None, due, in_hand, sought, told)


def word(number: int, channel: str | None = None, thread_ts: str | None = None) -> Waiting:
    since = NOW - timedelta(minutes=1) + timedelta(seconds=number)
    return Waiting(
        subject(number), None, since, channel, thread_ts, True, False, False, False
    )  # fmt: skip


def progress(number: int, channel: str | None = None) -> Waiting:
    return replace(word(number, channel), tells_progress=True)


def trouble(
    place: str, *, lasting: bool = True, old: timedelta = timedelta(), opened: bool = False
) -> dict[str, Trouble]:
    look_at = None if opened else NOW + timedelta(seconds=1)
    return {place: Trouble(place, "is_archived", lasting, NOW - old, look_at)}


def turns(
    *waiting: Waiting,
    route: Route = ROUTE,
    troubles: dict[str, Trouble] | None = None,
    room: Callable[[str], int] = lambda _: 1,
) -> list[tuple[int, str]]:
    found, _ = next_turns(waiting, route, troubles or {}, NOW, room)
    return [(turn.subject.int, turn.channel) for turn in found]


def test_one_operation_after_the_other_has_its_turn_in_their_order() -> None:
    assert turns(operation(9), operation(7), operation(8), room=lambda _: 9) == [(7, CARDS)]


@pytest.mark.parametrize("ahead", [operation(1, in_hand=True), operation(1, sought=True)])
def test_whoever_is_behind_one_on_its_way_waits(ahead: Waiting) -> None:
    assert turns(ahead, operation(2)) == []


def test_a_card_that_is_refused_itself_holds_nobody_up() -> None:
    # One that was put off is not even read: it is neither due nor on its way.
    assert turns(operation(2), operation(3)) == [(2, CARDS)]


def test_lines_of_other_channels_go_on() -> None:
    ahead = operation(1, in_hand=True)
    assert turns(ahead, operation(2), operation(3, OTHER)) == [(3, OTHER)]


def test_a_full_channel_is_told_and_takes_nothing() -> None:
    room = {CARDS: 0, OTHER: 1}
    found, full = next_turns([operation(1), operation(2, OTHER)], ROUTE, {}, NOW, room.__getitem__)
    assert ([turn.channel for turn in found], full) == ([OTHER], {CARDS})


def test_messages_of_one_channel_share_its_room_and_the_oldest_comes_first() -> None:
    assert turns(operation(5), word(3, CARDS), word(4, CARDS)) == [(3, CARDS)]
    both = turns(operation(5), word(3, CARDS), word(6, CARDS), room=lambda _: 2)
    assert both == [(3, CARDS), (5, CARDS)]


def test_what_only_tells_progress_comes_after_what_people_wait_for() -> None:
    progress = replace(word(1, CARDS), tells_progress=True)
    assert turns(progress, operation(5), word(6, CARDS)) == [(5, CARDS)]
    assert turns(progress, operation(5, in_hand=True)) == [(1, CARDS)]


def test_a_runs_word_answers_its_card() -> None:
    found, _ = next_turns([word(1, OTHER, "17.1")], ROUTE, {}, NOW, lambda _: 1)
    assert found == [Turn(subject(1), OTHER, "17.1")]


def test_a_runs_word_that_cannot_be_said_where_it_was_asked_goes_where_cards_go() -> None:
    closed = trouble(OTHER)
    found, _ = next_turns([word(1, OTHER, "17.1")], ROUTE, closed, NOW, lambda _: 1)
    assert found == [Turn(subject(1), CARDS, None)]


@pytest.mark.parametrize(
    ("troubles", "told", "to"),
    [
        (trouble(CARDS), True, SPARE),
        (trouble(CARDS), False, None),
        (trouble(CARDS, opened=True), True, CARDS),
        (trouble(CARDS, lasting=False), True, None),
        (trouble(CARDS, lasting=False, old=PATIENCE), True, SPARE),
        (trouble(CARDS, lasting=False, old=PATIENCE), False, None),
        (trouble(CARDS, lasting=False, old=PATIENCE, opened=True), True, SPARE),
        (trouble(CARDS, lasting=False, old=PATIENCE, opened=True), False, CARDS),
        (trouble(CARDS, lasting=False, opened=True), True, CARDS),
        (trouble(CARDS) | trouble(SPARE), True, None),
        (trouble(SPARE), True, CARDS),
        (trouble(WORKSPACE), True, None),
        (trouble(WORKSPACE, opened=True), True, CARDS),
    ],
)
def test_a_card_goes_past_a_trouble_only_to_where_people_were_told(
    troubles: dict[str, Trouble], told: bool, to: str | None
) -> None:
    expected = [] if to is None else [(1, to)]
    assert turns(operation(1, told=told), troubles=troubles) == expected


def test_without_a_fallback_a_card_waits_for_its_channel() -> None:
    assert turns(operation(1, told=True), route=Route(CARDS), troubles=trouble(CARDS)) == []


def test_cards_keep_their_order_in_the_fallback_too() -> None:
    waiting = [operation(2, told=True), operation(1, told=True)]
    assert turns(*waiting, troubles=trouble(CARDS), room=lambda _: 9) == [(1, SPARE)]


def test_what_tells_of_progress_waits_until_nothing_else_wants_its_place() -> None:
    waiting = (progress(1), progress(2, OTHER), word(3), operation(4))
    assert turns(*waiting) == [(3, CARDS), (2, OTHER)]
    assert turns(*waiting, room=lambda _: 3) == [(3, CARDS), (4, CARDS), (1, CARDS), (2, OTHER)]
