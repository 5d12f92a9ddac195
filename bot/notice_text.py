"""The sentence for a stored private answer. Pure; its words are those of the replies."""

from __future__ import annotations

from collections.abc import Sequence

from bot import replies, vote_replies
from bot.doubt_replies import word_given
from bot.reason_text import sentence
from bot.stopping_replies import asked, run_goes_on, run_stopped, withdrawn
from executor.domain.approval import Vote
from executor.domain.ids import PrincipalId
from executor.domain.intent import RAISE_BUDGET, REOPEN_TICKET
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
            missing = _number(answer, "still_needed")
            vote = Vote(str(answer.get("vote")))
            if answer.get("about") == REOPEN_TICKET:
                return vote_replies.recorded_reopening(vote, operation, still_needed=missing)
            if answer.get("about") == RAISE_BUDGET:
                return vote_replies.recorded_raise(vote, operation, still_needed=missing)
            if "stopped" in answer:
                stopped = run_stopped(_number(answer, "stopped"), _numbers(answer, "sending"))
                return f"{vote_replies.recorded_alone(vote, operation)} {stopped}"
            return vote_replies.recorded(vote, operation, still_needed=missing)
        case "asked" if operation is not None:
            return asked(operation)
        case "withdrawn" if operation is not None:
            return withdrawn(operation)
        case "word_given" if operation is not None:
            return word_given(
                Said(str(answer.get("said"))),
                operation,
                str(answer.get("effect")),
                still_needed=_number(answer, "still_needed"),
            )
        case "edited" if operation is not None:
            return replies.edited(operation, _number(answer, "successor"))
        case "proposed_again" if operation is not None:
            before = answer.get("before") is True
            successor = _number(answer, "successor")
            return replies.proposed_again(operation, successor, before=before)
        case "refused":
            detail = answer.get("detail")
            refused = refusal_text(
                Reason(str(answer.get("reason"))),
                detail if isinstance(detail, dict) else {},
                operation,
            )
            return f"{refused}{_goes_on(answer)}"
        case "unchanged":
            said = sentence(Reason(str(answer.get("reason"))), {})
            return f"{said}{_goes_on(answer)}"
        case _:
            return replies.outdated_card()


def refusal_text(reason: Reason, detail: JsonObject, operation: int | None = None) -> str:
    """Say why something was refused, and who was first where that is why."""
    by = detail.get("by")
    deciders = [b for b in by if isinstance(b, str)] if isinstance(by, Sequence) else []
    vote = _DECIDED.get(reason)
    if vote is not None and operation is not None and deciders and not isinstance(by, str):
        # The last of them was the one that decided.
        return vote_replies.already_decided(vote, operation, PrincipalId(deciders[-1]))
    return sentence(reason, {k: v for k, v in detail.items() if k != "by"})


def _goes_on(answer: JsonObject) -> str:
    """Say of a run that the click would have stopped that it was not."""
    return f" {run_goes_on(_number(answer, 'goes_on'))}" if "goes_on" in answer else ""


def _numbers(answer: JsonObject, key: str) -> list[int]:
    values = answer.get(key)
    listed = values if isinstance(values, Sequence) and not isinstance(values, str) else ()
    return [value for value in listed if isinstance(value, int)]


def _number(answer: JsonObject, key: str) -> int:
    value = answer.get(key)
    return value if isinstance(value, int) else 0
