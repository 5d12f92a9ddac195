"""Where an operation stands, and what comes next: by itself, by people, or nothing. Pure."""

from __future__ import annotations

from typing import assert_never

from bot.card_compensation import what_follows
from bot.card_doubt import in_doubt
from bot.card_parts import stamp
from bot.effect_words import words_for
from executor.domain.approval import Vote
from executor.domain.effect import Capability
from executor.domain.ids import operation_label
from executor.domain.operation import OperationStatus
from executor.domain.recovery import MOST_LOOKUPS
from executor.engine.card_record import AttemptRecord, EffectRecord, OperationRecord


def next_step(record: OperationRecord) -> str:
    """Say what happens next, and on whom it waits."""
    match record.status:
        case OperationStatus.AWAITING:
            return _decide(record)
        case OperationStatus.APPROVED:
            until = record.approval.use_by
            limit = "" if until is None else f"; if none has by {stamp(until)}, it expires"
            return f"A worker checks everything again and opens it{limit}."
        case OperationStatus.EXECUTING:
            return "A worker carries it out; nothing can stop it any more."
        case OperationStatus.UNKNOWN:
            return _find_out(record)
        case OperationStatus.PARTIAL:
            return what_follows(record)
        case (
            OperationStatus.SUCCEEDED
            | OperationStatus.FAILED
            | OperationStatus.REJECTED
            | OperationStatus.EXPIRED
            | OperationStatus.SUPERSEDED
            | OperationStatus.WITHDRAWN
            | OperationStatus.STALE
            | OperationStatus.COMPENSATED
            | OperationStatus.LEFT
        ):
            return "Nothing; it has ended."
        case _:
            assert_never(record.status)


def _decide(record: OperationRecord) -> str:
    approval = record.approval
    if approval.decide_by is None:
        return "Its card has to be shown; the time to decide starts then."
    given = sum(1 for vote in approval.votes if vote.vote is Vote.APPROVE)
    return (
        f"People decide on the card until {stamp(approval.decide_by)}; "
        f"{given} of {approval.quorum} approvals so far."
    )


def _find_out(record: OperationRecord) -> str:
    found = in_doubt(record)
    if found is None or found[1].recover_at is None:
        return _ask(record, found)
    effect, newest = found
    at = newest.recover_at
    assert at is not None
    match newest.capability:
        case Capability.KEYED:
            return (
                f"It is sent again under its key at {stamp(at)}; "
                "the provider drops it if the first one arrived."
            )
        case Capability.CONDITIONAL:
            return f"The desk is read at {stamp(at)}; only what has not moved is tried again."
        case Capability.LOOKUP | Capability.OPAQUE | Capability.TRANSACTIONAL:
            where = words_for(effect.kind.value).subject[4:]
            return (
                f"The {where} is searched for at {stamp(at)} "
                f"(search {newest.lookups + 1} of {MOST_LOOKUPS}); nothing is done again meanwhile."
            )
        case _:
            assert_never(newest.capability)


def _ask(record: OperationRecord, found: tuple[EffectRecord, AttemptRecord] | None) -> str:
    label = operation_label(record.number)
    settle = f"signoff doubt settle {label} --tenant {record.tenant_id}"
    done = words_for("" if found is None else found[0].kind.value).done
    begun = ""
    if record.doubt is not None and record.doubt.repeat is not None:
        repeat = record.doubt.repeat
        yes = sum(1 for vote in repeat.votes if vote.vote is Vote.APPROVE)
        begun = f" {yes} of {repeat.quorum} people have asked to have it tried once more."
    return (
        f"A person has to say whether it was {done}, on the card or with "
        f"`{settle} --word … --by … --note …`.{begun}"
    )
