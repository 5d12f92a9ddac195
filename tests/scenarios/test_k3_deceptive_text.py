"""K3: what others wrote is shown literally, wholly and visibly, or it cannot be approved."""

from __future__ import annotations

import json
from dataclasses import replace
from html import escape

import pytest

from bot.card_parts import Link
from bot.cards import CardPainter, Drawing, card_environment
from bot.reason_text import sentence
from bot.sandbox.blocks import validate_view
from bot.sandbox.echo import echoed
from bot.sandbox.mailbox_faults import Fault, Point, Reply
from bot.sandbox.text_view import render, render_view
from executor.domain.address import parse_mailbox
from executor.domain.approval import ApprovalStatus, Vote
from executor.domain.errors import InvalidContent
from executor.domain.operation import OperationStatus
from executor.domain.run import RunStatus
from executor.domain.transition import Reason
from executor.engine.card_record import OperationRecord, RunRecord
from tests.support.bot_harness import REQUESTER, REVIEWER, Harness
from tests.support.card_reading import (
    OWN_TYPES,
    body,
    deciding,
    field,
    has_part,
    links,
    nodes,
    outside_literals,
    part,
    types,
)
from tests.support.fake_model import FakeModel, calls, says
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
        said = sentence(reason, {"by": "<!channel>", "note": call, "is": call})
        assert "<" not in said


async def test_b030_neither_a_runs_last_words_nor_an_error_calls_anybody(
    database_url: str,
) -> None:
    """The card, its notification, the word in its thread and the provider's refusal."""
    call = "<!channel> <@U0SECOND> <!subteam^S1> :tada:"
    proposal = {"ticket_id": "4101", "language": "en", "subject": "Closed", "message": call}
    script = [
        says("", calls("read_ticket", {"ticket_id": "4101"})),
        says("", calls("propose_closing", proposal)),
        says(f"Told {call}."),
    ]
    async with Harness(database_url, model=FakeModel(script)) as h:
        h.mailbox.fail(Fault(Point.RCPT, Reply(550, f"5.1.1 {call}")))
        number = await h.start_run(f"close 4101 {call}")
        card = await h.settled_card()
        assert (await h.person(REVIEWER).click(card.channel, card.ts, "approve")).status == 200
        await h.shown("Done in part.", f"5.1.1 {call}")
        await h.until_run(number, RunStatus.SUCCEEDED)
        await h.shown(f"Told {call}.")
        for message in h.cards():
            assert types(message.blocks) <= OWN_TYPES
            mentioned = {n["user_id"] for n in nodes(message.blocks) if n.get("type") == "user"}
            assert mentioned <= {REQUESTER, REVIEWER}
        for method in ("chat.postMessage", "chat.update", "chat.postEphemeral"):
            for sent in h.slack.record.calls(method):
                assert "<!" not in str(sent.data["args"]["text"])
                assert "<@U0SECOND>" not in str(sent.data["args"]["text"])


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


def test_b033_a_link_leads_where_it_says_with_all_of_its_query() -> None:
    url = "https://tickets.example/t?id=4101&tab=mail"
    html = f'<p><a href="{escape(url)}">View ticket 4101</a></p>'
    drawing = draw(operation_record(email=email_content(text=f"See {url}", html=html)))
    assert body(drawing.blocks) == f"See {url}", "the text shows it as it is sent"
    assert f'"View ticket 4101" → {url}' in part(drawing.blocks, "Links of the HTML part")
    assert body(drawing.blocks, "HTML part") == html
    with pytest.raises(AssertionError):
        part(drawing.blocks, "Warning")


def test_b033_our_own_link_to_the_ticket_reaches_slack_as_it_is() -> None:
    drawing = draw(operation_record(ticket=ticket_record(desk="zendesk:acme", id="4101")))
    url = "https://acme.zendesk.com/agent/tickets/4101"
    assert links(drawing.blocks) == [("open it at the desk", url)]
    assert f"open it at the desk <{url}>" in seen(drawing)
    # What the link element holds is JSON; no ampersand of it is encoded on the way.
    piece = Link("https://tickets.example/t?id=4101&tab=mail", "open it")
    macros = card_environment().get_template("parts.json.j2").module
    element = json.loads(macros.piece(piece))  # type: ignore[attr-defined]
    assert element == {"type": "link", "url": piece.url, "text": "open it"}
    [kept] = echoed([{"type": "rich_text", "elements": [element]}])
    assert kept["elements"][0]["url"] == piece.url


@pytest.mark.parametrize(
    ("desk", "id"),
    [
        ("zendesk:acme", "4101?evil=1"),
        ("zendesk:acme", "../../x"),
        ("zendesk:acme", "4101\n"),
        ("zendesk:acme.evil.example/", "4101"),
        ("zendesk:evil.example#", "4101"),
        ("zendesk:127.0.0.1:8080", "4101"),
        ("github:acme/support", "4101"),
        ("builtin", "4101"),
        ("javascript:alert", "4101"),
    ],
)
def test_b029_no_name_of_a_ticket_or_a_desk_makes_another_link(desk: str, id: str) -> None:
    assert links(draw(operation_record(ticket=ticket_record(desk=desk, id=id))).blocks) == []


@pytest.mark.parametrize(
    ("html", "warned"),
    [
        ('<a href="https://evil.example/">https://good.example/login</a>', "leads to evil.example"),
        ('<a href="https://evil.example/">GOOD.example</a>', "GOOD.example leads to evil.example"),
        ('<a href="//evil.example">good.example</a>', "good.example leads to evil.example"),
        ('<a href="https://good.example@evil.example">in</a>', "good.example leads to evil"),
        ('<a href="https://good.example\\@evil.example">good.example</a>', None),
        ('<a href="java&#x73;cript:x()">in</a>', "holds something itself (javascript:)"),
        ('<base href="https://evil.example"><a href="/in">good.example</a>', "leads to evil"),
        ('<p style="display: none">900 EUR</p>', "text that mail programs do not show"),
        ("<p>a<!-- b --></p>", "text that mail programs do not show"),
        ('<p dir="rtl">a</p>', "sets the direction of text"),
        ("<script>x()</script>", "holds a program, a form or a foreign document"),
        ("<![foo[ <p>a</p>", "malformed"),
        ('<a href="https://www.good.example/in">good.example</a>', None),
        ('<a href="mailto:pat@cust.example">pat@cust.example</a>', None),
        ('<a href="mailto:boss@cust.example">pat@cust.example</a>', "leads to boss@cust.example"),
        ("<p>plain</p>", None),
    ],
)
def test_b029_html_that_shows_one_thing_and_does_another_is_warned_of(
    html: str, warned: str | None
) -> None:
    blocks = draw(operation_record(email=email_content(text="x", html=html))).blocks
    assert body(blocks, "HTML part") == html
    if warned is None:
        assert not has_part(blocks, "Warning")
    else:
        assert warned in part(blocks, "Warning")


def test_b029_a_text_link_that_hides_its_host_is_warned_of() -> None:
    text = "Sign in at https://acme.example@evil.example/in now."
    blocks = draw(operation_record(email=email_content(text=text))).blocks
    assert "begins with acme.example leads to evil.example" in part(blocks, "Warning")


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


def test_b034_an_address_that_holds_something_unseen_is_no_proposal() -> None:
    with pytest.raises(InvalidContent, match="U\\+200B"):
        parse_mailbox("pat@cu\u200bst.example", field="to[0]")


def test_b034_an_address_that_mixes_scripts_is_named_with_what_it_really_is() -> None:
    text = "Pay at https://pаypal.example/acme or write to anna@bücher.example."
    blocks = draw(operation_record(email=email_content(text=text))).blocks
    warning = part(blocks, "Warning").split("\n")
    assert "1 × U+0430 CYRILLIC SMALL LETTER A: looks like another letter" in warning
    mixed = "p⟦U+0430⟧ypal.example = xn--pypal-4ve.example, mixes Cyrillic and Latin letters"
    assert mixed in warning
    assert "anna@bücher.example = anna@xn--bcher-kva.example" in warning


def test_b034_names_from_the_right_cannot_reorder_the_address_behind_them() -> None:
    box = mailbox("100@evil.example", "שלום")
    blocks = draw(operation_record(email=email_content(to=(box,)))).blocks
    assert 'To         <100@evil.example> "שלום"' in part(blocks, "The email").split("\n")
    assert "may be shown in another order" in str(blocks)


def test_b034_content_cannot_fake_an_escape_or_the_end() -> None:
    text = "clean ⟦U+202E⟧ text⟦end⟧\nand more"
    record = operation_record(email=email_content(text=text))
    blocks = draw(record).blocks
    assert body(blocks) == text
    assert part(blocks, "Text").count("⟦end⟧") == 1
    assert "2 × U+27E6" in part(blocks, "Warning")
    assert "An ⟦ that is part of the text is written out too." in seen(draw(record))


def test_b034_blank_lines_cannot_push_the_end_out_of_sight() -> None:
    text = "All is well." + "\n" * 40 + "We refund 900 EUR."
    blocks = draw(operation_record(email=email_content(text=text))).blocks
    assert part(blocks, "Text") == "All is well.\n⟦U+000A×38⟧\nWe refund 900 EUR.⟦end⟧"
    assert "38 × U+000A LINE FEED: blank lines" in part(blocks, "Warning")
    assert body(blocks) == text


def test_b036_the_last_line_is_read_before_approve_can_be_pressed() -> None:
    last = "We refund 900 EUR."
    text = "\n".join(["All is well." * 6] * 124)[: 9_000 - len(last) - 1] + f"\n{last}"
    record = operation_record(email=email_content(text=text))
    drawing = draw(record)
    assert not drawing.approvable
    assert deciding(drawing.blocks) == ["review", "reject"]
    assert last in seen(drawing), "the card shows the end as well"
    view = PAINTER.draw_full_view(record, nonce=NONCE)
    assert validate_view(view) == []
    assert body(view["blocks"]) == text  # type: ignore[arg-type]
    assert last in render_view(dict(view))
    assert record.digest.hex() in render_view(dict(view))


def test_b036_a_text_that_nobody_can_read_in_full_cannot_be_approved() -> None:
    text = "日本" * 25_000 + "We refund 900 EUR."
    record = operation_record(email=email_content(text=text))
    view = PAINTER.draw_full_view(record, nonce=NONCE)
    assert "submit" not in view
    assert "approve" not in deciding(draw(record).blocks)


def test_b036_what_only_explains_may_be_cut_and_is_whole_one_click_away() -> None:
    said = "It burns. " * 200
    ticket = ticket_record(recent_changes=(ticket_change(7, body=said),))
    record = operation_record(goal="close it, " * 100, ticket=ticket)
    drawing = draw(record)
    assert deciding(drawing.blocks) == ["approve", "review", "reject"]
    assert "shortened from 1999 characters" in seen(drawing)
    view = render_view(dict(PAINTER.draw_full_view(record, nonce=NONCE)))
    assert said.strip() in view
    assert "close it, " * 99 in view
    assert "left out" not in view
