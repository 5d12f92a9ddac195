"""What a card says about something that may have been sent, and about what people said of it.

It tells what left for where, how far it had come when the answer was lost, and until when it may
still be on its way. A word that proof contradicts stays on the card, as contradicted. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bot.card_parts import (
    Item,
    Paragraph,
    Words,
    excerpt,
    literal,
    moment,
    one_line,
    paragraph,
    person,
)
from executor.domain.effect import AttemptStatus, EffectKind, EffectStatus
from executor.domain.ids import PrincipalId
from executor.engine.card_record import (
    AttemptRecord,
    EffectRecord,
    OperationRecord,
    WordRecord,
)
from executor.engine.word import DENIES, SAID, SAID_BY, Said

MOST_WORDS = 3
"""Words of people that a card shows; the newest ones."""

LONGEST_WORD = 200
"""Characters that the note to one word may take on a card."""

_LONGEST_PLACE = 200
_MOST_RECIPIENTS = 3

_PHASES: Mapping[str, str] = {
    "content": "The connection was lost while the email was being handed over. ",
    "final_reply": "All of the email was handed over, and then the provider's answer was lost. ",
    "request": "The connection was lost while the request was being handed over. ",
    "response": "All of the request was handed over, and then the provider's answer was lost. ",
    "answer": "The provider answered, but its answer does not say whether it took the email. ",
    "no_report": "The executor stopped before it could record what came of it. ",
}
"""What is known of how far an attempt had come, by the phase that its evidence names."""

_SAID: Mapping[Said, str] = {
    Said.SENT: "that it was sent",
    Said.NOT_SENT: "that it was not sent",
    Said.SEND_AGAIN: "that it was not sent, and had it sent again",
    Said.LEAVE: "to leave it as it is",
}


def doubt_of(record: OperationRecord) -> tuple[Item, ...]:
    """Say what left for where, where the answer was lost, and until when it may be on its way."""
    items: list[Item] = []
    for effect in record.effects:
        unknown = [a for a in effect.attempts if a.status is AttemptStatus.UNKNOWN]
        if effect.status is not EffectStatus.UNKNOWN or not unknown:
            continue
        newest = unknown[-1]
        items.append(
            paragraph(
                _phase(newest),
                "It may still be on its way until ",
                moment(max(a.conclude_at for a in unknown)),
                ", and a mail server may deliver later what it has taken. It was handed to:",
            )
        )
        items.append(literal(_where(record, effect), _LONGEST_PLACE))
    return tuple(items)


def words_of(record: OperationRecord) -> tuple[Item, ...]:
    """Say what people said about it, newest last, and which of it proof has contradicted."""
    items: list[Item] = []
    for word in record.words[-MOST_WORDS:]:
        items.append(_word(record, word))
        if word.note:
            items.append(excerpt(word.note, LONGEST_WORD))
    contradicted = [
        PrincipalId(str(attempt.evidence.get(SAID_BY)))
        for effect in record.effects
        for attempt in effect.attempts
        if attempt.status is AttemptStatus.APPLIED and attempt.evidence.get(SAID) in DENIES
    ]
    for by in contradicted[:1]:
        items.append(
            Paragraph(
                (
                    Words("Contradicted: ", bold=True),
                    person(by, record.tenant_id),
                    Words(" said that it was not sent; the provider's proof says that it was."),
                )
            )
        )
    return tuple(items)


def _word(record: OperationRecord, word: WordRecord) -> Paragraph:
    end = ":" if word.note else "."
    return Paragraph(
        (
            person(word.by, record.tenant_id),
            Words(" said at "),
            moment(word.said_at),
            Words(f" {_SAID[word.said]}{end}"),
        )
    )


def _phase(attempt: AttemptRecord) -> str:
    phase = attempt.evidence.get("phase")
    return _PHASES.get(phase, "") if isinstance(phase, str) else ""


def _where(record: OperationRecord, effect: EffectRecord) -> str:
    through = f"{effect.kind.value} through {one_line(effect.provider, 60)}"
    if effect.kind is not EffectKind.EMAIL_SEND:
        return through
    recipients = _addresses(record.email.get("to"))
    named = ", ".join(one_line(to, 60) for to in recipients[:_MOST_RECIPIENTS])
    more = len(recipients) - _MOST_RECIPIENTS
    return f"{through}, to {named}" + (f" and {more} more" if more > 0 else "")


def _addresses(boxes: object) -> list[str]:
    if not isinstance(boxes, Sequence):
        return []
    return [str(box.get("address")) for box in boxes if isinstance(box, Mapping)]
