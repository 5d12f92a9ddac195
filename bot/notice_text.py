"""The sentence for a stored private answer. Pure; its words are those of the replies."""

from __future__ import annotations

from collections.abc import Sequence

from bot import replies
from bot.doubt_replies import word_given
from bot.reopening_replies import recorded_reopening
from executor.domain.approval import Vote
from executor.domain.ids import PrincipalId
from executor.domain.intent import REOPEN_TICKET
from executor.domain.payloads import JsonObject
from executor.domain.transition import Reason
from executor.engine.word import Said

_DECIDED = {
    Reason.ALREADY_GRANTED: Vote.APPROVE,
    Reason.ALREADY_SENDING: Vote.APPROVE,
    Reason.ALREADY_DENIED: Vote.REJECT,
}


def notice_text(answer: JsonObject) -> str:
    """Say what a click came to; an answer of a kind that this code does not know says little."""
    number = answer.get("operation")
    operation = number if isinstance(number, int) else None
    match answer.get("kind"):
        case "recorded" if operation is not None:
            missing = _number(answer, "quorum") - _number(answer, "votes")
            vote = Vote(str(answer.get("vote")))
            if answer.get("about") == REOPEN_TICKET:
                return recorded_reopening(vote, operation, still_needed=max(0, missing))
            return replies.recorded(vote, operation, still_needed=max(0, missing))
        case "word_given" if operation is not None:
            return word_given(
                Said(str(answer.get("said"))),
                operation,
                str(answer.get("effect")),
                still_needed=_number(answer, "still_needed"),
            )
        case "refused":
            detail = answer.get("detail")
            return refusal_text(
                Reason(str(answer.get("reason"))),
                detail if isinstance(detail, dict) else {},
                operation,
            )
        case "unchanged":
            return replies.sentence(Reason(str(answer.get("reason"))), {})
        case _:
            return replies.outdated_card()


def refusal_text(reason: Reason, detail: JsonObject, operation: int | None = None) -> str:
    """Say why something was refused, and who was first where that is why."""
    by = detail.get("by")
    deciders = [b for b in by if isinstance(b, str)] if isinstance(by, Sequence) else []
    vote = _DECIDED.get(reason)
    if vote is not None and operation is not None and deciders and not isinstance(by, str):
        # The last of them was the one that decided.
        return replies.already_decided(vote, operation, PrincipalId(deciders[-1]))
    return replies.sentence(reason, {k: v for k, v in detail.items() if k != "by"})


def _number(answer: JsonObject, key: str) -> int:
    value = answer.get(key)
    return value if isinstance(value, int) else 0
