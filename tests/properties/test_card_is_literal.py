"""Whatever others write, a card fits into Slack, and no character of theirs means anything."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.button_value import ButtonValue
from bot.cards import CardPainter, Drawing, card_environment, text_length
from bot.sandbox.blocks import over_budget, validate_message, validate_view, view_too_large
from bot.settle_value import SettleValue
from bot.word_origin import WordOrigin
from executor.engine.card_record import OperationRecord
from executor.engine.word import Said
from tests.support.card_reading import (
    OWN_TYPES,
    action_ids,
    links,
    nodes,
    outside_literals,
    types,
)
from tests.support.hostile import FRAGMENTS, grow, texts
from tests.support.hostile_records import MARK, OPERATIONS, RUNS, poisoned, poisoned_run, spice_of
from tests.support.records import NONCE

PAINTER = CardPainter(card_environment())
BUDGET = 9_000
FORM_TYPES = {"divider", "input"}
"""Blocks of a form that hold none but our own words."""
PEOPLE = {"U_REQ", "U_APP", "U_APP2"}
FALLBACK = re.compile(r"(op_\d+ of )?run_\d+: [a-z, ]+")


def check_is_literal(blocks: Any) -> None:
    """Nothing untrusted stands where a character could mean something."""
    assert types(blocks) <= OWN_TYPES
    assert not {"mrkdwn", "markdown", "broadcast", "channel", "usergroup", "emoji"} & types(blocks)
    assert MARK not in outside_literals(blocks)
    assert all("evil" not in url for _, url in links(blocks))
    for node in nodes(blocks):
        if node.get("type") == "plain_text":
            assert node["emoji"] is False
        if node.get("type") == "user":
            assert node["user_id"] in PEOPLE
        if node.get("type") == "date":
            assert node["fallback"].isascii()


def check_message(drawing: Drawing) -> None:
    blocks = [dict(block) for block in drawing.blocks]
    assert validate_message(blocks) == []
    assert text_length(drawing.blocks) <= BUDGET
    assert not over_budget(blocks)
    check_is_literal(drawing.blocks)
    assert FALLBACK.fullmatch(drawing.text), "the notification is constant, with numbers of ours"


def check_operation(record: OperationRecord) -> None:
    drawing = PAINTER.draw(record, render_no=1, nonce=NONCE)
    check_message(drawing)
    assert drawing.blocks[0]["type"] == "header"
    assert drawing.blocks[1]["type"] == "rich_text"
    assert drawing.approvable == ("approve" in action_ids(drawing.blocks))
    view: dict[str, Any] = dict(PAINTER.draw_full_view(record, nonce=NONCE))
    assert validate_view(view) == []
    assert not view_too_large(view)
    check_is_literal(view["blocks"])
    assert ("submit" in view) <= (drawing.approvable or drawing.needs_full_view)
    value = ButtonValue.decode(view["private_metadata"])
    assert value is not None
    reject = dict(PAINTER.draw_reject_modal(value))
    assert validate_view(reject) == []
    assert MARK not in str(reject)
    for said in Said if record.doubt is not None else ():
        check_form(record, said)


def check_form(record: OperationRecord, said: Said) -> None:
    assert record.doubt is not None
    origin = WordOrigin(said, SettleValue(record.id, record.doubt.attempt_id), "C1", "1.1")
    form: dict[str, Any] = dict(PAINTER.draw_word_form(record, origin))
    assert validate_view(form) == []
    check_is_literal([block for block in form["blocks"] if block["type"] not in FORM_TYPES])


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_worst_of_everything_leaves_a_card_a_card(name: str) -> None:
    text = "".join(FRAGMENTS)
    check_operation(poisoned(OPERATIONS[name], spice_of(text, text * 3)))


@settings(max_examples=60)
@given(st.sampled_from(sorted(OPERATIONS)), texts, st.integers(0, 4_000))
def test_no_text_breaks_a_card(name: str, text: str, length: int) -> None:
    check_operation(poisoned(OPERATIONS[name], spice_of(text, grow(text, length))))


@settings(max_examples=12)
@given(st.sampled_from(sorted(OPERATIONS)), texts, st.sampled_from([9_000, 27_000, 50_000]))
def test_no_text_of_any_length_breaks_a_card(name: str, text: str, length: int) -> None:
    check_operation(poisoned(OPERATIONS[name], spice_of(text, grow(text or "x", length)), many=12))


@pytest.mark.parametrize("text", ["\n" * 5_000, "x\n" * 5_000, "\u0301" * 5_000, "\u200b" * 50_000])
@pytest.mark.parametrize("name", ["awaiting", "unknown_left", "rejected", "awaiting_reopening"])
def test_no_flood_of_one_character_breaks_a_card(name: str, text: str) -> None:
    check_operation(poisoned(OPERATIONS[name], spice_of(text[:900], text), many=1))


@settings(max_examples=30)
@given(st.sampled_from(sorted(RUNS)), texts, st.integers(0, 50_000))
def test_no_text_breaks_a_runs_card(name: str, text: str, length: int) -> None:
    record = poisoned_run(RUNS[name], spice_of(text, grow(text, length)))
    record = replace(record, operations=record.operations * 500)
    check_message(PAINTER.draw(record, render_no=1, nonce=NONCE))
