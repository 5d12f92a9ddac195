"""No two texts are shown alike, and nothing that hides is left in what is shown."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.card_parts import chunks, excerpt, length, shorten
from bot.visible import reveal
from tests.support.card_reading import undo
from tests.support.hostile import any_character, grow, texts

HIDING = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
CATEGORIES = (
    *("Cc", "Cf", "Cn", "Co", "Cs", "Ll", "Lm", "Lo", "Lt", "Lu", "Mc", "Me", "Mn", "Nd", "Nl"),
    *("No", "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "Sc", "Sk", "Sm", "So", "Zl", "Zp", "Zs"),
)
GOES_ON = "⟦the line goes on⟧"


def by_category() -> dict[str, list[str]]:
    found = defaultdict(list)
    for code in range(0x110000):
        found[unicodedata.category(chr(code))].append(chr(code))
    return found


@pytest.fixture(scope="module")
def alphabet() -> dict[str, list[str]]:
    return by_category()


@given(texts)
def test_what_was_revealed_can_be_told_exactly(text: str) -> None:
    for one_line in (False, True):
        assert undo(reveal(text, one_line=one_line).text) == text


@given(texts, texts)
def test_different_texts_look_different(one: str, other: str) -> None:
    for one_line in (False, True):
        same = reveal(one, one_line=one_line).text == reveal(other, one_line=one_line).text
        assert same == (one == other)


@given(texts)
def test_what_was_shown_and_is_typed_again_looks_different(text: str) -> None:
    """Whoever copies the look of an escape does not get the look of an escape."""
    shown = reveal(text).text
    if shown != text:
        assert reveal(shown).text != shown
        assert undo(reveal(shown).text) == shown


@given(texts)
def test_nothing_that_hides_is_left_in_revealed_text(text: str) -> None:
    shown = reveal(text, one_line=True).text
    assert {unicodedata.category(c) for c in shown} & HIDING == set()
    assert not {"\u00a0", "\ufe0f", "〚"} & set(shown)
    assert shown == shown.strip()
    assert "    " not in shown
    for line in reveal(text).text.split("\n"):
        assert line == "" or line.strip(" \t\u3000"), "no line looks empty and is not"
    assert "\n" * 6 not in reveal(text).text


@pytest.mark.parametrize("category", CATEGORIES)
def test_every_character_of_a_category_can_be_told_exactly(
    category: str, alphabet: dict[str, list[str]]
) -> None:
    characters = alphabet[category]
    # Of the large categories only a part, evenly: their characters are all treated alike.
    for text in (" ".join(characters[:: max(1, len(characters) // 3_000)]), *characters[:40]):
        for one_line in (False, True):
            assert undo(reveal(f"a{text}.example", one_line=one_line).text) == f"a{text}.example"
            assert undo(reveal(text, one_line=one_line).text) == text


def test_the_categories_are_all_there_are(alphabet: dict[str, list[str]]) -> None:
    assert sorted(alphabet) == sorted(CATEGORIES)


@settings(max_examples=15)
@given(texts.filter(bool))
def test_long_texts_are_revealed_exactly_too(text: str) -> None:
    long = grow(text, 50_000)
    assert undo(reveal(long).text) == long


@settings(max_examples=50)
@given(texts.filter(bool), st.integers(0, 20_000), st.integers(60, 3_000))
def test_what_is_cut_into_blocks_is_whole_and_says_where_a_line_goes_on(
    text: str, size: int, limit: int
) -> None:
    shown = reveal(grow(text, size)).text
    pieces = chunks(shown, limit)
    assert all(length(piece) <= limit for piece in pieces)
    assert "".join(piece.removesuffix(GOES_ON) for piece in pieces) == shown
    for piece, following in pairwise(pieces):
        assert piece.endswith(("\n", GOES_ON))
        assert following
        assert unicodedata.category(following[0]) not in {"Mn", "Me"}, "a mark left its letter"
        undo(piece.removesuffix(GOES_ON))


@settings(max_examples=50)
@given(texts.filter(bool), st.integers(0, 9_000), st.integers(80, 900))
def test_an_excerpt_fits_and_cannot_be_taken_for_the_whole(
    text: str, size: int, limit: int
) -> None:
    long = grow(text, size)
    for shown in (excerpt(long, limit).text, shorten(reveal(long).text, limit)):
        assert length(shown) <= limit
        if shown != reveal(long).text and long:
            with pytest.raises(AssertionError, match="no escape"):
                undo(shown)


@given(any_character, any_character)
def test_a_mark_never_falls_on_what_is_ours(one: str, other: str) -> None:
    for text in (one + other, f"\u202e{one}{other}", f"\n{one}", f" {one}"):
        shown = f" {reveal(text, one_line=True).text}"
        for before, character in pairwise(shown):
            if unicodedata.category(character) in {"Mn", "Me"}:
                assert before not in {"⟧", " ", "\n"}
