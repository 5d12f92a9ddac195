"""What people ask for that puts another operation in the place of one, and what it can come to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never
from uuid import UUID

from executor.domain.closing_draft import ClosingDraft
from executor.domain.ids import ApprovalId, OperationId, PrincipalId, TenantId
from executor.domain.payloads import JsonObject
from executor.domain.transition import NoChange, Refused
from executor.engine.click import NotConfirmed, refused_answer, unchanged_answer
from executor.store.operations import OperationKey


@dataclass(frozen=True, slots=True)
class Pressed:
    """One person's press of a button, or what they submitted in the modal that it opened.

    What it names, and where it was, is as in ``Click``.
    """

    tenant_id: TenantId
    operation_id: OperationId
    approval_id: ApprovalId
    digest: bytes
    content_revision: int
    nonce: UUID
    principal: PrincipalId
    channel: str
    message_ts: str
    request_hash: bytes
    user_id: str

    @property
    def key(self) -> OperationKey:
        """The operation that was shown."""
        return self.tenant_id, self.operation_id


@dataclass(frozen=True, slots=True)
class Edit(Pressed):
    """What the email shall say instead; without a ``draft`` the person only asks for the form."""

    draft: ClosingDraft | None = None


@dataclass(frozen=True, slots=True)
class AskAgain(Pressed):
    """The same shall be proposed again, for the ticket as it is now."""


@dataclass(frozen=True, slots=True)
class Replaced:
    """An operation with this number and revision stands in the place of the one that was shown.

    ``before``: it had been put there by an earlier press, and this one changed nothing.
    """

    number: int
    content_revision: int
    before: bool = False


@dataclass(frozen=True, slots=True)
class MayBeEdited:
    """Nothing is stored: an edit would count now."""


EditResult = Replaced | MayBeEdited | NoChange | Refused | NotConfirmed
AskAgainResult = Replaced | NoChange | Refused | NotConfirmed


def answer(asked: Edit | AskAgain, result: EditResult, operation: int | None) -> JsonObject | None:
    """Spell the private answer as it is queued; ``None`` where there is nothing new to say."""
    match result:
        case Replaced():
            return {
                "kind": "edited" if isinstance(asked, Edit) else "proposed_again",
                "operation": operation,
                "successor": result.number,
                "before": result.before,
            }
        case Refused(detail=detail) if "problems" in detail:
            # They stand in the form, where they can be corrected.
            return None
        case Refused():
            return refused_answer(result, operation)
        case NoChange(reason=reason) if reason is not None:
            return unchanged_answer(reason, operation)
        case NoChange() | NotConfirmed() | MayBeEdited():
            return None
        case _:
            assert_never(result)
