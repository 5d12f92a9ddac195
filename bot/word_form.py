"""The form in which a person says what became of something: what is known, and what the word does.

It is drawn from the record when it is opened, and shows the attempt that the word will bind. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

from bot.card_doubt import doubt_of, in_doubt, risk_of, why_asked, words_of, yeses
from bot.card_parts import Item, Piece, Words, moment, paragraph, people
from bot.doubt_replies import consequence, short_label
from executor.domain.effect import EffectStatus
from executor.engine.card_record import AttemptRecord, OperationRecord
from executor.engine.word import Said


@dataclass(frozen=True, slots=True)
class WordForm:
    """Everything that the template of the form puts into blocks."""

    title: str
    known: tuple[Item, ...]
    does: tuple[Item, ...]
    digest: str


def word_form(record: OperationRecord, said: Said) -> WordForm:
    """Show what is known of the doubt that a record has, and what this word will do."""
    found = in_doubt(record)
    assert found is not None, "a word is about something that is in doubt"
    effect, newest = found
    kind = effect.kind.value
    does: list[Item] = []
    if said is Said.SEND_AGAIN:
        does.append(paragraph(consequence(said, kind), *risk_of(effect, newest)))
        does += _count(record)
    else:
        does.append(paragraph(consequence(said, kind), *_rest(record, said)))
    return WordForm(
        short_label(said, kind),
        (*doubt_of(record), *_asked(newest), *words_of(record)),
        tuple(does),
        record.digest.hex()[:16] if said is Said.SEND_AGAIN else "",
    )


def _asked(newest: AttemptRecord) -> tuple[Item, ...]:
    why = why_asked(newest)
    return (paragraph(why),) if why else ()


def _count(record: OperationRecord) -> tuple[Item, ...]:
    """Say how many people the policy asks, and who has said it already."""
    doubt = record.doubt
    if doubt is None or doubt.quorum < 2:
        return ()
    before = yeses(record)
    quorum = doubt.quorum if doubt.repeat is None else doubt.repeat.quorum
    pieces: list[Piece | str] = [Words(f"Yours is {len(before) + 1} of {quorum}. ", bold=True)]
    if before:
        pieces += ["Said already by ", *people(before, record.tenant_id), ". "]
    if len(before) + 1 < quorum:
        pieces.append("Until the others have said it too, it stays unknown and nothing is done. ")
        if doubt.repeat is not None and doubt.repeat.decide_by is not None:
            pieces += ["They have time until ", moment(doubt.repeat.decide_by), "."]
    else:
        pieces.append("Nobody else is needed.")
    return (paragraph(*pieces),)


def _rest(record: OperationRecord, said: Said) -> tuple[str, ...]:
    """Say what happens to the parts that come after, and to a repeat that others have begun."""
    told = []
    left = any(effect.status is EffectStatus.PLANNED for effect in record.effects)
    if left and said is Said.SENT:
        told.append(" What comes after it is then carried out.")
    if left and said is Said.NOT_SENT:
        told.append(" What comes after it is not carried out.")
    if said in (Said.SENT, Said.NOT_SENT) and yeses(record):
        told.append(" What others have said to have it tried once more ends with that.")
    return tuple(told)
