"""A click as the bot hands it over, and what it can come to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never
from uuid import UUID

from executor.domain.approval import Vote
from executor.domain.ids import ApprovalId, OperationId, PrincipalId, TenantId
from executor.domain.intent import CLOSE_TICKET
from executor.domain.payloads import JsonObject
from executor.domain.transition import NoChange, Reason, Refused
from executor.store.operations import OperationKey


@dataclass(frozen=True, slots=True)
class Click:
    """One person's click. ``digest``, ``content_revision`` and ``nonce`` name what was shown.

    ``channel`` and ``message_ts`` are where the click happened; ``request_hash`` is the SHA-256 of
    the signed request. ``second_factor``: the person proved more than the Slack session with it.
    A rejection that ``stops_run`` ends the operation's run as well. ``modal`` names the modal in
    which it was decided, where it was one.
    """

    tenant_id: TenantId
    operation_id: OperationId
    approval_id: ApprovalId
    digest: bytes
    content_revision: int
    nonce: UUID
    principal: PrincipalId
    vote: Vote
    note: str
    channel: str
    message_ts: str
    request_hash: bytes
    user_id: str
    second_factor: bool = False
    stops_run: bool = False
    modal: UUID | None = None

    @property
    def key(self) -> OperationKey:
        """The operation that was clicked."""
        return self.tenant_id, self.operation_id


@dataclass(frozen=True, slots=True)
class RunStopped:
    """The run that ended with a rejection; ``sending`` numbers what cannot be called back."""

    number: int
    sending: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Recorded:
    """The vote is stored; ``decided`` says whether it decided the approval.

    ``still_needed`` counts the people who have to approve beside those who have. ``stopped`` is the
    run that a rejection has ended.
    """

    vote: Vote
    still_needed: int
    decided: bool
    stopped: RunStopped | None = None


@dataclass(frozen=True, slots=True)
class NotConfirmed:
    """COMMIT was sent and its answer lost, and reading back did not help: the card will show it."""


ClickResult = Recorded | NoChange | Refused | NotConfirmed


def answer(
    result: ClickResult,
    operation: int | None,
    kind: str = CLOSE_TICKET,
    goes_on: int | None = None,
) -> JsonObject | None:
    """Spell the private answer as it is queued; the bot makes the sentence of it.

    ``kind`` is what the operation would do. ``goes_on`` is the run that the click would have
    stopped and did not. ``None`` where nothing is known to have been stored, so that nothing can be
    queued with it.
    """
    run: JsonObject = {} if goes_on is None else {"goes_on": goes_on}
    match result:
        case Recorded():
            stopped = result.stopped
            return {
                "kind": "recorded",
                "vote": result.vote.value,
                "still_needed": result.still_needed,
                "operation": operation,
                "about": kind,
                **(
                    {}
                    if stopped is None
                    else {"stopped": stopped.number, "sending": list(stopped.sending)}
                ),
            }
        case Refused():
            return {**refused_answer(result, operation), **run}
        case NoChange():
            return {
                **unchanged_answer(result.reason or Reason.ALREADY_VOTED, operation),
                **run,
            }
        case NotConfirmed():
            return None
        case _:
            assert_never(result)


def refused_answer(refused: Refused, operation: int | None) -> JsonObject:
    """Spell a refusal as the private answer of whatever was asked for."""
    return {
        "kind": "refused",
        "reason": refused.reason.value,
        "detail": refused.detail,
        "operation": operation,
    }


def unchanged_answer(reason: Reason, operation: int | None) -> JsonObject:
    """Spell that nothing was changed, and why, as the private answer."""
    return {"kind": "unchanged", "reason": reason.value, "operation": operation}
