"""Whether something may be sent once more at a person's word: what the opening of a repeat asks.

Asked when a card is drawn, so that the button is there only while it would count, and again under
locks when it is clicked; the opening asks all of it once more. How many people have to say so is
another matter: see ``repeat_approval``. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

from executor.domain.run import RunStatus
from executor.domain.ticket import BUILTIN_DESK, Ticket
from executor.domain.transition import Reason, Refused
from executor.engine.revalidation import run_objection, target_objection


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What the answer rests on, as it is now.

    ``requester`` is why whoever asked may not any more. ``closed_version`` is the version that our
    own close has produced. ``already_done`` says that another operation of the same intent has
    succeeded. An outside ticket is looked at when the repeat is opened, and not before; without a
    ``desk`` it is about no ticket.
    """

    requester: Refused | None
    run: RunStatus | None
    desk: str | None
    ticket: Ticket | None
    ticket_id: str | None
    closed_version: int | None
    already_done: bool


def objection_to_repeating(now: Circumstances) -> Refused | None:
    """Say why nobody may have it sent again, or ``None``; who asks is not looked at here."""
    return (
        run_objection(now.run, first=False)
        or now.requester
        or _target_objection(now)
        or (Refused(Reason.ALREADY_DONE) if now.already_done else None)
    )


def _target_objection(now: Circumstances) -> Refused | None:
    if now.desk != BUILTIN_DESK:
        return None
    assert now.ticket_id is not None, "only a ticket has a desk"
    return target_objection(now.ticket, now.ticket_id, now.closed_version, first=False)
