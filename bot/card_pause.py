"""What a paused run says: at which limit, how that stands, and what would let it go on. Pure."""

from __future__ import annotations

from bot.card_parts import Item, Piece, Words, paragraph
from bot.typed_money import dollars
from executor.domain.budget import Account
from executor.domain.charge_name import charge_label
from executor.domain.ids import operation_label
from executor.domain.operation import UNOPENED, OperationStatus
from executor.domain.raising import Scope
from executor.engine.pause_record import PauseRecord

_NOT_RAISED = {
    OperationStatus.REJECTED: "Somebody said no to a higher limit.",
    OperationStatus.EXPIRED: "Nobody decided in time about a higher limit.",
}


def pause_items(pause: PauseRecord | None) -> tuple[Item, ...]:
    """Tell everything about a pause; empty where there is none."""
    if pause is None:
        return ()
    whose = "this run's own limit" if pause.scope is Scope.RUN else "today's limit for all runs"
    told: list[Piece | str] = [
        Words(f"Paused at {whose}. ", bold=True),
        f"{_stands(pause.account)} The next call may cost up to {dollars(pause.needed_microusd)}.",
    ]
    return (paragraph(*told), paragraph(*_ways_on(pause)), *_unknown(pause))


def _stands(account: Account) -> str:
    held = f", {dollars(account.held_microusd)} is held" if account.held_microusd else ""
    return f"{dollars(account.spent_microusd)} of {dollars(account.limit_microusd)} is spent{held}."


def _ways_on(pause: PauseRecord) -> list[Piece | str]:
    told: list[Piece | str] = []
    if pause.asked is not None and pause.asked[1] in UNOPENED:
        told.append(f"{operation_label(pause.asked[0])} asks for a higher limit. ")
    elif pause.not_raised is not None:
        told.append(f"{_NOT_RAISED.get(pause.not_raised, 'The limit was not raised.')} ")
    elif pause.asked is None:
        told.append("The policy allows no higher limit. ")
    fits_a_day = pause.needed_microusd <= pause.account.limit_microusd
    if pause.renews_at is not None and fits_a_day:
        here = pause.renews_at.astimezone(pause.zone).strftime("%Y-%m-%d %H:%M")
        told.append(f"At {here} ({pause.zone.key}) the next day's money lets it go on by itself.")
    elif pause.asked is not None:
        told.append("It goes on by itself as soon as there is room.")
    elif pause.renews_at is not None:
        told.append("A whole day's limit is less than that: another policy has to allow more.")
    told.append(" What already waits for approval can still be decided.")
    return told


def _unknown(pause: PauseRecord) -> tuple[Item, ...]:
    if not pause.account.unknown_microusd:
        return ()
    named = ", ".join(
        f"{charge_label(one.id)} ({dollars(one.amount_microusd)})" for one in pause.unknown
    )
    example = charge_label(pause.unknown[0].id) if pause.unknown else "ch_…"
    return (
        paragraph(
            f"{dollars(pause.account.unknown_microusd)} of what is held is for calls of which "
            f"nobody knows what they cost: {named}. Whoever finds out frees what they did not cost "
            f"with /signoff budget settle {example} 0.0123 invoice 4711.",
        ),
    )
