"""Reminders: what a card says of them beforehand, and the message that one is. Pure."""

from __future__ import annotations

from datetime import timedelta

from bot.card_parts import Item, Person, Piece, UserGroup, Words, moment, paragraph
from executor.domain.ids import operation_label
from executor.domain.nudge import NudgeKind, schedule
from executor.domain.policy import WhenTimeIsOver
from executor.engine.card_record import OperationRecord
from executor.engine.nudge_record import NudgeRecord

_MOST_NAMED = 20
_GROUP = "group:"


def clock_of(record: OperationRecord) -> tuple[Piece | str, ...]:
    """Say on a waiting card what happens until the time to decide is over, and then."""
    approval = record.approval
    pieces: list[Piece | str] = []
    if approval.decide_by is not None:
        shown = approval.decide_by - timedelta(seconds=approval.decide_within_seconds)
        planned = schedule(approval.terms, shown)
        reminders = [nudge.due_at for nudge in planned if nudge.kind is NudgeKind.REMINDER]
        if reminders:
            pieces.append("Reminders at ")
            for number, at in enumerate(reminders):
                pieces += [", " if number else "", moment(at)]
            pieces.append(". ")
        for nudge in planned:
            if nudge.kind is NudgeKind.ESCALATION:
                pieces += ["If nobody has decided by ", moment(nudge.due_at), ", also "]
                pieces += _named(approval.terms.escalate_to)
                pieces.append(" will be told. ")
    pieces.append("After that it expires: nothing is done")
    if record.raising is not None:
        return (*pieces, ".")
    stops = approval.terms.when_time_is_over is WhenTimeIsOver.STOP_RUN
    pieces.append(", and the run is stopped." if stops else ", and the agent is told so.")
    return tuple(pieces)


def nudge_items(record: NudgeRecord) -> tuple[Item, ...]:
    """Show a reminder; once somebody has decided it says so and asks for nothing any more."""
    name = operation_label(record.operation)
    if not record.waits:
        return (paragraph(f"{name} does not wait any more. Its card shows what became of it."),)
    whom = _named(record.whom) if record.whom else [Words("Whoever may decide")]
    said = {
        NudgeKind.REMINDER: f": {name} still waits for a decision",
        NudgeKind.ESCALATION: f": nobody has decided {name} yet",
    }[record.kind]
    until: list[Piece | str] = []
    if record.decide_by is not None:
        until = [", and expires at ", moment(record.decide_by)]
    return (paragraph(*whom, said, *until, ". The card above shows all of it."),)


def nudge_text(record: NudgeRecord) -> str:
    """Say in one line what the message is, where blocks cannot be shown."""
    return f"{operation_label(record.operation)} {'waits' if record.waits else 'waited'}"


def _named(whom: tuple[str, ...]) -> list[Piece | str]:
    """Name people so that Slack tells them."""
    pieces: list[Piece | str] = []
    for number, who in enumerate(whom[:_MOST_NAMED]):
        group = who.removeprefix(_GROUP)
        pieces += [", "] * bool(number)
        pieces.append(Person(who) if group == who else UserGroup(group))
    left_out = len(whom) - _MOST_NAMED
    return [*pieces, f" and {left_out} more"] if left_out > 0 else pieces
