"""What an operation's card rests on: what was checked before, what was handed over, what came back.

Nothing here is a claim of ours: it is what the opening recorded, and what providers said. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta

from bot.card_parts import Item, Literal, Piece, Words, moment, one_line, paragraph, shorten
from bot.check_text import in_short
from bot.effect_words import words_for
from executor.domain.effect import AttemptStatus, EffectKind
from executor.domain.ids import is_policy
from executor.domain.payloads import JsonValue
from executor.engine.card_record import AttemptRecord, EffectRecord, OperationRecord
from executor.engine.word import NOTE, SAID, SAID_BY

LONGEST_EVIDENCE = 500
"""Characters that the evidence of all attempts may take on a card."""

MOST_ATTEMPTS = 3
"""Attempts whose evidence a card gives; the newest ones."""

_PROMPT = timedelta(seconds=60)
_MOST_FACTS = 12
_LONGEST_FACT = 200
_LONGEST_PROVIDER = 80
_LONGEST_NAME = 200

_NAMES = ("id", "message_id", "reply")
"""Evidence by which a provider finds an email again, best first."""


def checked(record: OperationRecord) -> tuple[Item, ...]:
    """Say what held right before anything was done; empty where nothing was opened.

    An opening commits only if every check held, so that its time alone tells that they did.
    """
    if record.opened_at is None:
        return ()
    by_policy = any(is_policy(vote.principal) for vote in record.approval.votes)
    version = None if record.ticket is None else record.ticket.version
    held = in_short(
        version,
        undoes=record.undoes is not None,
        raises=record.raising is not None,
        by_policy=by_policy,
    )
    at = moment(record.opened_at)
    said = Words("Checked before anything was done", bold=True)
    return (paragraph(said, ", at ", at, f": {held}."),)


def handed_over(record: OperationRecord) -> tuple[Item, ...]:
    """Say when the email was taken over by which provider, and how that calls it."""
    taken = _newest_taken(record)
    return () if taken is None else _taken(*taken)


def evidence(record: OperationRecord) -> tuple[Item, ...]:
    """Give what is known of the newest attempt of each effect and of those still in doubt.

    An email that was handed over is told of by ``handed_over``.
    """
    taken = _newest_taken(record)
    told = [
        (effect, attempt, facts)
        for effect in record.effects
        for attempt in effect.attempts
        if attempt.status is AttemptStatus.UNKNOWN or attempt is effect.attempts[-1]
        if taken is None or attempt is not taken[1]
        if (facts := _facts(attempt))
    ][-MOST_ATTEMPTS:]
    items: list[Item] = [paragraph("What this rests on:")] if told else []
    for effect, attempt, facts in told:
        at = moment(attempt.reported_at or attempt.opened_at)
        what = words_for(effect.kind.value).subject
        items.append(paragraph(f"{what}, attempt {attempt.number}, ", at, ":"))
        items.append(Literal(shorten("\n".join(facts), LONGEST_EVIDENCE // len(told))))
    return tuple(items)


def _newest_taken(record: OperationRecord) -> tuple[EffectRecord, AttemptRecord] | None:
    """Find the newest attempt at an email if it is proved that a provider took it over.

    A person's word alone is no proof; it stands on the card as theirs.
    """
    for effect in record.effects:
        for newest in effect.attempts[-1:]:
            taken = newest.status is AttemptStatus.APPLIED
            proved = SAID not in newest.evidence or _name_of(newest) is not None
            if effect.kind is EffectKind.EMAIL_SEND and taken and proved:
                return effect, newest
    return None


def _name_of(attempt: AttemptRecord) -> JsonValue:
    return next((attempt.evidence[key] for key in _NAMES if attempt.evidence.get(key)), None)


def _taken(effect: EffectRecord, attempt: AttemptRecord) -> tuple[Item, ...]:
    known_at = attempt.reported_at or attempt.opened_at
    when: list[Piece | str] = ["Handed over at ", moment(known_at)]
    if known_at - attempt.opened_at > _PROMPT:
        when = ["Tried at ", moment(attempt.opened_at), ", known since ", moment(known_at)]
        when.append(" to have been handed over")
    through, named = one_line(effect.provider, _LONGEST_PROVIDER), _name_of(attempt)
    if named is None:
        return (paragraph(*when, " to:"), Literal(through))
    called = one_line(_spell(named), _LONGEST_NAME)
    return (
        paragraph(*when, " to this provider, which calls it:"),
        Literal(f"{through}\n{called}"),
    )


def _facts(attempt: AttemptRecord) -> list[str]:
    """Spell one attempt's evidence, or nothing where there is none yet; words stand elsewhere."""
    said = {SAID, SAID_BY, NOTE} if SAID in attempt.evidence else set()
    return [
        f"{one_line(key, 40)}: {one_line(_spell(value), _LONGEST_FACT)}"
        for key, value in attempt.evidence.items()
        if key not in said
    ][-_MOST_FACTS:]


def _spell(value: JsonValue) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return json.dumps(dict(value), default=str, ensure_ascii=False)
    return json.dumps(value, default=str, ensure_ascii=False)
