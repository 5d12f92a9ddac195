"""What a card says of the operation whose place its own took, and of the one that took its place.

Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

from bot.card_parts import (
    Item,
    Literal,
    Paragraph,
    Piece,
    Words,
    chunks,
    length,
    paragraph,
    people,
    person,
)
from bot.card_ticket import moved_on
from bot.edit_diff import edit_diff
from executor.domain.ids import operation_label
from executor.domain.operation import OperationStatus
from executor.domain.ticket import TicketStatus
from executor.domain.transition import Reason
from executor.engine.card_record import OperationRecord

_VOID = "Earlier approvals do not count. "
_IN_FULL = "What changed does not fit here: review it in full."
_SAME = "It says exactly the same."


@dataclass(frozen=True, slots=True)
class Revision:
    """What is told of the operation before; ``whole`` unless what changed did not fit."""

    items: tuple[Item, ...] = ()
    whole: bool = True


def revision_of(record: OperationRecord, room: int, longest: int) -> Revision:
    """Tell what this operation took the place of, and what it says otherwise.

    What changed is told in full where it has at most ``room`` characters, in literal blocks of at
    most ``longest`` each, or else not at all.
    """
    previous = record.previous
    if previous is None or previous.email is None or record.email is None:
        return Revision()
    opening = _opening(record)
    diff = edit_diff(previous.email, record.email)
    told = [text for text in (diff.fields, diff.text) if text]
    if not told:
        return Revision((Paragraph((*opening, Words(_SAME))),))
    if sum(map(length, told)) > room:
        return Revision((Paragraph((*opening, Words(_IN_FULL))),), whole=False)
    changed = (Literal(chunk) for text in told for chunk in chunks(text, longest))
    return Revision((Paragraph((*opening, Words("What changed:"))), *changed))


def may_be_proposed_again(record: OperationRecord) -> bool:
    """Tell whether the same can be asked for once more: its ticket has moved on and is open."""
    if record.email is None or record.target.current_status is TicketStatus.CLOSED:
        return False
    if record.status is OperationStatus.STALE:
        return record.reason is Reason.VERSION_CHANGED and record.successor is None
    return record.status is OperationStatus.AWAITING and moved_on(record)


def replaced_by(record: OperationRecord) -> tuple[Item, ...]:
    """Say what took this operation's place, and who wrote it; ``()``: nothing did."""
    after = record.successor
    if after is None:
        return ()
    number = operation_label(after.number)
    if record.status is OperationStatus.STALE:
        return (
            paragraph(f"The same was proposed again as {number}, for the ticket as it is now."),
        )
    if after.editor is None:
        return (paragraph(f"The agent has made a newer proposal, {number}. Decide on its card."),)
    return (
        paragraph(
            f"Superseded by {number}, edited by ",
            person(after.editor, record.tenant_id),
            ". Decide on its card.",
        ),
    )


def _opening(record: OperationRecord) -> tuple[Piece, ...]:
    previous = record.previous
    assert previous is not None
    number = operation_label(previous.number)
    if previous.status is OperationStatus.STALE:
        asked = record.asked_again_by
        by: tuple[Piece, ...] = (Words(" by "), *people(asked, record.tenant_id)) if asked else ()
        after = Words(f", for {number} was out of date. {_VOID}")
        return (Words("Proposed again", bold=True), *by, after)
    if record.editor is None:
        return (Words(f"A newer proposal than {number}. ", bold=True), Words(_VOID))
    who = person(record.editor, record.tenant_id)
    return (Words("Edited by ", bold=True), who, Words(f", in the place of {number}. {_VOID}"))
