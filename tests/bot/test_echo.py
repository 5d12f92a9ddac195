"""Slack's own additions are no difference; any other content is."""

from __future__ import annotations

import copy
from typing import Any
from uuid import uuid4

import pytest

from bot.cards import CardPainter, card_environment
from bot.echo import is_kept
from bot.sandbox.echo import echoed, sanitised
from tests.support.records import email_content, operation_record, states

PAINTER = CardPainter(card_environment())
HOSTILE = "a & b <!channel> &lt;b&gt; &amp;amp; <https://evil|good>"


def blocks_of(name: str) -> list[Any]:
    return PAINTER.draw(states()[name], render_no=1, nonce=uuid4()).blocks


@pytest.mark.parametrize("name", sorted(states()))
def test_what_slack_makes_of_an_unchanged_card_is_no_difference(name: str) -> None:
    sent = blocks_of(name)
    assert is_kept(sent, echoed(sanitised(sent, lambda: "x")))


def test_markup_that_slack_encodes_once_is_no_difference() -> None:
    record = operation_record(email=email_content(text=HOSTILE, subject=HOSTILE))
    sent: Any = PAINTER.draw(record, render_no=1, nonce=uuid4()).blocks
    assert is_kept(sent, echoed(sanitised(sent, lambda: "x")))


def test_a_changed_lost_or_added_piece_is_a_difference() -> None:
    sent = blocks_of("awaiting")
    assert not is_kept(sent, sent[:-1])
    assert not is_kept(sent, [*sent, sent[0]])
    assert not is_kept(sent, None)
    for change in ("shorter", "encoded twice", "another type"):
        shown = copy.deepcopy(sent)
        if change == "shorter":
            shown[3]["elements"][1]["elements"][0]["text"] += " "
        elif change == "encoded twice":
            shown[0]["text"]["text"] = "Close &amp;amp; send"
        else:
            shown[3]["elements"][1]["type"] = "rich_text_quote"
        assert not is_kept(sent, shown), change


def test_content_that_nobody_sent_is_a_difference_and_a_default_is_not() -> None:
    sent: Any = [{"type": "header", "text": {"type": "plain_text", "text": "x"}}]
    shown = copy.deepcopy(sent)
    shown[0] |= {"block_id": "b1"}
    shown[0]["text"]["emoji"] = True
    assert is_kept(sent, shown)
    shown[0]["accessory"] = {"type": "image"}
    assert not is_kept(sent, shown)
