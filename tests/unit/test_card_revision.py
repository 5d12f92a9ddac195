"""A card tells what its operation took the place of, and never shows part of a change for all."""

from __future__ import annotations

import json

from bot.cards import CardPainter, card_environment
from bot.sandbox.blocks import validate_message, validate_view
from executor.domain.operation import OperationStatus
from executor.engine.card_record import OperationRecord
from executor.engine.revision_record import PreviousRevision
from tests.support.card_reading import action_ids, literals, outside_literals, part, undo
from tests.support.records import (
    NONCE,
    U_APP,
    edited_record,
    email_content,
    mailbox,
    operation_record,
)

PAINTER = CardPainter(card_environment())
HOSTILE = "<!channel> <@U0REVIEWER> *bold* `code` :tada: https://evil.example|x\u202e"


def _edited(before: str, after: str, **changes: object) -> OperationRecord:
    old = email_content(text=before, **changes)
    return operation_record(
        email=email_content(text=after),
        number=13,
        content_revision=2,
        editor=U_APP,
        previous=PreviousRevision(12, OperationStatus.SUPERSEDED, old.as_json()),
    )


def test_a_change_stands_on_the_card_and_in_the_full_view() -> None:
    record = edited_record()
    drawing = PAINTER.draw(record, render_no=1, nonce=NONCE)
    full = PAINTER.draw_full_view(record, nonce=NONCE)
    for blocks in (drawing.blocks, full["blocks"]):
        told = part(blocks, "Edited by ")  # type: ignore[arg-type]
        assert "- your printer works again, so we have closed ticket 4101." in told
        assert "+ Ticket 4101: the printer works" in told
    assert "Earlier approvals do not count. " in json.dumps(drawing.blocks)
    assert drawing.approvable


def test_a_change_that_does_not_fit_is_in_the_full_view_and_all_that_is_bound_on_the_card() -> None:
    before = "".join(f"This is line {n} as it was before the edit.\n" for n in range(100))
    record = _edited(before, before.replace("before", "after"))
    drawing = PAINTER.draw(record, render_no=1, nonce=NONCE)
    assert validate_message(drawing.blocks) == []
    assert "What changed does not fit here" in json.dumps(drawing.blocks)
    assert {"approve", "review"} <= set(action_ids(drawing.blocks))
    assert not any("- This is line" in text for text in literals(drawing.blocks))
    full = PAINTER.draw_full_view(record, nonce=NONCE)
    assert validate_view(full) == []
    shown = "\n".join(literals(full["blocks"]))
    for n in range(100):
        assert f"- This is line {n} as it was before the edit." in shown
        assert f"+ This is line {n} as it was after the edit." in shown


def test_what_others_wrote_is_literal_in_a_change_as_well() -> None:
    record = _edited(
        f"{HOSTILE}\nsame\n",
        f"same\n{HOSTILE} too\n",
        subject=HOSTILE.replace("\u202e", ""),
        to=(mailbox("pat@cust.example", "*Pat* <!here>"),),
    )
    drawing = PAINTER.draw(record, render_no=1, nonce=NONCE)
    assert validate_message(drawing.blocks) == []
    assert not any(
        word in outside_literals(drawing.blocks) for word in ("evil", "!channel", "!here")
    )
    went = next(t for t in literals(drawing.blocks) if t.startswith("- <!channel>"))
    assert undo(went.split("\n")[0][2:]) == HOSTILE


def test_a_proposal_that_took_no_place_tells_of_none() -> None:
    drawing = PAINTER.draw(operation_record(), render_no=1, nonce=NONCE)
    assert "in the place of" not in json.dumps(drawing.blocks)
