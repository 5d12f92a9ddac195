"""A person's word about what no machine can find out, and what it can come to.

The word binds the attempt that the person was shown: about a later one it says nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from executor.domain.ids import AttemptId, OperationId, PrincipalId, TenantId
from executor.domain.operation import OperationStatus
from executor.domain.payloads import JsonObject
from executor.domain.transition import NoChange, Refused
from executor.engine.click import NotConfirmed
from executor.store.operations import OperationKey


class Said(StrEnum):
    """What a person can say about something that may have been sent."""

    SENT = "sent"
    NOT_SENT = "not_sent"
    SEND_AGAIN = "send_again"
    LEAVE = "leave"


DENIES = frozenset({Said.NOT_SENT.value, Said.SEND_AGAIN.value})
"""Words that say that it was not sent."""

SAID, SAID_BY = "said", "said_by"
"""Where an attempt's evidence keeps the word, and whose it was."""

WORD_GIVEN = "word_given"
WORD_REFUSED = "word_refused"
"""The journal's notes about words."""


@dataclass(frozen=True, slots=True)
class Word:
    """What one person says; ``attempt_id`` names the newest attempt that the person was shown.

    ``request_hash`` is that of the signed request; an operator's word has none, and neither a
    channel nor a message.
    """

    tenant_id: TenantId
    operation_id: OperationId
    attempt_id: AttemptId
    said: Said
    principal: PrincipalId
    note: str
    channel: str = ""
    message_ts: str = ""
    request_hash: bytes | None = None
    user_id: str = ""

    @property
    def key(self) -> OperationKey:
        """The operation that the word is about."""
        return self.tenant_id, self.operation_id


@dataclass(frozen=True, slots=True)
class Given:
    """The word is stored, and this is where the operation stands then."""

    said: Said
    status: OperationStatus


WordResult = Given | NoChange | Refused | NotConfirmed


def answer(result: WordResult, operation: int | None) -> JsonObject | None:
    """Spell the private answer as it is queued; ``None`` where there is nothing new to say."""
    match result:
        case Given():
            return {"kind": "word_given", "said": result.said.value, "operation": operation}
        case Refused():
            return {
                "kind": "refused",
                "reason": result.reason.value,
                "detail": result.detail,
                "operation": operation,
            }
        case NoChange() | NotConfirmed():
            return None
        case _:
            assert_never(result)
