"""An email is put into a form and read back from it without a character lost."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.cards import CardPainter, button_value, card_environment
from bot.edit_form import (
    LONGEST_INPUT,
    MOST_PARTS,
    EditForm,
    edit_form,
    errors_of,
    read_draft,
    split_text,
    text_block,
)
from bot.edit_origin import EditOrigin
from bot.sandbox.blocks import validate_view
from executor.domain.closing_draft import ClosingDraft, draft_of
from tests.support.records import NONCE, email_content, mailbox, operation_record

PAINTER = CardPainter(card_environment())
TEXTS = st.lists(
    st.sampled_from(
        ["word ", "\n", "\n\n", "\n" * 40, "  ", "x" * 900, "y" * 3_500, "日本", "🎉" * 700]
    ),
    max_size=14,
).map("".join)


def _fields(form: EditForm) -> dict[str, str]:
    parts = {text_block(n): part for n, part in enumerate(form.parts)}
    return {"to": form.to, "cc": form.cc, "subject": form.subject, **parts}


def _form(**changes: object) -> EditForm:
    form = edit_form(operation_record(email=email_content(**changes)))
    assert form is not None
    return form


@given(TEXTS)
def test_the_parts_of_a_text_join_to_it_and_each_fits_its_input(text: str) -> None:
    cut = split_text(text)
    if cut is None:
        assert len(text.encode("utf-16-le")) // 2 > 15_000 or "\n" * 61 in text
        return
    parts, joins = cut
    typed = {text_block(n): part for n, part in enumerate(parts)}
    assert read_draft(lambda block: typed.get(block, ""), joins).text == text
    assert len(parts) == len(joins) + 1 <= MOST_PARTS
    assert all(len(part.encode("utf-16-le")) // 2 <= LONGEST_INPUT for part in parts)


def test_a_long_text_is_cut_where_no_space_around_a_part_matters() -> None:
    text = "\n\n".join(f"Paragraph {n}, {'and more ' * 40}end." for n in range(40))
    cut = split_text(text)
    assert cut is not None
    parts, joins = cut
    assert set(joins) == {2}
    assert all(part == part.strip() for part in parts)
    one_line = split_text("two words " * 1_500)
    assert one_line is not None
    assert all(part == part.strip() for part in one_line[0][:-1])
    assert set(one_line[1]) == {0}


def test_a_text_that_fits_easily_leaves_room_to_type_in_every_part() -> None:
    cut = split_text("short line\n" * 500)
    assert cut is not None
    assert max(map(len, cut[0])) <= 2_000


def test_a_text_that_fits_no_form_has_none() -> None:
    assert split_text("x" * (MOST_PARTS * LONGEST_INPUT + 1)) is None
    assert edit_form(operation_record(email=email_content(text="x" * 31_000))) is None
    assert edit_form(operation_record(email=email_content(text="日" * 25_000))) is None
    many = tuple(mailbox(f"{'p' * 60}{n}@cust.example", "N" * 150) for n in range(20))
    assert edit_form(operation_record(email=email_content(to=many))) is None


def test_what_the_form_shows_first_is_read_back_as_the_email_says_it() -> None:
    content = email_content(
        to=(
            mailbox("pat@bücher.example", 'Pat "P." Doe, Jr', "pat@xn--bcher-kva.example"),
            mailbox("kim@cust.example"),
        ),
        cc=(mailbox("sam@cust.example", "Sam"),),
        text="One.\n\nTwo  \n",
    )
    form = edit_form(operation_record(email=content))
    assert form is not None
    draft = read_draft(lambda block: _fields(form).get(block, ""), form.joins)
    assert draft.tidy == draft_of(content.as_json())


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("pat@x.example", ("pat@x.example",)),
        ("p@x.example, k@x.example;s@x.example", ("p@x.example", "k@x.example", "s@x.example")),
        ('"Doe, P" <p@x.example> \r\n\nk@x.example', ('"Doe, P" <p@x.example>', "k@x.example")),
        (" \n ", ()),
    ],
)
def test_addresses_are_read_one_a_line(written: str, read: tuple[str, ...]) -> None:
    draft = read_draft({"to": written, "cc": "", "subject": "", "text_0": ""}.__getitem__, ())
    assert draft == ClosingDraft(read, (), "", "")


def test_problems_stand_under_the_inputs_that_they_are_about() -> None:
    problems = [
        {"field": "to[1]", "problem": "'x' is not exactly one address", "remedy": "Write one."},
        {"field": "text", "problem": "it is empty", "remedy": "Write what the customer reads."},
        {"field": "email.from", "problem": "no", "remedy": "Ask."},
    ]
    assert errors_of(problems) == {
        "to": "Address 2: 'x' is not exactly one address. Write one.",
        "text_0": "It is empty. Write what the customer reads.",
    }


@pytest.mark.parametrize("text", ["Short.\n", "line\n" * 2_000])
def test_the_form_is_one_that_slack_takes(text: str) -> None:
    record = operation_record(email=email_content(text=text))
    form = edit_form(record)
    assert form is not None
    origin = EditOrigin(button_value(record, NONCE), "C0APPROVALS", "1.2", form.joins)
    view = PAINTER.draw_edit_form(form, origin)
    assert validate_view(view) == []
    assert EditOrigin.decode(str(view["private_metadata"])) == origin


def test_what_a_form_carries_is_read_strictly() -> None:
    record = operation_record()
    origin = EditOrigin(button_value(record, NONCE), "C0APPROVALS", "1.2", (2, 1, 0))
    assert EditOrigin.decode(origin.encode()) == origin
    for joins in ((61,), (1,) * 10):
        assert EditOrigin.decode(dataclasses.replace(origin, joins=joins).encode()) is None
    for text in ("", "{}", "[]", "x" * 4_000, origin.encode().replace("2,1,0", "2,1,")):
        assert EditOrigin.decode(text) is None
