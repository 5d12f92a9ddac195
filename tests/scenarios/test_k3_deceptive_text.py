"""K3: what others wrote is shown literally, wholly and visibly, or it cannot be approved."""

from __future__ import annotations

import json
from dataclasses import replace

from bot import replies
from bot.cards import CardPainter, Drawing, card_environment
from bot.sandbox.blocks import validate_view
from bot.sandbox.text_view import render, render_view
from executor.domain.approval import ApprovalStatus, Vote
from executor.domain.operation import OperationStatus
from executor.domain.run import RunStatus
from executor.domain.transition import Reason
from executor.engine.card_record import OperationRecord, RunRecord
from tests.support.card_reading import (
    OWN_TYPES,
    action_ids,
    body,
    field,
    nodes,
    outside_literals,
    part,
    types,
)
from tests.support.records import (
    NONCE,
    U_APP,
    approval_record,
    email_content,
    mailbox,
    operation_record,
    run_record,
    states,
    ticket_change,
    ticket_record,
    vote_record,
)

PAINTER = CardPainter(card_environment())


def draw(record: OperationRecord | RunRecord) -> Drawing:
    return PAINTER.draw(record, render_no=1, nonce=NONCE)


def seen(drawing: Drawing) -> str:
    """The card as a client shows it."""
    return render([dict(block) for block in drawing.blocks])


def test_b029_content_cannot_plant_a_link() -> None:
    link = "<https://evil.example|View ticket 4101>"
    record = operation_record(
        goal=link,
        email=email_content(text=f"See {link} now", subject=link),
        ticket=ticket_record(subject=link, recent_changes=(ticket_change(7, body=link),)),
    )
    drawing = draw(record)
    assert types(drawing.blocks) <= OWN_TYPES, "no link and no markup"
    assert "evil.example" not in outside_literals(drawing.blocks)
    assert "evil.example" not in drawing.text
    assert seen(drawing).count(link) == 5
    assert body(drawing.blocks) == f"See {link} now"


def test_b030_content_cannot_call_anybody() -> None:
    call = "<!channel> <@U_BOSS>"
    rejected = operation_record(
        status=OperationStatus.REJECTED,
        detail={"note": call},
        email=email_content(text=call),
        approval=approval_record(
            status=ApprovalStatus.DENIED, votes=(vote_record(U_APP, Vote.REJECT, call),)
        ),
    )
    failed = run_record(
        status=RunStatus.FAILED, reason=Reason.MODEL_FAILED, summary=call, goal=call
    )
    for record in (operation_record(email=email_content(text=call)), rejected, failed):
        drawing = draw(record)
        assert types(drawing.blocks) <= OWN_TYPES
        called = {n["user_id"] for n in nodes(drawing.blocks) if n.get("type") == "user"}
        assert called <= {"U_REQ", "U_APP"}
        assert call in seen(drawing)
        assert "<" not in drawing.text
    for reason in Reason:
        said = replies.sentence(reason, {"by": "<!channel>", "note": call, "is": call})
        assert "<" not in said


def test_b031_special_characters_are_encoded_once() -> None:
    record = operation_record(email=email_content(subject="Q&A <draft>"))
    done = states()["succeeded"]
    assert isinstance(done, OperationRecord)
    for shown in (record, replace(done, email=record.email)):
        blocks = draw(shown).blocks
        assert "Subject    Q&A <draft>\n" in part(blocks, "The email")
        assert "&amp;" not in json.dumps(blocks)


def test_b032_literal_entities_stay_as_they_are() -> None:
    text = "&lt;b&gt; and &amp;amp;"
    drawing = draw(operation_record(email=email_content(text=text)))
    assert body(drawing.blocks) == text
    assert text in seen(drawing)


def test_b034_what_cannot_be_seen_is_written_out_and_named() -> None:
    record = operation_record(
        email=email_content(
            to=(mailbox("pat@cu\u200bst.example"),), text="You get \u202e009 EUR back."
        )
    )
    drawing = draw(record)
    blocks, shown = drawing.blocks, seen(drawing)
    assert "pat@cu⟦U+200B⟧st.example" in shown
    assert "You get ⟦U+202E⟧009 EUR back." in shown
    assert "pat@cust.example" not in shown
    warning = part(blocks, "Warning")
    assert "1 × U+200B ZERO WIDTH SPACE" in warning
    assert "1 × U+202E RIGHT-TO-LEFT OVERRIDE" in warning
    positions = [shown.index(words) for words in ("Warning", "The email", "[Approve]")]
    assert positions == sorted(positions), "the warning stands above what it warns of"
    assert field(blocks, "To") == "<pat@cu\u200bst.example>"


def test_b034_content_cannot_fake_an_escape_or_the_end() -> None:
    text = "clean ⟦U+202E⟧ text⟦end⟧\nand more"
    blocks = draw(operation_record(email=email_content(text=text))).blocks
    assert body(blocks) == text
    assert part(blocks, "Text").count("⟦end⟧") == 1


def test_b036_the_last_line_is_read_before_approve_can_be_pressed() -> None:
    last = "We refund 900 EUR."
    text = "\n".join(["All is well." * 6] * 124)[: 9_000 - len(last) - 1] + f"\n{last}"
    record = operation_record(email=email_content(text=text))
    drawing = draw(record)
    assert not drawing.approvable
    assert action_ids(drawing.blocks) == ["review", "reject"]
    assert last in seen(drawing), "the card shows the end as well"
    view = PAINTER.draw_full_view(record, nonce=NONCE)
    assert validate_view(view) == []
    assert body(view["blocks"]) == text  # type: ignore[arg-type]
    assert last in render_view(dict(view))
    assert record.digest.hex() in render_view(dict(view))
