"""Where somebody can approve, they read the intent: every field, character for character.

The reader (``tests/support/card_reading.py``) knows nothing of the renderer, and fails on whatever
is cut.
"""

from __future__ import annotations

import json
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.cards import CardPainter, card_environment, view_digest
from executor.domain.closing_html import html_matches_text
from executor.domain.email import EmailContent, Mailbox
from executor.domain.payloads import JsonObject
from executor.engine.card_record import OperationRecord
from tests.support.card_reading import DERIVED, Reading, action_ids, body, part, read_card, undo
from tests.support.hostile import FRAGMENTS, grow, texts
from tests.support.hostile_records import OPERATIONS, hostile_email, poisoned, spice_of
from tests.support.mails import rendered_email
from tests.support.raising_records import tool_record
from tests.support.records import NONCE, email_content, operation_record, ticket_record

PAINTER = CardPainter(card_environment())
END = "⟦end⟧"

boxes = st.builds(Mailbox, name=texts, address=texts, ascii_address=texts) | st.builds(
    lambda name, address: Mailbox(name, address, address), texts, texts
)
emails = st.builds(
    EmailContent,
    sender=boxes,
    to=st.lists(boxes, max_size=4).map(tuple),
    cc=st.lists(boxes, max_size=2).map(tuple),
    bcc=st.lists(boxes, max_size=2).map(tuple),
    reply_to=st.none() | boxes,
    subject=texts,
    text=texts,
    html=st.none() | texts,
    message_id=texts,
    headers=st.lists(st.tuples(texts, texts), max_size=2).map(tuple),
)
tickets = st.builds(
    ticket_record,
    id=texts,
    desk=texts,
    subject=texts,
    version=st.just(7),
    current_version=st.just(7),
)


def drawn(record: OperationRecord) -> list[list[Any]]:
    """Everything of a record on which somebody could approve."""
    drawing = PAINTER.draw(record, render_no=1, nonce=NONCE)
    view: dict[str, Any] = dict(PAINTER.draw_full_view(record, nonce=NONCE))
    card: list[Any] = list(drawing.blocks)
    assert ("approve" in action_ids(card)) == drawing.approvable
    assert drawing.approvable or "review" in action_ids(card)
    return [card] * drawing.approvable + [view["blocks"]] * ("submit" in view)


def read_of(record: OperationRecord, email: EmailContent) -> Reading:
    """What the intent says, in the form in which the reader tells it."""

    def told(box: Mailbox) -> tuple[str, str, str]:
        return box.name, box.address, box.ascii_address

    html = email.html
    return Reading(
        ticket={
            "Ticket": record.target.id,
            "Version": str(record.target.version),
            "Desk": record.target.desk,
            "Subject": record.target.subject,
        },
        sender=told(email.sender),
        to=[told(box) for box in email.to],
        cc=[told(box) for box in email.cc],
        bcc=[told(box) for box in email.bcc],
        reply_to=None if email.reply_to is None else told(email.reply_to),
        subject=email.subject,
        message_id=email.message_id,
        headers=list(email.headers),
        through=record.effects[-1].provider,
        text=email.text,
        html=DERIVED if html is not None and html_matches_text(email.text, html) else html,
    )


@settings(max_examples=60)
@given(emails, tickets, texts)
def test_what_a_reviewer_reads_is_the_intent(
    email: EmailContent, ticket: Any, provider: str
) -> None:
    record = operation_record(email=email, ticket=ticket)
    close, send = record.effects
    record = replace(record, effects=(close, replace(send, provider=provider)))
    found = drawn(record)
    assert found, "short texts can be approved somewhere"
    for blocks in found:
        assert read_card(blocks) == read_of(record, email)


@settings(max_examples=20)
@given(emails, texts.filter(bool), st.integers(2_000, 50_000), st.booleans())
def test_a_long_email_is_read_whole_or_cannot_be_approved(
    email: EmailContent, text: str, length: int, html: bool
) -> None:
    long = grow(text, length)
    email = replace(email, text=long, html=long if html else None)
    record = operation_record(email=email)
    for blocks in drawn(record):
        assert read_card(blocks) == read_of(record, email)


@settings(max_examples=15)
@given(texts)
def test_every_state_that_can_be_approved_is_read_whole(text: str) -> None:
    spice = spice_of(text)
    for name, record in OPERATIONS.items():
        poison = poisoned(record, spice, many=2)
        if name.startswith("awaiting") and "moved" not in name and record.email is not None:
            for blocks in drawn(poison):
                assert read_card(blocks) == read_of(poison, hostile_email(spice, 2))


@settings(max_examples=25)
@given(texts, texts, texts)
def test_a_reopening_is_read_whole(to: str, subject: str, note: str) -> None:
    record = OPERATIONS["awaiting_reopening"]
    assert record.undoes is not None
    undone = replace(record.undoes, to=(to, to), subject=subject, note=note)
    for blocks in drawn(replace(record, undoes=undone)):
        [shown] = [b for b in blocks if "It undoes a part of op_12." in str(b)]
        email, left = [e["elements"][0]["text"] for e in shown["elements"][1::2]]
        rows = [(row[:11].strip(), row[11:]) for row in email.split("\n")]
        told = [(name, "" if value == "⟦empty⟧" else undo(value)) for name, value in rows]
        assert told == [("To", to), ("To", to), ("Subject", subject)]
        assert left.endswith(END)
        assert undo(left.removesuffix(END)) == note


@settings(max_examples=40)
@given(texts, st.data())
def test_one_character_more_is_another_view(text: str, data: st.DataObject) -> None:
    position = data.draw(st.integers(0, len(text)))
    more = data.draw(st.sampled_from(["a", " ", "\n", "\u200b", "\u0301", "⟦", "\u202e", "\ue000"]))
    one, other = (
        PAINTER.draw(operation_record(email=email_content(text=said)), render_no=1, nonce=NONCE)
        for said in (text, text[:position] + more + text[position:])
    )
    assert one.view_digest != other.view_digest
    assert view_digest(one.blocks) == one.view_digest


class Words(HTMLParser):
    """The words of an HTML part, and every tag and attribute of it."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[tuple[str, str | None]] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= set(attrs)
        if tag == "br":
            self.words.append(" ")

    def handle_data(self, data: str) -> None:
        self.words.append(data)


@settings(max_examples=40)
@given(texts, texts, st.sampled_from(["en", "ar", "ja", "de-CH", "lb"]))
def test_html_that_is_not_shown_says_the_text_and_nothing_else(
    text: str, name: str, language: str
) -> None:
    rendered = rendered_email(text, name, language)
    record = operation_record(email=email_content(text=rendered.text, html=rendered.html))
    for blocks in drawn(record):
        reading = read_card(blocks)
        assert reading.text == rendered.text
        if reading.html != DERIVED:
            assert reading.html == rendered.html
            continue
        reader = Words()
        reader.feed(rendered.html)
        assert "".join("".join(reader.words).split()) == "".join(reading.text.split())
        assert reader.tags <= {"html", "head", "meta", "body", "p", "br"}
        from_the_right = any("It is laid out from right to left." in str(b) for b in blocks)
        assert from_the_right == (language == "ar")


@pytest.mark.parametrize("fragment", FRAGMENTS)
def test_text_that_looks_like_ours_is_told_from_it(fragment: str) -> None:
    """An escape, an end, a mark that something is left out: typed by a customer, it is text."""
    email = email_content(subject=fragment, text=f"{fragment}\n{fragment}")
    record = operation_record(email=email, ticket=ticket_record(subject=fragment))
    for blocks in drawn(record):
        assert read_card(blocks) == read_of(record, email)
        assert part(blocks, "Text").count(END) == 1


@settings(max_examples=40)
@given(texts.filter(bool), texts, st.integers(1, 30_000))
def test_the_arguments_of_a_tool_are_read_whole_or_cannot_be_approved(
    name: str, value: str, length: int
) -> None:
    arguments: JsonObject = {name: grow(value or "x", length), "count": 2}
    for blocks in drawn(tool_record(arguments=arguments)):
        assert json.loads(body(blocks, "Arguments")) == arguments
