"""What a proposal came to, as the model reads it: a status that is never between two truths."""

from __future__ import annotations

import json
from typing import assert_never

from executor.domain.ids import operation_label
from executor.domain.intent import CALL_TOOL
from executor.domain.operation import STOPS_RUN, OperationStatus
from executor.domain.others_words import bounded
from executor.domain.payloads import JsonObject, JsonValue
from executor.domain.replay import AGAIN
from executor.domain.transition import Reason, Refused
from executor.engine.called_result import called_result
from executor.store.proposals import ProposalRow

LONGEST_NOTE = 4_000
"""Characters of a reviewer's reason that a model gets to read."""

NOTE_LEFT = "note_left"
"""Stands in an operation's detail where nothing but a note on the ticket has come of it."""


def refusal_result(refused: Refused) -> JsonObject:
    """Spell a refusal at T1: the reason, what the model should do, and the fields it needs."""
    return {"error": refused.reason.value, "message": _remedy(refused), **refused.detail}


def proposal_result(
    status: OperationStatus, number: int, reason: Reason | None, detail: JsonObject
) -> JsonObject:
    """Spell what became of an operation, once nothing about it is pending."""
    result: dict[str, JsonValue] = {
        "operation": operation_label(number),
        "status": status.value,
        "message": _outcome(status, reason, detail),
    }
    if reason is not None:
        result["reason"] = reason.value
    note = detail.get("note")
    if isinstance(note, str) and status is OperationStatus.REJECTED:
        result.update(bounded("rejected_because", note, LONGEST_NOTE))
    if detail.get(STOPS_RUN):
        result[STOPS_RUN] = True
    return result


def result_of(proposal: ProposalRow) -> JsonObject:
    """Spell what became of what a tool call proposed; a person may have written other words."""
    if proposal.kind == CALL_TOOL:
        return called_result(proposal)
    result = proposal_result(proposal.status, proposal.number, proposal.reason, proposal.detail)
    if proposal.editor is None:
        return result
    frozen = json.loads(proposal.intent)
    email = next(part["email"] for part in frozen["effects"] if "email" in part)
    return {
        **result,
        "message": f"A person edited your proposal; see final. {result['message']}",
        "edited": True,
        "final": {
            "to": [box["address"] for box in email["to"]],
            "cc": [box["address"] for box in email["cc"]],
            "subject": email["subject"],
            "body": email["text"],
        },
    }


def rejected_before(number: int, reason: Reason | None, detail: JsonObject) -> JsonObject:
    """Answer a proposal that was rejected word for word, without asking people again."""
    return {
        **proposal_result(OperationStatus.REJECTED, number, reason, detail),
        "message": (
            "A reviewer said no to exactly this before, so nobody was asked again; nothing was "
            "done. Propose only what meets the reason."
        ),
        AGAIN: True,
    }


def _outcome(status: OperationStatus, reason: Reason | None, detail: JsonObject) -> str:
    match status:
        case OperationStatus.SUCCEEDED if reason is Reason.ALREADY_DONE:
            return (
                "This closing was done before, by the operation named here, with its own email. "
                "Nothing of this proposal was done or sent."
            )
        case OperationStatus.SUCCEEDED:
            return "Done: the ticket is closed and the email was sent."
        case OperationStatus.REJECTED:
            return "A reviewer said no; nothing was done. Propose again only what meets the reason."
        case OperationStatus.EXPIRED:
            return "Nobody decided in time; it expired and was not executed. Nothing was done."
        case OperationStatus.SUPERSEDED:
            return "A later proposal took its place; nothing was done."
        case OperationStatus.WITHDRAWN if reason is Reason.WITHDRAWN_BY_REQUESTER:
            return "It was withdrawn by the requester; nothing was done. Do not propose it again."
        case OperationStatus.WITHDRAWN if reason is Reason.WITHDRAWN_BY_OPERATOR:
            return "It was withdrawn by an operator; nothing was done. Do not propose it again."
        case OperationStatus.WITHDRAWN:
            return "It was withdrawn before anything was done. You may propose anew."
        case OperationStatus.STALE:
            return "The world had moved on, so nothing was done. Read the ticket again."
        case OperationStatus.FAILED if detail.get(NOTE_LEFT):
            return "It failed: the ticket is not closed and no email was sent; a note stands there."
        case OperationStatus.FAILED:
            return "It failed, and it is proved that nothing was done."
        case OperationStatus.PARTIAL if reason is Reason.SAID_NOT_SENT:
            return "The ticket is closed, but a person found out that the email was not sent."
        case OperationStatus.PARTIAL:
            return "The ticket is closed, but the email was proved not sent. People were told."
        case OperationStatus.UNKNOWN:
            return "It may have been sent; a person has to find out. Do not propose it again."
        case OperationStatus.COMPENSATED:
            return "It was undone: the ticket is open again."
        case OperationStatus.LEFT:
            return "It was left as it is: the ticket is closed, no email was sent."
        case OperationStatus.AWAITING | OperationStatus.APPROVED | OperationStatus.EXECUTING:
            return "It is not decided yet."
        case _:
            assert_never(status)


_REMEDIES: dict[Reason, str] = {
    Reason.DESK_UNAVAILABLE: "The ticket desk does not answer. Read the ticket and propose again.",
    Reason.DESK_NOTIFIES: (
        "The ticket desk itself mails the customer about a close, and the policy does not allow "
        "two mails. Do not propose it again: a person has to change one of both."
    ),
    Reason.TICKET_UNKNOWN: "There is no such ticket. Search for it.",
    Reason.TICKET_CLOSED: "The ticket is closed already. There is nothing to close.",
    Reason.VERSION_NOT_READ: "Read the ticket in this run before you propose to close it.",
    Reason.VERSION_CHANGED: "The ticket changed since you read it. Read it again.",
    Reason.CONTENT_INVALID: "The content cannot be sent as it is.",
    Reason.NOT_PERMITTED: "The person who asked for this run may not ask for this.",
    Reason.CONFLICTS_WITH: "Another proposal for this ticket is under way. Do not propose now.",
}


def _remedy(refused: Refused) -> str:
    remedy = _REMEDIES.get(refused.reason, "It was refused.")
    if refused.reason is Reason.CONTENT_INVALID:
        parts = (refused.detail.get(name) for name in ("field", "problem", "remedy"))
        field, problem, advice = (str(part or "") for part in parts)
        return f"{field}: {problem}. {advice}"
    return remedy
