"""What a card says about something that may have been done, and about what people said of it.

It tells what left for where, how far it had come when the answer was lost, what was found out
since, what comes next, and until when it may still arrive. A word that proof contradicts stays on
the card, as contradicted. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bot.card_parts import (
    Item,
    Paragraph,
    Piece,
    Words,
    excerpt,
    literal,
    moment,
    one_line,
    paragraph,
    people,
    person,
)
from bot.effect_words import words_for
from bot.reason_text import sentence
from executor.domain.approval import Vote
from executor.domain.effect import AttemptStatus, Capability, EffectKind, EffectStatus
from executor.domain.ids import PrincipalId
from executor.domain.recovery import MOST_LOOKUPS, Why
from executor.engine.card_record import AttemptRecord, EffectRecord, OperationRecord, WordRecord
from executor.engine.doubt_record import DoubtRecord
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
    "answer": "The provider answered, but its answer does not say whether it was done. ",
    "no_report": "The executor stopped before it could record what came of it. ",
}
"""What is known of how far an attempt had come, by the phase that its evidence names."""

_SEARCHES: Mapping[str, str] = {
    "not_found": "did not find it, which is no proof. ",
    "failed": "could not be made. ",
}
"""What the newest search came to, by the word that its evidence begins with."""


def in_doubt(record: OperationRecord) -> tuple[EffectRecord, AttemptRecord] | None:
    """Return the first part that nobody knows of, and its newest attempt."""
    for effect in record.effects:
        unknown = [a for a in effect.attempts if a.status is AttemptStatus.UNKNOWN]
        if effect.status is EffectStatus.UNKNOWN and unknown:
            return effect, unknown[-1]
    return None


def doubt_of(record: OperationRecord) -> tuple[Item, ...]:
    """Say what left for where, what is known of it, and until when it may still arrive."""
    found = in_doubt(record)
    if found is None:
        return ()
    effect, newest = found
    unknown = [a for a in effect.attempts if a.status is AttemptStatus.UNKNOWN]
    tried = paragraph("Tried at ", moment(newest.opened_at), _times(unknown), ":")
    later = (
        ", and a mail server may deliver later what it has taken. "
        if effect.kind is EffectKind.EMAIL_SEND
        else ". "
    )
    known = paragraph(
        _phase(newest),
        "Late arrival is possible until ",
        moment(max(a.conclude_at for a in unknown)),
        later,
        _searches(newest),
    )
    return (tried, literal(_where(record, effect), _LONGEST_PLACE), known)


def next_of(record: OperationRecord) -> tuple[Item, ...]:
    """Say what comes next, by itself or by people."""
    found = in_doubt(record)
    if found is None:
        return ()
    effect, newest = found
    if record.doubt is not None:
        return _asked(record, record.doubt, effect, newest)
    if newest.recover_at is None:
        return (paragraph("Nothing is done again by itself; a person has to look."),)
    at = moment(newest.recover_at)
    person_last = "If that does not settle it, a person has to look and say what happened."
    match newest.capability:
        case Capability.KEYED:
            return (
                paragraph(
                    Words("Next: ", bold=True),
                    "it is sent again under its key at ",
                    at,
                    ", and the provider drops it if the first one arrived. ",
                    person_last,
                ),
            )
        case _:
            return (
                paragraph(
                    Words("Next: ", bold=True),
                    "the provider is searched at ",
                    at,
                    f" (search {newest.lookups + 1} of {MOST_LOOKUPS}). "
                    "Nothing is done again meanwhile. ",
                    person_last,
                ),
            )


def _asked(
    record: OperationRecord, doubt: DoubtRecord, effect: EffectRecord, newest: AttemptRecord
) -> tuple[Item, ...]:
    """Ask a person, and say where a repeat stands that some have asked for already."""
    words = words_for(effect.kind.value)
    items: list[Item] = [
        paragraph(
            Words("A person has to look. ", bold=True),
            why_asked(newest),
            "Nothing is done again by itself. "
            f"Find out whether it was {words.done}, and say below what happened. "
            "Everybody who may approve here can do that.",
        )
    ]
    if doubt.not_again is not None:
        why = sentence(doubt.not_again, {})
        items.append(paragraph(f"Nobody can have it {words.done} once more. {why}"))
    elif doubt.repeat is not None:
        items.append(_so_far(record, doubt, words.again, risk_of(effect, newest)))
    else:
        items.append(paragraph(*risk_of(effect, newest), _needs(doubt)))
    return tuple(items)


def risk_of(effect: EffectRecord, newest: AttemptRecord) -> tuple[Piece | str, ...]:
    """Say what a repeat risks: nothing while a provider remembers the key, else a second one."""
    words = words_for(effect.kind.value)
    if newest.capability is Capability.KEYED and newest.key_until is not None:
        return (
            f"If it is {words.done} once more before ",
            moment(newest.key_until),
            ", the provider drops it if the first one arrived. "
            f"Later, {words.twice} if the first one arrives after all. ",
        )
    once_more = f"If it is {words.done} once more and the first one arrives after all"
    return (f"{once_more}, {words.twice}. ",)


def yeses(record: OperationRecord) -> list[PrincipalId]:
    """List who has asked to have it tried once more, while that is still open."""
    if record.doubt is None or record.doubt.repeat is None:
        return []
    return [v.principal for v in record.doubt.repeat.votes if v.vote is Vote.APPROVE]


def words_of(record: OperationRecord) -> tuple[Item, ...]:
    """Say what people said about it, newest last, and which of it proof has contradicted."""
    items: list[Item] = []
    for word in record.words[-MOST_WORDS:]:
        items.append(_word(record, word))
        if word.note:
            items.append(excerpt(word.note, LONGEST_WORD))
    contradicted = [
        (PrincipalId(str(attempt.evidence.get(SAID_BY))), words_for(effect.kind.value).done)
        for effect in record.effects
        for attempt in effect.attempts
        if attempt.status is AttemptStatus.APPLIED and attempt.evidence.get(SAID) in DENIES
    ]
    for by, done in contradicted[:1]:
        items.append(
            Paragraph(
                (
                    Words("Contradicted: ", bold=True),
                    person(by, record.tenant_id),
                    Words(f" said that it was not {done}; the provider's proof says that it was."),
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
            Words(f" {_said(word)}{end}"),
        )
    )


def _said(word: WordRecord) -> str:
    words = words_for(word.effect.value)
    match word.said:
        case Said.SENT:
            return f"that it was {words.done}"
        case Said.NOT_SENT:
            return f"that it was not {words.done}"
        case Said.SEND_AGAIN:
            return f"that it was not {words.done}, and to {words.again}"
        case Said.LEAVE:
            return "to leave it as it is"


def _so_far(
    record: OperationRecord, doubt: DoubtRecord, again: str, risk: tuple[Piece | str, ...]
) -> Paragraph:
    assert doubt.repeat is not None
    said = yeses(record)
    pieces: list[Piece | str] = [
        Words(f"{len(said)} of {doubt.repeat.quorum} people said to {again} so far: ", bold=True),
        *people(said, record.tenant_id),
        ". Until all of them have, it stays unknown",
    ]
    if doubt.repeat.decide_by is not None:
        pieces += ["; the others have time until ", moment(doubt.repeat.decide_by)]
    return paragraph(*pieces, ". ", *risk)


def _needs(doubt: DoubtRecord) -> str:
    return f"{doubt.quorum} people have to say so. " if doubt.quorum > 1 else ""


def _times(unknown: Sequence[AttemptRecord]) -> str:
    return f", the last of {len(unknown)} times that nobody knows of" if len(unknown) > 1 else ""


def _phase(attempt: AttemptRecord) -> str:
    phase = attempt.evidence.get("phase")
    return _PHASES.get(phase, "") if isinstance(phase, str) else ""


def _searches(attempt: AttemptRecord) -> str:
    if attempt.lookups == 0:
        return ""
    said = attempt.evidence.get("search")
    found = _SEARCHES.get(said.partition(" ")[0], "") if isinstance(said, str) else ""
    times = "once" if attempt.lookups == 1 else f"{attempt.lookups} times"
    return f"The provider was searched {times}; " + (f"the last search {found}" if found else "")


def why_asked(attempt: AttemptRecord) -> str:
    """Say why no machine can find out, where a machine has tried."""
    why = attempt.evidence.get("a_person_is_asked")
    known = {reason.value for reason in Why}
    return f"No machine can find out: {why}. " if isinstance(why, str) and why in known else ""


def _where(record: OperationRecord, effect: EffectRecord) -> str:
    through = f"through {one_line(effect.provider, 60)}"
    if effect.kind is not EffectKind.EMAIL_SEND:
        if record.ticket is None:
            return through
        return f"{through}, ticket {one_line(record.ticket.id, 60)}"
    recipients = _addresses((record.email or {}).get("to"))
    named = ", ".join(one_line(to, 60) for to in recipients[:_MOST_RECIPIENTS])
    more = len(recipients) - _MOST_RECIPIENTS
    return f"{through}, to {named}" + (f" and {more} more" if more > 0 else "")


def _addresses(boxes: object) -> list[str]:
    if not isinstance(boxes, Sequence):
        return []
    return [str(box.get("address")) for box in boxes if isinstance(box, Mapping)]
