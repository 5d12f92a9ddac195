"""K2: cards stay within Slack's limits and keep their buttons, as far as drawing decides it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.cards import CardPainter, Drawing, card_environment, text_length
from bot.sandbox.blocks import validate_message, validate_view
from executor.domain.ids import PrincipalId, slack_principal
from executor.domain.operation import OperationStatus
from executor.domain.terms import Requirement, Terms
from executor.engine.card_record import OperationRecord
from tests.support.card_reading import body, deciding, field, links, nodes, part
from tests.support.records import (
    NONCE,
    approval_record,
    email_content,
    mailbox,
    operation_record,
    states,
    terms,
    ticket_record,
    vote_record,
)

PAINTER = CardPainter(card_environment())


def draw(record: OperationRecord) -> Drawing:
    return PAINTER.draw(record, render_no=1, nonce=NONCE)


@pytest.mark.parametrize("length", [2_990, 8_900, 12_500])
@pytest.mark.parametrize("name", ["approved", "executing", "succeeded", "unknown", "stale"])
def test_b018_every_later_drawing_of_a_long_card_is_accepted(name: str, length: int) -> None:
    later = states()[name]
    assert isinstance(later, OperationRecord)
    short = draw(later)
    long = draw(replace(later, email=email_content(text="x" * length).as_json()))
    assert validate_message(long.blocks) == []
    assert text_length(long.blocks) <= 9_000
    assert long.blocks[1]["elements"] == short.blocks[1]["elements"], "the status was cut"
    assert deciding(long.blocks) == []
    assert any(block["type"] == "rich_text" for block in long.blocks)


def test_b019_parts_that_are_long_together_are_all_shown_with_working_buttons() -> None:
    text, subject = "y" * 2_899 + "!", "s" * 150
    record = operation_record(
        email=email_content(text=text, subject=subject),
        why="w" * 250,
        ticket=ticket_record(subject="t" * 250),
    )
    drawing = draw(record)
    assert validate_message(drawing.blocks) == []
    assert deciding(drawing.blocks) == ["approve", "reject"]
    assert body(drawing.blocks) == text
    assert field(drawing.blocks, "Subject") == subject
    assert "t" * 250 in part(drawing.blocks, "Ticket")
    assert "w" * 250 in str(drawing.blocks)


def test_b020_no_name_makes_a_label_or_a_value_too_long() -> None:
    record = operation_record(
        requester="slack:OTHER:" + "U" * 200,
        ticket=ticket_record(id="4" * 300, desk="d" * 300),
        email=email_content(to=(mailbox("p" * 64 + "@" + "c" * 180 + ".example", "N" * 200),)),
        approval=approval_record(terms=terms(20), votes=tuple(vote_record(p) for p in _twenty())),
    )
    drawing = draw(record)
    assert validate_message(drawing.blocks) == []
    buttons = [node for node in nodes(drawing.blocks) if node.get("type") == "button"]
    assert len(buttons) >= 2
    assert all(len(button["text"]["text"]) <= 75 for button in buttons)
    assert all(len(button["value"]) <= 2_000 for button in buttons)
    assert "4" * 300 in part(drawing.blocks, "Ticket"), "the header may cut it, the facts may not"


def test_b020_names_of_groups_and_policies_stay_within_the_limits() -> None:
    asked = Terms(
        (Requirement("r" * 80, 2, ("group:" + "g" * 80, "role:approver")),), 86_400, 3_600
    )
    record = operation_record(
        why="The policy asks two people of " + "g" * 80 + " at " + "t" * 70 + ".",
        policy_version="v" * 70,
        approval=approval_record(terms=asked),
    )
    drawing = draw(record)
    assert validate_message(drawing.blocks) == []
    assert deciding(drawing.blocks) == ["approve", "reject"]
    assert "g" * 80 in str(drawing.blocks)
    for title in (n["text"]["text"] for n in nodes(drawing.blocks) if n.get("type") == "header"):
        assert len(title) <= 150


def _twenty() -> list[PrincipalId]:
    return [slack_principal("TEAM1", f"U{'X' * 18}{number:02}") for number in range(20)]


def test_b021_a_message_that_is_too_long_keeps_its_controls() -> None:
    text = "z" * 12_499 + "!"
    record = operation_record(email=email_content(text=text))
    drawing = draw(record)
    assert validate_message(drawing.blocks) == []
    assert deciding(drawing.blocks) == ["review", "reject"]
    assert not drawing.approvable
    view = PAINTER.draw_full_view(record, nonce=NONCE)
    assert validate_view(view) == []
    assert "submit" in view
    assert body(view["blocks"]) == text  # type: ignore[arg-type]


def test_b024_an_approved_card_has_no_buttons() -> None:
    for status in OperationStatus:
        if status is not OperationStatus.AWAITING:
            assert deciding(draw(operation_record(status=status)).blocks) == []


def test_b027_an_update_keeps_the_link_and_the_subject_of_the_post() -> None:
    email, ticket = email_content(subject="Re: <b> & co"), ticket_record(desk="zendesk:acme")
    posted = draw(operation_record(email=email, ticket=ticket))
    done = states()["succeeded"]
    assert isinstance(done, OperationRecord)
    updated = draw(replace(done, email=email.as_json(), ticket=ticket))
    assert links(posted.blocks) == links(updated.blocks)
    assert links(updated.blocks) == [
        ("open it at the desk", "https://acme.zendesk.com/agent/tickets/4101")
    ]
    assert field(posted.blocks, "Subject") == field(updated.blocks, "Subject") == "Re: <b> & co"
    assert "Re: <b> & co" in part(updated.blocks, "The email")
