"""A word is named, explained and confirmed in the terms of what it is about."""

from __future__ import annotations

import itertools
import re

import pytest

from bot.doubt_replies import LONGEST_TITLE, consequence, label, short_label, word_given
from executor.domain.effect import EffectKind
from executor.engine.word import Said

KINDS = [*(kind.value for kind in EffectKind), "something.new"]
JARGON = re.compile(
    r"\b(epoch|lease|digest|quorum|principal|payload|token|exception|null|none|api|sql)\b", re.I
)
MARKUP = re.compile(r"[<*~]|:[a-z_]+:")


@pytest.mark.parametrize(("kind", "said"), [*itertools.product(KINDS, Said)])
def test_every_kind_has_a_button_a_title_and_sentences_without_jargon(
    kind: str, said: Said
) -> None:
    assert len(short_label(said, kind)) <= LONGEST_TITLE
    assert len(label(said, kind)) <= 75
    told = [consequence(said, kind), *(word_given(said, 12, kind, still_needed=n) for n in (0, 1))]
    for sentence in told:
        assert sentence.rstrip().endswith(".")
        assert sentence[0].isupper()
        assert sentence.isascii()
        assert not JARGON.search(sentence)
        assert not MARKUP.search(sentence)


@pytest.mark.parametrize("kind", KINDS)
def test_no_two_words_are_told_alike(kind: str) -> None:
    for tell in (label, short_label, consequence):
        assert len({tell(said, kind) for said in Said}) == len(Said)


def test_an_email_is_sent_and_a_ticket_is_closed() -> None:
    assert label(Said.SEND_AGAIN, "email.send") == "It was not sent: send again"
    assert label(Said.SEND_AGAIN, "ticket.close") == "It was not closed: try again"
    assert label(Said.NOT_SENT, "something.new") == "It was not done"
    assert word_given(Said.SENT, 3, "ticket.close", still_needed=0) == (
        "Recorded: you said that the ticket of op_3 was closed."
    )


def test_whoever_is_not_the_last_is_told_how_many_more_have_to_say_so() -> None:
    one = word_given(Said.SEND_AGAIN, 3, "email.send", still_needed=1)
    two = word_given(Said.SEND_AGAIN, 3, "email.send", still_needed=2)
    assert "1 more person has to say so before anything is done." in one
    assert "2 more people have to say so before anything is done." in two
    assert "more" not in word_given(Said.SEND_AGAIN, 3, "email.send", still_needed=0)
