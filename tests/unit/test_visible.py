"""What a reviewer reads determines what was proposed, character for character."""

from __future__ import annotations

import pytest
from hypothesis import given

from bot.confusable import ascii_form, foreign_addresses, scripts_of
from bot.trick import Trick
from bot.visible import merge, reveal, runs_right_to_left
from tests.support.card_reading import undo
from tests.support.hostile import any_character


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
    assert [(f.trick, f.code, f.count) for f in shown.findings] == [(trick, ord(character), 2)]
    assert shown.findings[0].name.startswith(code)


def test_a_flood_of_one_character_becomes_one_escape() -> None:
    assert reveal("a" + "\u200b" * 500).text == "a⟦U+200B×500⟧"


def test_ordinary_writing_is_left_alone() -> None:
    for text in ("Grüße, Zoë!\n\tnaïve – “yes”", "日本語　です。", "Привет, мир.", "שלום", "🎉"):
        assert reveal(text).text == text
        assert reveal(text).findings == ()


def test_text_that_looks_like_an_escape_is_told_from_one() -> None:
    real, typed = reveal("a\u202eb"), reveal("a⟦U+202E⟧b")
    assert (real.text, typed.text) == ("a⟦U+202E⟧b", "a⟦U+27E6⟧U+202E⟧b")
    assert typed.findings[0].trick is Trick.BRACKET
    assert typed.findings[0].deceives
    assert undo(typed.text) == "a⟦U+202E⟧b"
    assert reveal("a〚U+202E〛b").text == "a⟦U+301A⟧U+202E〛b"
    assert reveal("⟦end⟧").text == "⟦U+27E6⟧end⟧"


def test_more_than_four_blank_lines_are_counted_on_a_line_of_their_own() -> None:
    assert reveal("a" + "\n" * 5 + "b").findings == ()
    shown = reveal("a" + "\n" * 31 + "b")
    assert shown.text == "a\n⟦U+000A×29⟧\nb"
    assert [(f.name, f.count) for f in shown.findings] == [("U+000A LINE FEED", 29)]
    assert reveal("a\n   \nb").text == "a\n⟦U+0020⟧⟦U+0020⟧⟦U+0020⟧\nb"


def test_a_gap_that_moves_text_away_is_counted() -> None:
    assert reveal("a" + " " * 40 + "b").findings == ()
    assert reveal("a" + " " * 41 + "b").text == "a⟦U+0020×41⟧b"
    assert reveal("a   b", one_line=True).findings == ()
    assert reveal(" a    b ", one_line=True).text == "⟦U+0020⟧a⟦U+0020×4⟧b⟦U+0020⟧"


def test_what_honest_text_is_full_of_is_written_out_but_deceives_nobody() -> None:
    for text in (
        "1\ufe0f\u20e3",
        "❤\ufe0f",
        "👩\u200d👧",
        "می\u200cخواهم",
        "900\u00a0€",
        "a\n \nb",
    ):
        shown = reveal(text)
        assert shown.text != text
        assert not any(finding.deceives for finding in shown.findings)
    for text in ("a\ufe0f", "a\u200db", "\u200c", "می\u200c", "a\u20e3\u0301\u0301\u0301\u0301"):
        assert any(finding.deceives for finding in reveal(text).findings)


def test_a_mark_without_a_letter_is_escaped() -> None:
    for text in ("\u0338", " \u0338", "\n\u0338", "\u202e\u0338", "⟦\u0338"):
        shown = reveal(text)
        assert shown.text.endswith("⟦U+0338⟧")
        assert Trick.LOOSE_MARK in {finding.trick for finding in shown.findings}


def test_line_ends_in_a_one_line_field_are_escaped() -> None:
    assert reveal("a\nb\tc", one_line=True).text == "a⟦U+000A⟧b⟦U+0009⟧c"
    assert reveal("a\nb\tc").text == "a\nb\tc"


def test_stacked_marks_are_escaped_from_the_fourth_on() -> None:
    assert reveal("e\u0301\u0302\u0303").findings == ()
    shown = reveal("e" + "\u0301" * 9)
    assert shown.text == "e\u0301\u0301\u0301⟦U+0301×6⟧"
    assert shown.findings[0].trick is Trick.STACKED


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("pаypal.example", "p⟦U+0430⟧ypal.example"),
        ("pat@pаypal.example", "pat@p⟦U+0430⟧ypal.example"),
        ("https://gοοgle.example/x", "https://g⟦U+03BF⟧⟦U+03BF⟧gle.example/x"),
        ("аррӏе.com", "⟦U+0430⟧⟦U+0440⟧⟦U+0440⟧⟦U+04CF⟧⟦U+0435⟧.com"),
        ("ｐaypal.example", "⟦U+FF50⟧aypal.example"),
        ("𝐩aypal.example", "⟦U+1D429⟧aypal.example"),
        ("pɑypal.example", "p⟦U+0251⟧ypal.example"),
        ("https://good.example⁄x.example", "https://good.example⟦U+2044⟧x.example"),
        ("pay‑pal.example", "pay⟦U+2011⟧pal.example"),
        ("х.com", "⟦U+0445⟧.com"),
        ("a.com/pаypal.example", "a.com/p⟦U+0430⟧ypal.example"),
    ],
)
def test_a_letter_that_poses_in_an_address_is_escaped(address: str, shown: str) -> None:
    revealed = reveal(f"see {address} now")
    assert revealed.text == f"see {shown} now"
    assert {f.trick for f in revealed.findings} == {Trick.CONFUSABLE}


def test_an_honest_foreign_domain_is_left_alone() -> None:
    for address in ("bücher.example", "пример.испытание", "東京タワーtokyo.example", "한국.kr"):
        assert reveal(address).findings == ()


def test_sentences_may_mix_scripts() -> None:
    for text in ("USB-кабель и Wi-Fi.", "и т.д. и т.е.", "10kΩ μm Δt", "終了しました。PCです。"):
        assert reveal(text).findings == ()
        assert list(foreign_addresses(text)) == []


def test_a_word_that_mixes_latin_letters_with_their_twins_is_escaped() -> None:
    assert reveal("Pаypal asks").text == "P⟦U+0430⟧ypal asks"
    assert reveal("Gοοgle").text == "G⟦U+03BF⟧⟦U+03BF⟧gle"
    assert reveal("USBшка").findings == ()


def test_foreign_addresses_are_spelt_in_ascii() -> None:
    text = "Write to pat@bücher.example, or see https://пример.example/a. Grüße. paypaḷ.example"
    assert [ascii_form(a) for a in foreign_addresses(text)] == [
        "pat@xn--bcher-kva.example",
        "xn--e1afmkfd.example",
        "xn--paypa-hj1b.example",
    ]
    assert ascii_form("ｐaypal。example") == "paypal.example", "as a browser reads it"


def test_the_scripts_that_an_address_mixes_are_named() -> None:
    assert scripts_of("pаypal.example") == ("Cyrillic", "Latin")
    assert scripts_of("пример.example") == ()
    assert scripts_of("東京タワーtokyo.example") == ()


def test_text_that_runs_from_the_right_is_noticed() -> None:
    assert runs_right_to_left("refund שלום 100")
    assert runs_right_to_left("المبلغ")
    assert not runs_right_to_left("日本 Grüße 100")


@given(any_character.map(lambda c: f"a{c}.example"))
def test_every_address_has_an_ascii_form(address: str) -> None:
    assert all(c.isascii() or not c.isalnum() for c in ascii_form(address))


def test_findings_of_several_texts_add_up() -> None:
    one, other = reveal("\u200b\u202e"), reveal("\u200b")
    merged = merge(one.findings + other.findings)
    assert [(f.code, f.count) for f in merged] == [(0x200B, 2), (0x202E, 1)]
