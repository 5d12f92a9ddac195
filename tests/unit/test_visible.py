"""What a reviewer reads determines what was proposed, character for character."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings

from bot.confusable import ascii_form, foreign_addresses
from bot.visible import END, Trick, conceal, merge, reveal
from tests.support.hostile import any_character, grow, texts

HIDING = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@given(texts)
def test_what_was_revealed_can_be_told_exactly(text: str) -> None:
    for one_line in (False, True):
        shown = reveal(text, one_line=one_line).text
        assert conceal(shown) == text
        assert conceal(shown + END) == text


@given(texts)
def test_nothing_that_hides_is_left_in_revealed_text(text: str) -> None:
    shown = reveal(text, one_line=True).text
    left = {c for c in shown if unicodedata.category(c) in HIDING}
    assert left == set()
    assert "\u00a0" not in shown
    assert "\ufe0f" not in shown


@given(texts, texts)
def test_different_texts_look_different(one: str, other: str) -> None:
    assert (reveal(one).text == reveal(other).text) == (one == other)


def test_every_character_that_means_something_can_be_told_exactly() -> None:
    planes = ((0, 0x20000), (0xE0000, 0xE1000), (0x10FF00, 0x110000))
    everything = [chr(code) for start, end in planes for code in range(start, end)]
    for start in range(0, len(everything), 4096):
        text = " ".join(everything[start : start + 4096])
        assert conceal(reveal(text).text) == text


@settings(max_examples=15, deadline=None)
@given(texts)
def test_long_texts_are_revealed_exactly_too(text: str) -> None:
    long = grow(text, 50_000)
    assert conceal(reveal(long).text) == long


@pytest.mark.parametrize(
    ("character", "trick"),
    [
        ("\x07", Trick.CONTROL),
        ("\x85", Trick.CONTROL),
        ("\r", Trick.CONTROL),
        ("\u202e", Trick.BIDI),
        ("\u2066", Trick.BIDI),
        ("\u200f", Trick.BIDI),
        ("\u061c", Trick.BIDI),
        ("\u200b", Trick.ZERO_WIDTH),
        ("\u200d", Trick.ZERO_WIDTH),
        ("\u2060", Trick.ZERO_WIDTH),
        ("\ufeff", Trick.ZERO_WIDTH),
        ("\u3164", Trick.ZERO_WIDTH),
        ("\U000e0041", Trick.TAG),
        ("\ufe0f", Trick.VARIATION),
        ("\U000e0100", Trick.VARIATION),
        ("\u00ad", Trick.SOFT_HYPHEN),
        ("\u00a0", Trick.SPACE),
        ("\u2003", Trick.SPACE),
        ("\u2028", Trick.SEPARATOR),
        ("\u2029", Trick.SEPARATOR),
        ("\udc00", Trick.SURROGATE),
        ("\ue000", Trick.UNASSIGNED),
        ("\uffff", Trick.UNASSIGNED),
    ],
)
def test_a_character_that_hides_is_escaped_and_named(character: str, trick: Trick) -> None:
    shown = reveal(f"a{character}b{character}")
    code = f"U+{ord(character):04X}"
    assert shown.text == f"a⟦{code}⟧b⟦{code}⟧"
    assert [(f.trick, f.code, f.count) for f in shown.warnings] == [(trick, ord(character), 2)]
    assert shown.warnings[0].name.startswith(code)


def test_a_flood_of_one_character_becomes_one_escape() -> None:
    assert reveal("a" + "\u200b" * 500).text == "a⟦U+200B×500⟧"


def test_ordinary_writing_is_left_alone() -> None:
    for text in ("Grüße, Zoë!\n\tnaïve – “yes”", "日本語　です。", "Привет, мир.", "שלום", "🎉"):
        assert reveal(text).text == text
        assert reveal(text).findings == ()


def test_an_opening_bracket_is_escaped_without_a_warning() -> None:
    shown = reveal("⟦U+0041⟧ and ⟦end⟧")
    assert shown.text == "⟦U+27E6⟧U+0041⟧ and ⟦U+27E6⟧end⟧"
    assert shown.warnings == ()


def test_line_ends_in_a_one_line_field_are_escaped() -> None:
    assert reveal("a\nb\tc", one_line=True).text == "a⟦U+000A⟧b⟦U+0009⟧c"
    assert reveal("a\nb\tc").text == "a\nb\tc"


def test_stacked_marks_are_escaped_from_the_fourth_on() -> None:
    assert reveal("e\u0301\u0302\u0303").findings == ()
    shown = reveal("e" + "\u0301" * 9)
    assert shown.text == "e\u0301\u0301\u0301⟦U+0301×6⟧"
    assert shown.warnings[0].trick is Trick.STACKED


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("pаypal.example", "p⟦U+0430⟧ypal.example"),
        ("pat@pаypal.example", "pat@p⟦U+0430⟧ypal.example"),
        ("https://gοοgle.example/x", "https://g⟦U+03BF⟧⟦U+03BF⟧gle.example/x"),
        ("аррӏе.com", "⟦U+0430⟧⟦U+0440⟧⟦U+0440⟧⟦U+04CF⟧⟦U+0435⟧.com"),
        ("ｐaypal.example", "⟦U+FF50⟧aypal.example"),
    ],
)
def test_a_letter_that_poses_in_an_address_is_escaped(address: str, shown: str) -> None:
    revealed = reveal(f"see {address} now")
    assert revealed.text == f"see {shown} now"
    assert {f.trick for f in revealed.warnings} == {Trick.CONFUSABLE}


def test_an_honest_foreign_domain_is_left_alone() -> None:
    for address in ("bücher.example", "пример.испытание", "東京タワーtokyo.example", "한국.kr"):
        assert reveal(address).findings == ()


def test_words_of_prose_may_mix_scripts() -> None:
    assert reveal("USB-кабель и Wi-Fi.").findings == ()


def test_foreign_addresses_are_spelt_in_ascii() -> None:
    text = "Write to pat@bücher.example, or see https://пример.example/a. Grüße."
    assert [ascii_form(a) for a in foreign_addresses(text)] == [
        "pat@xn--bcher-kva.example",
        "https://xn--e1afmkfd.example/a",
    ]


@given(any_character.map(lambda c: f"a{c}.example"))
def test_every_address_has_an_ascii_form(address: str) -> None:
    assert all(c.isascii() or not c.isalnum() for c in ascii_form(address))


def test_findings_of_several_texts_add_up() -> None:
    one, other = reveal("\u200b\u202e"), reveal("\u200b")
    merged = merge(one.findings + other.findings)
    assert [(f.code, f.count) for f in merged] == [(0x200B, 2), (0x202E, 1)]
