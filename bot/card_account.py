"""What a run has come to, in our own words: drawn beside the agent's, which nobody checks. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bot.card_parts import Paragraph, paragraph
from bot.card_progress import WHY_REFUSED, is_ticket
from bot.effect_words import words_for
from bot.state_text import operation_state
from executor.domain.effect import PREPARING, EffectKind, EffectStatus
from executor.domain.ids import operation_label, run_label
from executor.domain.operation import OperationStatus
from executor.domain.run import ENDED, RunStatus
from executor.engine.card_record import RunRecord
from executor.engine.last_account import (
    AccountedOperation,
    NeverProposed,
    Standing,
    last_account,
)

MOST_LINES = 8
"""Lines under one heading; the newest ones."""

_TITLES = {
    Standing.DONE: "Done",
    Standing.IN_PART: "Done in part",
    Standing.NOT_KNOWN: "Not known yet",
    Standing.NOT_DONE: "Not done",
    Standing.ELSEWHERE: "Goes on in another run",
}
_AFTERWARDS = {
    OperationStatus.COMPENSATED: ", then undone",
    OperationStatus.LEFT: ", left as it is",
}
_WITHOUT_TICKET = {
    EffectKind.BUDGET_RAISE: "a higher limit",
    EffectKind.TOOL_CALL: "a call of a tool",
}
_TOUCHED = frozenset({Standing.DONE, Standing.IN_PART, Standing.NOT_KNOWN})


@dataclass(frozen=True, slots=True)
class AccountPart:
    """One heading with what stands under it."""

    title: str
    lines: tuple[Paragraph, ...]


def account_of(record: RunRecord) -> tuple[AccountPart, ...]:
    """Tell what a run has come to; nothing while it goes on."""
    if record.status not in ENDED and record.status is not RunStatus.CANCELLING:
        return ()
    account = last_account(record.accounted, record.progress.steps)
    told = {
        standing: [_line(standing, operation) for operation in account.operations.get(standing, ())]
        for standing in Standing
    }
    told[Standing.NOT_DONE] += [_never(one) for one in account.never_proposed]
    if not any(told[standing] for standing in _TOUCHED):
        told[Standing.DONE] = ["Nothing."]
    return tuple(_part(_TITLES[standing], lines) for standing, lines in told.items() if lines)


def _part(title: str, lines: list[str]) -> AccountPart:
    left_out = len(lines) - MOST_LINES
    earlier = [f"({left_out} earlier)"] if left_out > 0 else []
    return AccountPart(title, tuple(map(paragraph, [*earlier, *lines[-MOST_LINES:]])))


def _line(standing: Standing, operation: AccountedOperation) -> str:
    label = operation_label(operation.number)
    if operation.of_run is not None:
        label += f" of {run_label(operation.of_run)}"
    if standing in (Standing.NOT_DONE, Standing.ELSEWHERE):
        return f"{label}{_about(operation)}: {operation_state(operation.status)}"
    parts = ", ".join(_parts(operation))
    return f"{label}: {parts}{_AFTERWARDS.get(operation.status, '')}"


def _about(operation: AccountedOperation) -> str:
    if operation.ticket:
        return f" ({_ticket(operation.ticket)})"
    named = [_WITHOUT_TICKET[kind] for kind, _ in operation.effects if kind in _WITHOUT_TICKET]
    return f" ({named[0]})" if named else ""


def _parts(operation: AccountedOperation) -> Iterator[str]:
    for kind, status in operation.effects:
        if kind not in PREPARING:
            yield _told(_thing(kind, operation.ticket), words_for(kind.value).done, status)


def _told(thing: str, done: str, status: EffectStatus) -> str:
    match status:
        case EffectStatus.APPLIED:
            return f"{thing} {done}"
        case EffectStatus.DISPATCHED | EffectStatus.UNKNOWN:
            return f"{thing} may have been {done}"
        case EffectStatus.PLANNED | EffectStatus.SKIPPED | EffectStatus.NOT_APPLIED:
            return f"{thing} not {done}"


def _thing(kind: EffectKind, ticket: str) -> str:
    subject = words_for(kind.value).subject.removeprefix("The ")
    thing = subject[:1].lower() + subject[1:]
    return _ticket(ticket) if thing == "ticket" else thing


def _ticket(ticket: str) -> str:
    return f"ticket {ticket}" if is_ticket(ticket) else "a ticket"


def _never(one: NeverProposed) -> str:
    wanted = f"to close {_ticket(one.ticket)}"
    if one.reason is None:
        return f"Did not come to propose {wanted}"
    why = WHY_REFUSED.get(one.reason)
    return f"A proposal {wanted} was refused{'' if why is None else f': {why}'}"
