"""What an agent is told in the thread of its request, for people and for programs. Pure.

Nobody is mentioned, or two programs could call each other for ever. What the agent or a person
wrote stands in literal text alone; for programs there are ids and codes, and nothing else, since
everybody in the workspace may read them.
"""

from __future__ import annotations

from collections.abc import Mapping

from bot.card_parts import Item, Words, excerpt, paragraph
from bot.reason_text import sentence
from bot.state_text import operation_state, run_state
from executor.domain.ids import operation_label, run_label
from executor.domain.operation import OperationStatus
from executor.domain.payloads import JsonValue
from executor.domain.run import ENDED
from executor.domain.transition import Reason, Refused
from executor.engine.card_record import CardRecord, RunRecord
from executor.engine.request_record import RequestedOperation, RequestRecord

RESULT_EVENT = "signoff_result"
"""The type of the metadata that tells programs what came of a request."""

_LONGEST_PROBLEM = 1_200
_LONGEST_NOTE = 3_000
_TOLD_HERE = "What comes of it is told here."

_SENTENCES: Mapping[Reason, str] = {
    Reason.ARGUMENTS_INVALID: "The request cannot be read. Correct it and ask again:",
    Reason.CONTENT_INVALID: "The email cannot be sent as it is. Correct it and ask again:",
    Reason.DESK_UNAVAILABLE: "The ticket desk could not be read. Ask again later.",
    Reason.VERSION_CHANGED: (
        "The ticket does not stand at the version that was named. Read it again, and then ask for "
        "its version of now:"
    ),
}
_SAFE_DETAIL = frozenset({"missing", "is"})


def request_items(record: RequestRecord) -> tuple[Item, ...]:
    """Say what a request has come to at once, and where it stands."""
    if record.refused is not None:
        return _refused(record, record.refused)
    before = "This was asked for before: " if record.again else ""
    operation, run = record.operation, record.run
    if operation is not None and run is None:
        return _answered(record, operation)
    if operation is not None:
        if operation.status is OperationStatus.AWAITING:
            said = (
                f"{operation.label} waits for approval. Nothing is done before a person has "
                f"approved it. {_TOLD_HERE}"
            )
            return (_opening(record, f"{before}{said}"),)
        return (_opening(record, before, _stands(operation)), *_note(operation))
    assert run is not None, "what was not refused or answered has a run"
    stands = f"{run_label(run.number)} is {run_state(run.status)}."
    after = "" if run.status in ENDED else f" {_TOLD_HERE}"
    return (_opening(record, f"{before}{stands}{after}"),)


def request_text(record: RequestRecord) -> str:
    """Say in one line what the answer is, where blocks cannot be shown."""
    if record.refused is not None:
        return "Request: refused"
    if record.operation is not None:
        return f"Request: {record.operation.label}: {operation_state(record.operation.status)}"
    assert record.run is not None, "what was not refused or answered has a run"
    return f"Request: {run_label(record.run.number)}: {run_state(record.run.status)}"


def end_items(record: RequestRecord, operation: RequestedOperation) -> tuple[Item, ...]:
    """Say how the operation of a request has ended, and why."""
    why = "" if operation.reason is None else f" {sentence(operation.reason, {})}"
    edited = " A person had edited what it says." if operation.edited else ""
    return (_opening(record, _stands(operation), why, edited), *_note(operation))


def result_of(record: CardRecord) -> Mapping[str, JsonValue] | None:
    """Spell for programs what a message tells an agent; ``None``: it is told to nobody as such."""
    request = record.request if isinstance(record, RunRecord) else record
    if not isinstance(request, RequestRecord):
        return None
    key = {} if request.request_key is None else {"request_key": request.request_key}
    return {**key, **_state(request)}


def _state(request: RequestRecord) -> dict[str, JsonValue]:
    refused, operation, run = request.refused, request.operation, request.run
    told: dict[str, JsonValue] = {}
    reason: Reason | None = None
    if run is not None:
        told = {"run": run_label(run.number), "status": run.status.value}
        reason = run.reason
    if operation is not None:
        told |= {"operation": operation.label, "status": operation.status.value}
        reason = operation.reason
    if refused is not None:
        told = {"status": "refused"}
        reason = refused.reason
        versions = ("version", "updated_at") if reason is Reason.VERSION_CHANGED else ()
        told |= {name: refused.detail[name] for name in versions if name in refused.detail}
    return told if reason is None else {**told, "reason": reason.value}


def _opening(record: RequestRecord, *said: str) -> Item:
    name = "Request" if record.request_key is None else f"Request {record.request_key}"
    return paragraph(Words(f"{name}: ", bold=True), *said)


def _stands(operation: RequestedOperation) -> str:
    return f"{operation.label} is {operation_state(operation.status)}."


def _note(operation: RequestedOperation) -> tuple[Item, ...]:
    if not operation.note.strip():
        return ()
    return paragraph("The reviewer's reason:"), excerpt(operation.note, _LONGEST_NOTE)


def _answered(record: RequestRecord, operation: RequestedOperation) -> tuple[Item, ...]:
    if operation.status is OperationStatus.REJECTED:
        said = (
            f"{operation.label} said exactly this and was rejected, so nobody is asked again. Ask "
            "only for what meets the reason."
        )
        return (_opening(record, said), *_note(operation))
    return (_opening(record, f"Nothing is done again. {_stands(operation)}"),)


def _refused(record: RequestRecord, refused: Refused) -> tuple[Item, ...]:
    opening = _opening(record, f"Refused. {_why(refused)}")
    literal = _literal(refused)
    return (opening,) if not literal else (opening, excerpt(literal, _LONGEST_PROBLEM))


def _why(refused: Refused) -> str:
    detail = refused.detail
    match refused.reason:
        case Reason.ALREADY_STARTED:
            name = _label(detail.get("run"), "run") or "Something else"
            return f"{name} was asked for under this key. Ask for another thing under another key."
        case Reason.CONFLICTS_WITH:
            name = _label(detail.get("operation"), "op") or "Another proposal"
            return f"{name} wants something else for this ticket. Ask again when it is decided."
        case Reason.QUEUE_FULL if "in_vain" in detail:
            return (
                "Too many requests of this agent came to nothing. None is taken up or answered "
                "until an hour has passed without so many."
            )
        case Reason.QUEUE_FULL if "queued" in detail:
            return (
                "As many runs of this workspace wait for a place as may. Nothing was started. Ask "
                "again later, under the same key."
            )
        case Reason.QUEUE_FULL:
            return "This agent has too much under way. Ask again when some of it has ended."
        case reason:
            known = {name: detail[name] for name in _SAFE_DETAIL if name in detail}
            return _SENTENCES.get(reason) or sentence(reason, known)


def _literal(refused: Refused) -> str:
    """Spell what has to be corrected; the agent's own words may be in it."""
    detail = refused.detail
    match refused.reason:
        case Reason.ARGUMENTS_INVALID:
            return str(detail.get("problem", ""))
        case Reason.CONTENT_INVALID:
            return f"{detail.get('field')}: {detail.get('problem')}. {detail.get('remedy')}"
        case Reason.VERSION_CHANGED:
            return str(detail.get("updated_at", detail.get("version", "")))
        case _:
            return ""


def _label(number: JsonValue, kind: str) -> str | None:
    if isinstance(number, bool) or not isinstance(number, int):
        return None
    return run_label(number) if kind == "run" else operation_label(number)
