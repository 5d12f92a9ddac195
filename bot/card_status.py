"""The status of an operation's card: the first thing a person reads, and never cut.

It says what is true and no more: what was done, what was not, and what nobody knows. Pure.
"""

from __future__ import annotations

from typing import assert_never

from bot.card_afterwards import afterwards_of, trouble_of
from bot.card_compensation import NOT_UNDONE, what_follows
from bot.card_doubt import doubt_of, in_doubt, next_of, words_of
from bot.card_evidence import checked, evidence, handed_over
from bot.card_nudge import clock_of
from bot.card_parts import Item, Paragraph, Piece, Words, excerpt, moment, paragraph, person
from bot.card_question import asked_about
from bot.card_revision import may_be_proposed_again, replaced_by
from bot.card_ticket import changes, moved_on
from bot.card_votes import votes_of
from bot.duration_text import duration
from bot.effect_words import words_for
from bot.reason_text import sentence
from executor.domain.approval import Vote
from executor.domain.effect import EffectStatus
from executor.domain.ids import PrincipalId
from executor.domain.operation import OperationStatus
from executor.domain.payloads import JsonValue
from executor.domain.transition import Reason
from executor.engine.approval_record import VoteRecord
from executor.engine.card_record import EffectRecord, OperationRecord

LONGEST_NOTE = 500
"""Characters that a reviewer's reason may take on a card."""

_LONGEST_PROBLEM = 200
_READS_AGAIN = "and the agent reads the ticket again."


def status_of(record: OperationRecord) -> tuple[Item, ...]:
    """Say where an operation stands."""
    match record.status:
        case OperationStatus.AWAITING:
            return _awaiting(record)
        case OperationStatus.APPROVED:
            return (
                _headline("Approved, not carried out yet", _approvers(record)),
                _use_by(record),
                *_waits_for_desk(record),
            )
        case OperationStatus.EXECUTING:
            return (
                _headline("Being carried out", _approvers(record)),
                *checked(record),
                paragraph("It can no longer be stopped. ", *_effects(record)),
                *_waits_for_desk(record),
                *words_of(record),
                *evidence(record),
            )
        case OperationStatus.SUCCEEDED:
            return _succeeded(record)
        case OperationStatus.FAILED:
            return (
                _headline("Failed: nothing was done", _approvers(record)),
                *checked(record),
                paragraph(_because(record), *_effects(record), *_ended(record)),
                *evidence(record),
            )
        case OperationStatus.PARTIAL | OperationStatus.COMPENSATED | OperationStatus.LEFT:
            return _partial(record)
        case OperationStatus.UNKNOWN:
            return _unknown(record)
        case OperationStatus.REJECTED:
            return _rejected(record)
        case OperationStatus.EXPIRED:
            why = _because(record) if record.undoes is None else "The ticket stays closed. "
            if record.raising is not None:
                why = "Nobody decided in time, so the limit stays as it is. "
            title = _headline("Expired: nothing was done", _approvers(record))
            return (title, paragraph(*_ended(record), why))
        case OperationStatus.SUPERSEDED:
            return (
                _headline("Replaced: nothing was done", _approvers(record)),
                paragraph(*_ended(record)),
                *(replaced_by(record) or (paragraph("Decide on the newest card."),)),
            )
        case OperationStatus.WITHDRAWN:
            title = _headline("Withdrawn: nothing was done", _approvers(record))
            return (title, paragraph(_because(record), *_withdrawer(record), *_ended(record)))
        case OperationStatus.STALE:
            return _stale(record)
        case _:
            assert_never(record.status)


def _headline(text: str, more: tuple[Piece, ...] = ()) -> Paragraph:
    return Paragraph((Words(f"{text}. ", bold=True), *more))


def _voters(record: OperationRecord, vote: Vote) -> list[VoteRecord]:
    return [cast for cast in record.approval.votes if cast.vote is vote]


def _approvers(record: OperationRecord) -> tuple[Piece, ...]:
    voters = _voters(record, Vote.APPROVE)
    if not voters:
        return ()
    pieces: list[Piece] = [Words("Approved by ")]
    for cast in voters:
        if len(pieces) > 1:
            pieces.append(Words(", "))
        pieces.append(person(cast.principal, record.tenant_id))
        if cast.on_behalf_of is not None:
            pieces += [Words(" for "), person(cast.on_behalf_of, record.tenant_id)]
    return (*pieces, Words(" at "), moment(voters[-1].decided_at), Words(". "))


def _ended(record: OperationRecord) -> tuple[Piece, ...]:
    """Say when it ended."""
    if record.ended_at is None:
        return ()
    return (Words("It ended at "), moment(record.ended_at), Words(". "))


def _withdrawer(record: OperationRecord) -> tuple[Piece, ...]:
    by = _text(record.detail.get("by"))
    return (Words("By "), person(PrincipalId(by), record.tenant_id), Words(". ")) if by else ()


def _because(record: OperationRecord) -> str:
    if record.reason is None:
        return ""
    detail = {key: value for key, value in record.detail.items() if key != "by"}
    undone = [e.kind.value for e in record.effects if e.status is not EffectStatus.APPLIED]
    if undone:
        detail["effect"] = undone[0]
    return f"{sentence(record.reason, detail)} "


def _waits_for_desk(record: OperationRecord) -> tuple[Item, ...]:
    """Say that an outside desk keeps it from going on, in our own words about that desk."""
    if record.desk_problem is None:
        return ()
    return (
        paragraph("It waits: the ticket desk could not be read. We go on looking by ourselves."),
        excerpt(record.desk_problem, _LONGEST_PROBLEM),
    )


def _awaiting(record: OperationRecord) -> tuple[Item, ...]:
    if moved_on(record):
        return (
            _headline("Out of date: it cannot be approved any more"),
            paragraph(_versions(record), _now_that_it_moved(record)),
            *_changes_since(record),
        )
    approval = record.approval
    pieces: list[Piece | str] = []
    if approval.decide_by is None:
        pieces.append("The time to decide starts when this is shown: ")
        pieces.append(f"{duration(approval.decide_within_seconds)}. ")
    else:
        pieces += ["Decide by ", moment(approval.decide_by), ". "]
    return (
        _headline("Waiting for approval"),
        paragraph(*pieces, *clock_of(record)),
        *votes_of(record),
        *asked_about(record),
    )


def _use_by(record: OperationRecord) -> Item:
    use_by = record.approval.use_by
    if use_by is None:
        return paragraph()
    return paragraph("If it is not carried out by ", moment(use_by), ", the approval expires.")


def _succeeded(record: OperationRecord) -> tuple[Item, ...]:
    reported = [
        attempt.reported_at
        for effect in record.effects
        for attempt in effect.attempts
        if attempt.reported_at is not None
    ]
    at = max(reported, default=record.ended_at)
    when: tuple[Piece, ...] = ()
    if at is not None:
        when = (Words("Finished at "), moment(at), Words(". "))
    trouble = trouble_of(record)
    return (
        _headline("Done" if trouble is None else f"Done: {trouble}", _approvers(record)),
        *checked(record),
        Paragraph((*when, *_effects(record))),
        *handed_over(record),
        *afterwards_of(record),
        *words_of(record),
        *evidence(record),
    )


def _partial(record: OperationRecord) -> tuple[Item, ...]:
    match record.status:
        case OperationStatus.COMPENSATED:
            title = "Done in part, then undone"
        case OperationStatus.LEFT:
            title = "Done in part, and left so"
        case _:
            title = "Done in part"
    return (
        _headline(title, _approvers(record)),
        *checked(record),
        paragraph(*_effects(record), _because(record), what_follows(record)),
        *handed_over(record),
        *words_of(record),
        *evidence(record),
    )


def _unknown(record: OperationRecord) -> tuple[Item, ...]:
    found = in_doubt(record)
    done = words_for("" if found is None else found[0].kind.value).done
    # That the answer was lost is said in more detail below.
    lost = record.reason is Reason.OUTCOME_LOST
    return (
        _headline(f"Not known: it may have been {done}", _approvers(record)),
        *checked(record),
        paragraph(*_effects(record), "" if lost else _because(record)),
        *doubt_of(record),
        *next_of(record),
        *words_of(record),
        *evidence(record),
    )


def _rejected(record: OperationRecord) -> tuple[Item, ...]:
    voters = _voters(record, Vote.REJECT)
    if voters:
        by, note = voters[-1].principal, voters[-1].note
        when: tuple[Piece, ...] = (Words(" at "), moment(voters[-1].decided_at))
    else:
        by = PrincipalId(_text(record.detail.get("by")))
        note, when = _text(record.detail.get("note")), ()
    done = "Rejected" if record.undoes is None else "Left closed"
    if record.raising is not None:
        done = "Not raised"
    said = _headline(
        f"{done}: nothing was done",
        (Words("By "), person(by, record.tenant_id), *when, Words(". The reason:")),
    )
    return (said, excerpt(note, LONGEST_NOTE))


def _stale(record: OperationRecord) -> tuple[Item, ...]:
    title = _headline("Out of date: nothing was done", _approvers(record))
    if record.reason is not Reason.VERSION_CHANGED or record.ticket is None:
        return (title, paragraph(_because(record), *_ended(record)))
    return (
        title,
        paragraph(
            _versions(record),
            "" if record.undoes is None else f"{NOT_UNDONE} ",
            *_ended(record),
        ),
        *(replaced_by(record) or _asks_for_it(record)),
        *_changes_since(record),
    )


def _asks_for_it(record: OperationRecord) -> tuple[Item, ...]:
    """Say what may be done about a proposal that was out of date."""
    if not may_be_proposed_again(record):
        return ()
    return (paragraph("If the same still fits, have it proposed again."),)


def _now_that_it_moved(record: OperationRecord) -> str:
    if record.undoes is None:
        again = "Have it proposed again if it still fits, or reject it"
        return f"{again if may_be_proposed_again(record) else 'Reject it'}, {_READS_AGAIN}"
    return f"{NOT_UNDONE} Leave it closed here."


def _versions(record: OperationRecord) -> str:
    looked_at = f"You looked at version {record.target.version}; "
    if not moved_on(record):
        return f"{looked_at}the ticket has changed since. "
    return f"{looked_at}it is now {record.target.current_version}. "


def _changes_since(record: OperationRecord) -> tuple[Item, ...]:
    return changes(record.target.changes_since)


def _effects(record: OperationRecord) -> tuple[Piece, ...]:
    ended = record.ended_at is not None
    return tuple(Words(f"{_effect(effect, ended)} ") for effect in record.effects)


def _effect(effect: EffectRecord, ended: bool) -> str:
    words = words_for(effect.kind.value)
    subject, done = words.subject, words.done
    match effect.status:
        case EffectStatus.PLANNED if not ended:
            return f"{subject} is not {done} yet."
        case EffectStatus.SKIPPED | EffectStatus.PLANNED:
            return f"{subject} was not {done}, and will not be."
        case EffectStatus.DISPATCHED:
            return f"{subject} is being {done}."
        case EffectStatus.APPLIED:
            return f"{subject} was {done}."
        case EffectStatus.NOT_APPLIED:
            return f"{subject} was not {done}."
        case EffectStatus.UNKNOWN:
            return f"{subject} may have been {done}."
        case _:
            assert_never(effect.status)


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""
