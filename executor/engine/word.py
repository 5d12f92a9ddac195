"""A person's word about what no machine can find out, and what it can come to.

The word binds the attempt that the person was shown: about a later one it says nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from executor.domain.effect import EffectKind
from executor.domain.ids import AttemptId, OperationId, PrincipalId, TenantId
from executor.domain.operation import OperationStatus
from executor.domain.payloads import JsonObject
from executor.domain.transition import NoChange, Refused
from executor.engine.click import NotConfirmed, refused_answer, unchanged_answer
from executor.store.operations import OperationKey


class Said(StrEnum):
    """What a person can say about something that may have been sent."""

    SENT = "sent"
    NOT_SENT = "not_sent"
    SEND_AGAIN = "send_again"
    LEAVE = "leave"


DENIES = frozenset({Said.NOT_SENT.value, Said.SEND_AGAIN.value})
"""Words that say that it was not sent."""

SAID, SAID_BY, NOTE = "said", "said_by", "note"
"""Where an attempt's evidence keeps the word, whose it was, and what that person added."""

WORD_GIVEN = "word_given"
WORD_REFUSED = "word_refused"
"""The journal's notes about words."""


@dataclass(frozen=True, slots=True)
class Word:
    """What one person says; ``attempt_id`` names the newest attempt that the person was shown.

    ``request_hash`` is that of the signed request; an operator's word has none, and neither a
    channel nor a message. With ``only_asks`` nothing is said yet: the person wants the form in
    which it is said, and is told now if it could not count.
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
    only_asks: bool = False

    @property
    def key(self) -> OperationKey:
        """The operation that the word is about."""
        return self.tenant_id, self.operation_id


@dataclass(frozen=True, slots=True)
class Given:
    """The word is stored, and this is where the operation stands then.

    ``effect`` is the kind of what it is about. ``still_needed`` counts the people who have to say
    the same before it is sent again.
    """

    said: Said
    status: OperationStatus
    effect: EffectKind
    still_needed: int = 0


@dataclass(frozen=True, slots=True)
class MayBeGiven:
    """Nothing is stored: the word that was asked about would count now."""


WordResult = Given | MayBeGiven | NoChange | Refused | NotConfirmed


def answer(result: WordResult, operation: int | None) -> JsonObject | None:
    """Spell the private answer as it is queued; ``None`` where there is nothing new to say."""
    match result:
        case Given():
            return {
                "kind": "word_given",
                "said": result.said.value,
                "effect": result.effect.value,
                "still_needed": result.still_needed,
                "operation": operation,
            }
        case Refused():
            return refused_answer(result, operation)
        case NoChange(reason=reason) if reason is not None:
            return unchanged_answer(reason, operation)
        case NoChange() | NotConfirmed() | MayBeGiven():
            return None
        case _:
            assert_never(result)
