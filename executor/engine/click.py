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
    the signed request. ``notice`` is what private answers need: the channel and the Slack user id.
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

    @property
    def key(self) -> OperationKey:
        """The operation that was clicked."""
        return self.tenant_id, self.operation_id


@dataclass(frozen=True, slots=True)
class Recorded:
    """The vote is stored; ``granted`` or ``denied`` say whether it decided the approval."""

    vote: Vote
    votes: int
    quorum: int
    decided: bool


@dataclass(frozen=True, slots=True)
class NotConfirmed:
    """COMMIT was sent and its answer lost, and reading back did not help: the card will show it."""


ClickResult = Recorded | NoChange | Refused | NotConfirmed


def answer(
    result: ClickResult, operation: int | None, kind: str = CLOSE_TICKET
) -> JsonObject | None:
    """Spell the private answer as it is queued; the bot makes the sentence of it.

    ``kind`` is what the operation would do.
    ``None`` where nothing is known to have been stored, so that nothing can be queued with it.
    """
    match result:
        case Recorded():
            return {
                "kind": "recorded",
                "vote": result.vote.value,
                "votes": result.votes,
                "quorum": result.quorum,
                "operation": operation,
                "about": kind,
            }
        case Refused():
            return {
                "kind": "refused",
                "reason": result.reason.value,
                "detail": result.detail,
                "operation": operation,
            }
        case NoChange():
            reason = result.reason or Reason.ALREADY_VOTED
            return {"kind": "unchanged", "reason": reason.value, "operation": operation}
        case NotConfirmed():
            return None
        case _:
            assert_never(result)
