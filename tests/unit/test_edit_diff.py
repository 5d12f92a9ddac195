"""What was edited is told line by line, and gives back both revisions character for character."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from bot.edit_diff import EditDiff, Fate, edit_diff, line_diff
from executor.domain.payloads import JsonObject
from tests.support.card_reading import undo
from tests.support.records import TEXT, email_content, mailbox

LINES = st.lists(st.sampled_from(["", "a", "b", " a", "a ", "- a", "+ a", "\u202ea"]), max_size=12)
HARSH = st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=30)


def _before(lines: list[str], after: list[str]) -> list[str]:
    return [x.text for x in line_diff(lines, after) if x.fate is not Fate.CAME]


def _after(lines: list[str], after: list[str]) -> list[str]:
    return [x.text for x in line_diff(lines, after) if x.fate is not Fate.WENT]


def _email(**changes: object) -> JsonObject:
    return email_content(**changes).as_json()


@given(LINES, LINES)
def test_applying_the_diff_gives_the_new_text_and_undoing_it_the_old_one(
    before: list[str], after: list[str]
) -> None:
    assert _before(before, after) == before
    assert _after(before, after) == after


@given(LINES)
def test_the_same_text_has_no_diff(lines: list[str]) -> None:
    assert {line.fate for line in line_diff(lines, lines)} <= {Fate.STAYED}
    email = _email(text="\n".join(lines))
    assert edit_diff(email, email) == EditDiff("", "")


@given(st.lists(HARSH, min_size=1, max_size=5), st.lists(HARSH, min_size=1, max_size=5))
def test_what_is_shown_gives_back_every_line_that_went_or_came(
    before: list[str], after: list[str]
) -> None:
    shown = edit_diff(_email(text="\n".join(before)), _email(text="\n".join(after))).text
    read = [(row[:1], row[2:]) for row in shown.split("\n") if row[:1] in "+-" and row[1:2] == " "]
    changed = [line for line in line_diff(before, after) if line.fate is not Fate.STAYED]
    assert [(mark, "" if text == "⟦empty⟧" else undo(text)) for mark, text in read] == [
        (line.fate.value, line.text) for line in changed
    ]


def test_a_diff_shows_the_lines_around_a_change_and_counts_the_rest() -> None:
    before = _email(text=TEXT)
    after = _email(text=TEXT.replace("works again", "is repaired"))
    assert edit_diff(before, after).text == (
        "  Hello Pat,\n"
        "\n"
        "- your printer works again, so we have closed ticket 4101.\n"
        "+ your printer is repaired, so we have closed ticket 4101.\n"
        "\n"
        "  Kind regards\n"
        "⟦2 lines as before⟧"
    )


def test_spaces_at_the_ends_and_hidden_characters_of_changed_lines_are_seen() -> None:
    shown = edit_diff(_email(text="a\nb\n"), _email(text="a \n\u202eb\n")).text
    assert "+ a⟦U+0020⟧" in shown
    assert "+ ⟦U+202E⟧b" in shown
    assert "- a\n" in shown


def test_a_line_break_at_the_end_of_the_text_is_a_change() -> None:
    assert edit_diff(_email(text="a"), _email(text="a\n")).text == "  a\n+ ⟦empty⟧"


def test_recipients_and_subject_are_told_by_name_from_old_to_new() -> None:
    before = _email(cc=(mailbox("kim@cust.example"), mailbox("sam@cust.example")))
    after = _email(
        to=(mailbox("pay@bücher.example", "Pat", "pay@xn--bcher-kva.example"),),
        cc=(mailbox("sam@cust.example"),),
        subject="Done\u200b",
        message_id="<other@acme.example>",
    )
    assert edit_diff(before, after).fields == (
        "To:\n"
        '- "Pat" <pat@cust.example>\n'
        '+ "Pat" <pay@bücher.example> = <pay@xn--bcher-kva.example>\n'
        "Cc:\n"
        "- <kim@cust.example>\n"
        "Subject:\n"
        "- Ticket 4101 closed\n"
        "+ Done⟦U+200B⟧"
    )


def test_a_field_that_was_empty_is_told_as_well() -> None:
    shown = edit_diff(_email(), _email(cc=(mailbox("kim@cust.example"),))).fields
    assert shown == "Cc:\n- –\n+ <kim@cust.example>"


def test_texts_of_many_equal_lines_are_compared_in_bounded_time() -> None:
    before, after = ["a"] * 9_000, ["b", *["a"] * 8_000, "c"] * 1
    begun = time.process_time()
    assert _after(before, after) == after
    ragged = [str(n % 7) for n in range(1_900)]
    assert _after(ragged, ragged[::-1]) == ragged[::-1]
    assert time.process_time() - begun < 5.0
