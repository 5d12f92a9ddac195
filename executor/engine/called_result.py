"""What the call of a tool came to, as the model reads it; what the tool says is words of others."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import assert_never

from executor.domain.ids import operation_label
from executor.domain.operation import STOPS_RUN, OperationStatus
from executor.domain.others_words import bounded
from executor.domain.payloads import JsonObject, JsonValue
from executor.domain.transition import Reason
from executor.engine.outside_tools import others_result
from executor.store.proposals import ProposalRow

LONGEST_NOTE = 4_000
"""Characters of a reviewer's reason that a model gets to read."""

_BY_PERSON: Mapping[Reason, str] = {
    Reason.WITHDRAWN_BY_REQUESTER: (
        "It was withdrawn by the requester; it was not called. Do not propose it again."
    ),
    Reason.WITHDRAWN_BY_OPERATOR: (
        "It was withdrawn by an operator; it was not called. Do not propose it again."
    ),
    Reason.SAID_NOT_SENT: "A person found out that nothing was done.",
}


def called_result(proposal: ProposalRow) -> JsonObject:
    """Spell what became of the call, once nothing about it is pending."""
    call = json.loads(proposal.intent)["tool_call"]
    result: dict[str, JsonValue] = {
        "operation": operation_label(proposal.number),
        "status": proposal.status.value,
        "server": call["server"],
        "tool": call["tool"],
        "message": _BY_PERSON.get(proposal.reason or Reason.COMPLETED, _outcome(proposal.status)),
    }
    if proposal.reason is not None:
        result["reason"] = proposal.reason.value
    note = proposal.detail.get("note")
    if isinstance(note, str) and proposal.status is OperationStatus.REJECTED:
        result.update(bounded("rejected_because", note, LONGEST_NOTE))
    if proposal.detail.get(STOPS_RUN):
        result[STOPS_RUN] = True
    return {**result, **_said(proposal.evidence)}


def _said(evidence: JsonObject) -> JsonObject:
    """Give what the tool returned, or what it or its server said instead."""
    returned, said = evidence.get("result"), evidence.get("answer")
    if isinstance(returned, Mapping):
        return others_result(returned)
    return others_result({"text": said}) if isinstance(said, str) and said else {}


def _outcome(status: OperationStatus) -> str:
    match status:
        case OperationStatus.SUCCEEDED:
            return "Done: the tool was called."
        case OperationStatus.REJECTED:
            return "A reviewer said no; it was not called. Propose only what meets the reason."
        case OperationStatus.EXPIRED:
            return "Nobody decided in time; it expired and was not called."
        case OperationStatus.SUPERSEDED:
            return "A later proposal took its place; it was not called."
        case OperationStatus.WITHDRAWN:
            return "It was withdrawn before it was called. You may propose anew."
        case OperationStatus.STALE:
            return "What it was approved under has changed, so it was not called."
        case OperationStatus.FAILED:
            return "It failed, and it is proved that the tool did nothing."
        case OperationStatus.UNKNOWN:
            return "It may have been done; a person has to find out. Do not propose it again."
        case OperationStatus.PARTIAL | OperationStatus.COMPENSATED | OperationStatus.LEFT:
            return "A part of it was done."
        case OperationStatus.AWAITING | OperationStatus.APPROVED | OperationStatus.EXECUTING:
            return "It is not decided yet."
        case _:
            assert_never(status)
