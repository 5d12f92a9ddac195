"""The closure email says the same in text and HTML, in the language that was asked for."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import templates
from executor.domain.closing import ProposeClosing, RenderedEmail
from executor.domain.closing_html import BODY_STYLE, html_matches_text
from executor.domain.ticket import BUILTIN_DESK, Ticket, TicketStatus
from executor.engine.closure_email import ClosureEmails

EMAILS = ClosureEmails()


def render(
    message: str,
    *,
    language: str = "en",
    name: str = "Pat Neil",
    signature: str = "The desk",
) -> RenderedEmail:
    ticket = Ticket(
        desk=BUILTIN_DESK,
        id="4101",
        version=7,
        status=TicketStatus.OPEN,
        subject="Double charge",
        customer_name=name,
        customer_email="pat@cust.example",
        language="en",
        times_opened=1,
        updated_at=datetime(2026, 3, 3, tzinfo=UTC),
    )
    proposal = ProposeClosing(
        ticket_id="4101", language=language, subject="Closed", message=message
    )
    return EMAILS.render(ticket, proposal, signature)


def test_the_text_frames_the_message_in_the_words_of_its_language() -> None:
    assert render("We refunded 40 EUR.\r\n\r\nBye.\n").text == (
        "Hello Pat Neil,\n\n"
        "We refunded 40 EUR.\n\nBye.\n\n"
        "Ticket 4101 is now closed.\n\n"
        "Kind regards,\nThe desk\n"
    )
    assert render("Tot ziens.", language="nl-BE", name=" ", signature="").text == (
        "Goedendag,\n\nTot ziens.\n\nTicket 4101 is nu gesloten.\n"
    )


def test_a_language_without_words_gets_a_frame_without_words() -> None:
    assert render("Moien.", language="lb").text == "Moien.\n\n#4101\n\nThe desk\n"


def test_every_language_has_all_words_and_names_ticket_and_customer() -> None:
    assert {"en", "nl", "de", "fr", "es", "it", "pt", "ja", "ar", "pl"} <= set(EMAILS.languages)
    for language in EMAILS.languages:
        rendered = render("…", language=language)
        assert "4101" in rendered.text
        assert "Pat Neil" in rendered.text
        assert "{" not in rendered.text
        assert html_matches_text(rendered.text, rendered.html), language


def test_arabic_reads_from_right_to_left_and_others_from_left_to_right() -> None:
    assert '<html lang="ar-EG" dir="rtl">' in render("مرحبًا", language="ar-EG").html
    assert '<html lang="nl" dir="ltr">' in render("Dag", language="nl").html


def test_markup_and_template_code_in_content_stay_text() -> None:
    hostile = "{{ 7*7 }} {% include 'x' %} <b>bold</b> <a href='https://evil.example'>4101</a> & \""
    rendered = render(hostile, name="{{ signature }}", signature="<script>alert(1)</script>")
    assert hostile in rendered.text
    assert "Hello {{ signature }}," in rendered.text
    assert "<b>" not in rendered.html
    assert "<script" not in rendered.html
    assert "href=&#39;" in rendered.html
    assert html_matches_text(rendered.text, rendered.html)


def test_each_template_is_named_with_the_digest_of_its_source() -> None:
    folder = Path(templates.__file__).parent
    assert dict(render("x").templates) == {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest()
        for name in ("email/closure.txt.j2", "email/closure.html.j2", "email/words.json")
    }


@given(st.text(st.characters(blacklist_categories=["Cs", "Cc"], whitelist_characters="\n\t")))
def test_text_and_html_say_the_same_whatever_the_message(message: str) -> None:
    rendered = render(message, name=message[:20], signature=message[-20:])
    assert html_matches_text(rendered.text, rendered.html)


HONEST = render("Refund: 90 EUR.\nIt takes 3 days.\n\nBye.")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("90 EUR", "900 EUR"),
        ("Refund: 90 EUR.<br>\n", "Refund: 90 EUR. "),
        ("<p>Bye.</p>", ""),
        ("<p>Bye.</p>", "<p>Bye.</p><p>And more.</p>"),
        ("Bye.", "<a href='https://evil.example'>Bye.</a>"),
        ("Bye.", "Bye.<img src='https://evil.example/x.gif'>"),
        ("Bye.", "Bye.<!-- hidden -->"),
        ("<p>Bye", "<p style='display:none'>Bye"),
        ("<p>Bye", "<p onclick='x()'>Bye"),
        ("<p>Bye", "<script>x()</script><p>Bye"),
        ("<p>Bye", "loose text <p>Bye"),
        (BODY_STYLE, "color: white"),
        ("</head>", "<title>Something else</title></head>"),
        ('<meta charset="utf-8">', '<meta http-equiv="refresh" content="0;url=//evil.example">'),
        ("</body>", "</body><body>"),
        ("</body>", ""),
        ("<!DOCTYPE html>", "<?php x ?>"),
        ("<!DOCTYPE html>", "<![CDATA[x]]>"),
        ('dir="ltr"', 'dir="auto"'),
    ],
)
def test_html_that_differs_from_the_text_or_from_its_shape_is_seen(old: str, new: str) -> None:
    assert html_matches_text(HONEST.text, HONEST.html)
    assert old in HONEST.html
    assert not html_matches_text(HONEST.text, HONEST.html.replace(old, new, 1))
