"""Records in every state a card can show, with hostile text wherever somebody else may write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from executor.domain.compensation import LEFT_BECAUSE
from executor.domain.delivery_event import DeliveryKind
from executor.domain.email import EmailContent, Mailbox
from executor.domain.payloads import JsonObject
from executor.engine.approval_record import ApprovalRecord
from executor.engine.card_record import AttemptRecord, EffectRecord, OperationRecord, RunRecord
from executor.engine.kind_record import ToolCallRecord
from executor.engine.progress_record import ToolStep
from executor.engine.ticket_record import TicketRecord
from executor.engine.word import SAID, SAID_BY
from tests.support.records import U_APP, delivery_record, ticket_change
from tests.support.reopening_records import all_states

MARK = "§§"
"""Stands around all that is hostile, so that it is found wherever it went."""

Spice = Callable[[str], str]
"""Makes the hostile text for one field; the name makes each field's text its own."""

OPERATIONS = {n: r for n, r in all_states().items() if isinstance(r, OperationRecord)}
RUNS = {n: r for n, r in all_states().items() if isinstance(r, RunRecord)}


def spice_of(text: str, long: str | None = None) -> Spice:
    """Mark a text and add the field's name; ``long`` stands in the fields that may be long."""
    lengthy = {"goal", "text", "html", "change", "note", "said", "evidence", "summary", "undone"}

    def spice(field: str) -> str:
        chosen = long if long is not None and field in lengthy else text
        return f"{MARK}{chosen}{MARK}{field}"

    return spice


def poisoned(record: OperationRecord, spice: Spice, *, many: int = 9) -> OperationRecord:
    """Put hostile text into every field that a model, a customer or a provider can write.

    There are ``many`` of everything that a record may hold several of.
    """
    return replace(
        record,
        goal=spice("goal"),
        why=spice("why"),
        policy_version=spice("policy"),
        detail=_detail(record, spice),
        desk_problem=None if record.desk_problem is None else spice("problem"),
        ticket=None if record.ticket is None else _ticket(record.ticket, spice, many),
        tool_call=record.tool_call
        and ToolCallRecord(
            spice("server"),
            spice("tool"),
            {spice(f"name {n}"): [spice("text"), n, None] for n in range(many)},
            record.tool_call.cost_microusd,
        ),
        email=None if record.email is None else hostile_email(spice, many).as_json(),
        effects=tuple(_effect(effect, spice) for effect in record.effects),
        words=tuple(replace(word, note=spice("note")) for word in record.words),
        deliveries=tuple(
            delivery_record(kind, said=spice("said"), recipients=(spice("recipient"),) * many)
            for kind in DeliveryKind
            if record.deliveries
        ),
        doubt=record.doubt
        and replace(
            record.doubt, repeat=record.doubt.repeat and _votes(record.doubt.repeat, spice)
        ),
        approval=_votes(record.approval, spice),
        undoes=record.undoes
        and replace(
            record.undoes,
            to=(spice("recipient"),) * many,
            subject=spice("subject"),
            note=spice("undone"),
        ),
    )


def poisoned_run(record: RunRecord, spice: Spice) -> RunRecord:
    """Put hostile text into what people and the model wrote of a run."""
    steps = tuple(
        replace(step, tool=spice("tool"), ticket=spice("ticket"))
        if isinstance(step, ToolStep)
        else step
        for step in record.progress.steps
    )
    return replace(
        record,
        goal=spice("goal"),
        summary=spice("summary") if record.summary else "",
        progress=replace(record.progress, steps=steps),
    )


def hostile_email(spice: Spice, many: int) -> EmailContent:
    """An email of which every field is hostile."""

    def box(field: str) -> Mailbox:
        return Mailbox(spice(f"{field} name"), spice(field), spice(f"{field} in ASCII"))

    return EmailContent(
        sender=box("from"),
        to=tuple(box(f"to {n}") for n in range(many)),
        cc=(box("cc"),),
        bcc=(box("bcc"),),
        reply_to=box("reply-to"),
        subject=spice("subject"),
        text=spice("text"),
        html=spice("html"),
        message_id=spice("message id"),
        headers=((spice("header"), spice("value")), ("X-B", spice("other value"))),
    )


def _detail(record: OperationRecord, spice: Spice) -> JsonObject:
    told: dict[str, Any] = {**record.detail, "note": spice("note"), "is": spice("is")}
    if LEFT_BECAUSE not in told:
        told[LEFT_BECAUSE] = {"reason": spice("reason")}
    return told


def _ticket(ticket: TicketRecord, spice: Spice, many: int) -> TicketRecord:
    changed = tuple(
        ticket_change(n, author=spice("author"), body=spice("change")) for n in range(1, many + 1)
    )
    return replace(
        ticket,
        id=spice("ticket"),
        desk=spice("desk"),
        subject=spice("ticket subject"),
        recent_changes=changed,
        changes_since=changed if ticket.changes_since else (),
    )


def _effect(effect: EffectRecord, spice: Spice) -> EffectRecord:
    return replace(
        effect,
        provider=spice("provider"),
        promise=spice("promise"),
        attempts=tuple(_attempt(attempt, spice) for attempt in effect.attempts),
    )


def _attempt(attempt: AttemptRecord, spice: Spice) -> AttemptRecord:
    evidence: dict[str, Any] = {
        **{key: spice("evidence") for key in attempt.evidence if key not in (SAID, SAID_BY)},
        **{key: value for key, value in attempt.evidence.items() if key in (SAID, SAID_BY)},
        "id": spice("id"),
        "phase": spice("phase"),
        "search": spice("search"),
        "a_person_is_asked": spice("why"),
        spice("key"): spice("evidence"),
        "deep": {"x": [spice("evidence")]},
    }
    return replace(attempt, evidence=evidence)


def _votes(approval: ApprovalRecord, spice: Spice) -> ApprovalRecord:
    return replace(
        approval,
        votes=tuple(
            replace(vote, note=spice("note"), on_behalf_of=U_APP) for vote in approval.votes
        ),
    )
