"""Records of operations and runs to draw cards from, with everything that a test does not name.

The common set-up of the scenarios: run_7 of TEAM1 wants to close ticket 4101 at version 7 and to
send one email to pat@cust.example.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from executor.domain.approval import ApprovalStatus, Vote
from executor.domain.delivery_event import DeliveryKind
from executor.domain.effect import AttemptStatus, Capability, EffectKind, EffectStatus
from executor.domain.email import EmailContent, Mailbox
from executor.domain.ids import (
    ApprovalId,
    AttemptId,
    OperationId,
    PrincipalId,
    RunId,
    TenantId,
)
from executor.domain.operation import LIVE, UNOPENED, OperationStatus
from executor.domain.payloads import JsonObject
from executor.domain.policy import BASE
from executor.domain.recovery import Why
from executor.domain.run import RunStatus
from executor.domain.terms import Requirement, Terms
from executor.domain.ticket import ChangeKind, TicketChange, TicketStatus
from executor.domain.transition import Reason
from executor.engine.approval_record import ApprovalRecord, VoteRecord
from executor.engine.card_record import (
    AttemptRecord,
    DeliveryRecord,
    EffectRecord,
    OperationRecord,
    RunRecord,
    WordRecord,
)
from executor.engine.doubt_record import DoubtRecord
from executor.engine.last_account import AccountedOperation
from executor.engine.revision_record import PreviousRevision, SuccessorRecord
from executor.engine.ticket_record import TicketRecord
from executor.engine.word import SAID, SAID_BY, Said

TEAM = TenantId("TEAM1")
U_REQ = PrincipalId("slack:TEAM1:U_REQ")
U_APP = PrincipalId("slack:TEAM1:U_APP")
U_APP2 = PrincipalId("slack:TEAM1:U_APP2")
NOW = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
NONCE = UUID("0197f000-0000-7000-8000-0000000000aa")
TEXT = (
    "Hello Pat,\n\nyour printer works again, so we have closed ticket 4101.\n\n"
    "Kind regards\nAcme Support\n"
)


def mailbox(address: str, name: str = "", ascii_address: str | None = None) -> Mailbox:
    """A mailbox whose two forms are equal unless said otherwise."""
    return Mailbox(name, address, ascii_address or address)


def email_content(**changes: Any) -> EmailContent:
    """P1's email, without an HTML part."""
    content = EmailContent(
        sender=mailbox("support@acme.example", "Acme Support"),
        to=(mailbox("pat@cust.example", "Pat"),),
        cc=(),
        bcc=(),
        reply_to=None,
        subject="Ticket 4101 closed",
        text=TEXT,
        html=None,
        message_id="<5f2c@acme.example>",
    )
    return replace(content, **changes)


def ticket_change(version: int, **changes: Any) -> TicketChange:
    """One change of the ticket, by the customer."""
    change = TicketChange(
        version, ChangeKind.CUSTOMER_MESSAGE, "Pat", "It prints again, thanks!", NOW
    )
    return replace(change, **changes)


def ticket_record(**changes: Any) -> TicketRecord:
    """Ticket 4101 at version 7, unchanged since."""
    ticket = TicketRecord(
        desk="builtin",
        id="4101",
        subject="The printer is on fire",
        version=7,
        recent_changes=(ticket_change(7),),
        current_version=7,
        current_status=TicketStatus.OPEN,
        changes_since=(),
    )
    return replace(ticket, **changes)


def attempt_record(status: AttemptStatus, evidence: JsonObject, **changes: Any) -> AttemptRecord:
    """The first attempt, reported a second after it was opened."""
    attempt = AttemptRecord(
        number=1,
        status=status,
        evidence=evidence,
        opened_at=NOW,
        conclude_at=NOW + timedelta(seconds=60),
        reported_at=NOW + timedelta(seconds=1),
        capability=Capability.OPAQUE,
    )
    return replace(attempt, **changes)


def effect_records(
    close: EffectStatus = EffectStatus.PLANNED,
    send: EffectStatus = EffectStatus.PLANNED,
    attempts: Sequence[AttemptRecord] = (),
) -> tuple[EffectRecord, ...]:
    """The two effects of P1; ``attempts`` are those of the email."""
    return (
        EffectRecord(
            EffectKind.TICKET_CLOSE,
            close,
            "builtin",
            Capability.TRANSACTIONAL,
            "The ticket is closed together with its record, or not at all.",
            (),
        ),
        EffectRecord(
            EffectKind.EMAIL_SEND,
            send,
            "smtp:mail.acme.example:587",
            Capability.OPAQUE,
            "SMTP: if the answer is lost, nobody can tell whether the email was sent.",
            tuple(attempts),
        ),
    )


def by(
    attempt: AttemptRecord, close: EffectStatus, send: EffectStatus, provider: str
) -> tuple[EffectRecord, ...]:
    """The two effects of P1, where the email goes through another kind of provider."""
    first, second = effect_records(close, send, [attempt])
    return first, replace(
        second, provider=provider, capability=attempt.capability, promise="As the provider says."
    )


def outside_desk(attempt: AttemptRecord) -> tuple[EffectRecord, ...]:
    """The two effects of P1, where the ticket lies at a desk elsewhere and is closed by a call."""
    first, second = effect_records(EffectStatus.UNKNOWN, EffectStatus.PLANNED)
    outside = replace(
        first, provider="zendesk:acme", capability=attempt.capability, attempts=(attempt,)
    )
    return outside, second


def delivery_record(kind: DeliveryKind, **changes: Any) -> DeliveryRecord:
    """Something that the provider said of the email an hour later."""
    delivery = DeliveryRecord(kind, NOW + timedelta(hours=1), ("pat@cust.example",), "")
    return replace(delivery, **changes)


def vote_record(principal: PrincipalId, vote: Vote = Vote.APPROVE, note: str = "") -> VoteRecord:
    """A vote ten minutes after the card was shown."""
    return VoteRecord(principal, vote, note, NOW + timedelta(minutes=10))


def terms(quorum: int = 1, **changes: Any) -> Terms:
    """What the policy asks of everything: so many approvers, a day to decide, an hour to use."""
    asked = Terms((Requirement(BASE, quorum, ("role:approver",)),), 86_400, 3_600)
    return replace(asked, **changes)


def approval_record(**changes: Any) -> ApprovalRecord:
    """An open approval, shown, that needs one vote within a day."""
    approval = ApprovalRecord(
        id=ApprovalId(UUID("0197f000-0000-7000-8000-000000000003")),
        status=ApprovalStatus.OPEN,
        terms=terms(),
        votes=(),
        decide_by=NOW + timedelta(days=1),
        use_by=None,
    )
    return replace(approval, **changes)


def operation_record(*, email: EmailContent | None = None, **changes: Any) -> OperationRecord:
    """P1, waiting for approval."""
    record = OperationRecord(
        tenant_id=TEAM,
        id=OperationId(UUID("0197f000-0000-7000-8000-000000000002")),
        number=12,
        run_number=7,
        goal="close ticket 4101",
        status=OperationStatus.AWAITING,
        reason=None,
        detail={},
        requester=U_REQ,
        linked_requesters=(),
        digest=bytes.fromhex("ab" * 32),
        content_revision=1,
        policy_version="2026-03-01",
        why="An email to a customer needs one approval.",
        ticket=ticket_record(),
        email=(email or email_content()).as_json(),
        effects=effect_records(),
        words=(),
        doubt=None,
        approval=approval_record(),
        created_at=NOW,
        opened_at=None,
        ended_at=None,
    )
    return replace(record, **changes)


def edited_record(**changes: Any) -> OperationRecord:
    """P1 after U_APP had edited it: another recipient, another subject, one line of the text."""
    record = operation_record(
        email=email_content(
            to=(mailbox("kim@cust.example", "Kim"),),
            subject="Ticket 4101: the printer works",
            text=TEXT.replace("works again,", "is repaired and works again,"),
        ),
        number=13,
        content_revision=2,
        editor=U_APP,
        previous=PreviousRevision(12, OperationStatus.SUPERSEDED, email_content().as_json()),
    )
    return replace(record, **changes)


def doubt_record(**changes: Any) -> DoubtRecord:
    """A doubt about the first attempt, which may be sent again."""
    doubt = DoubtRecord(AttemptId(UUID("0197f000-0000-7000-8000-000000000004")), None, 1, None)
    return replace(doubt, **changes)


def word_record(said: Said, by: PrincipalId = U_APP, note: str = "", **changes: Any) -> WordRecord:
    """A word given an hour after the email may have left."""
    word = WordRecord(by, said, note, NOW + timedelta(hours=1), EffectKind.EMAIL_SEND)
    return replace(word, **changes)


def accounted(
    number: int, status: OperationStatus, *effects: EffectStatus, **changes: Any
) -> AccountedOperation:
    """The closing of ticket 4101 and its email, whose effects stand so."""
    done = status is OperationStatus.SUCCEEDED
    stand = effects or (EffectStatus.APPLIED if done else EffectStatus.PLANNED,) * 2
    kinds = (EffectKind.TICKET_CLOSE, EffectKind.EMAIL_SEND)
    operation = AccountedOperation(number, status, "4101", tuple(zip(kinds, stand, strict=True)))
    return replace(operation, **changes)


def run_record(**changes: Any) -> RunRecord:
    """run_7, finished, with one operation that was done."""
    record = RunRecord(
        tenant_id=TEAM,
        id=RunId(UUID("0197f000-0000-7000-8000-000000000001")),
        number=7,
        goal="close ticket 4101",
        status=RunStatus.SUCCEEDED,
        reason=Reason.COMPLETED,
        summary="I closed ticket 4101 and told Pat.",
        requester=U_REQ,
        operations=((12, OperationStatus.SUCCEEDED),),
        created_at=NOW,
        ended_at=NOW + timedelta(hours=1),
        accounted=(accounted(12, OperationStatus.SUCCEEDED),),
    )
    return replace(record, **changes)


def dated(record: OperationRecord) -> OperationRecord:
    """Give an opened operation the time of its opening, and an ended one that of its end."""
    opened = record.status not in _UNOPENED
    return replace(
        record,
        opened_at=NOW + timedelta(minutes=11) if opened else None,
        ended_at=None if record.status in LIVE else NOW + timedelta(minutes=12),
    )


_UNOPENED = UNOPENED | {
    OperationStatus.REJECTED,
    OperationStatus.EXPIRED,
    OperationStatus.SUPERSEDED,
    OperationStatus.WITHDRAWN,
    OperationStatus.STALE,
}


def states() -> dict[str, OperationRecord | RunRecord]:
    """One record for each state that a card can show, by a name that says which."""
    return {
        name: dated(record) if isinstance(record, OperationRecord) else record
        for name, record in _states().items()
    }


def _states() -> dict[str, OperationRecord | RunRecord]:
    approved = approval_record(
        status=ApprovalStatus.GRANTED,
        votes=(vote_record(U_APP),),
        use_by=NOW + timedelta(hours=1),
    )
    consumed = replace(approved, status=ApprovalStatus.CONSUMED)
    sent = attempt_record(
        AttemptStatus.APPLIED,
        {
            "provider": "smtp",
            "phase": "final_reply",
            "code": 250,
            "reply": "2.0.0 Ok: queued as 4F",
        },
    )
    refused = attempt_record(
        AttemptStatus.NOT_APPLIED,
        {"provider": "smtp", "phase": "rcpt_to", "code": 550, "reply": "5.1.1 No such user"},
    )
    lost = attempt_record(
        AttemptStatus.UNKNOWN,
        {"provider": "smtp", "phase": "final_reply", "problem": "the connection was lost"},
    )
    keyed = replace(
        lost,
        capability=Capability.KEYED,
        evidence={"provider": "resend", "phase": "response"},
        recover_at=NOW + timedelta(minutes=2),
        key_until=NOW + timedelta(days=1),
    )
    why = {"a_person_is_asked": Why.WINDOW_OVER.value}
    forgotten = replace(keyed, recover_at=None, evidence={**keyed.evidence, **why})
    searched = replace(
        lost,
        capability=Capability.LOOKUP,
        evidence={"provider": "postmark", "phase": "response", "search": "not_found (2 of 6)"},
        lookups=2,
        recover_at=NOW + timedelta(minutes=9),
    )
    found_out = {"search": "not_found (6 of 6)", "a_person_is_asked": Why.LOOKUPS_USED_UP.value}
    not_found = replace(
        searched, lookups=6, recover_at=None, evidence={**searched.evidence, **found_out}
    )
    closing = replace(
        lost,
        capability=Capability.CONDITIONAL,
        evidence={"provider": "zendesk", "phase": "response"},
    )
    half = (vote_record(U_APP),)
    return {
        "awaiting": operation_record(),
        "awaiting_unshown": operation_record(approval=approval_record(decide_by=None)),
        "awaiting_second_vote": operation_record(
            approval=approval_record(terms=terms(2), votes=(vote_record(U_APP),))
        ),
        "awaiting_but_ticket_moved": operation_record(
            ticket=ticket_record(
                current_version=9,
                changes_since=(
                    ticket_change(8, body="Wait, it burns again."),
                    ticket_change(9, kind=ChangeKind.NOTE, author="Kim", body="Call Pat."),
                ),
            )
        ),
        "awaiting_foreign_address": operation_record(
            email=email_content(
                to=(mailbox("pat@bücher.example", "Pat", "pat@xn--bcher-kva.example"),),
                text="Pay at pаypal.example or \u202e001\u202c EUR.\n",
            )
        ),
        "awaiting_edited": edited_record(),
        "awaiting_proposed_again": operation_record(
            number=14,
            content_revision=2,
            previous=PreviousRevision(12, OperationStatus.STALE, email_content().as_json()),
            asked_again_by=(U_APP2,),
        ),
        "awaiting_newer_proposal": edited_record(editor=None),
        "superseded_by_an_edit": operation_record(
            status=OperationStatus.SUPERSEDED,
            reason=Reason.SUPERSEDED,
            detail={"by": "0197f000-0000-7000-8000-000000000009"},
            approval=approval_record(status=ApprovalStatus.VOID),
            successor=SuccessorRecord(13, U_APP),
            ended_at=NOW + timedelta(minutes=30),
        ),
        "stale_and_proposed_again": operation_record(
            status=OperationStatus.STALE,
            reason=Reason.VERSION_CHANGED,
            approval=approval_record(status=ApprovalStatus.VOID),
            ticket=ticket_record(current_version=9, changes_since=(ticket_change(8),)),
            successor=SuccessorRecord(14, None),
            ended_at=NOW + timedelta(minutes=30),
        ),
        "approved": operation_record(status=OperationStatus.APPROVED, approval=approved),
        "executing": operation_record(
            status=OperationStatus.EXECUTING,
            approval=consumed,
            effects=effect_records(EffectStatus.APPLIED, EffectStatus.DISPATCHED),
        ),
        "succeeded": operation_record(
            status=OperationStatus.SUCCEEDED,
            approval=consumed,
            effects=effect_records(EffectStatus.APPLIED, EffectStatus.APPLIED, [sent]),
        ),
        "failed": operation_record(
            status=OperationStatus.FAILED,
            reason=Reason.REFUSED_BY_PROVIDER,
            approval=consumed,
            effects=effect_records(EffectStatus.NOT_APPLIED, EffectStatus.SKIPPED),
        ),
        "partial": operation_record(
            status=OperationStatus.PARTIAL,
            reason=Reason.REFUSED_BY_PROVIDER,
            approval=consumed,
            effects=effect_records(EffectStatus.APPLIED, EffectStatus.NOT_APPLIED, [refused]),
        ),
        "unknown": operation_record(
            status=OperationStatus.UNKNOWN,
            approval=consumed,
            effects=effect_records(EffectStatus.APPLIED, EffectStatus.UNKNOWN, [lost]),
        ),
        "unknown_left": operation_record(
            status=OperationStatus.UNKNOWN,
            reason=Reason.OUTCOME_LOST,
            approval=consumed,
            effects=effect_records(EffectStatus.APPLIED, EffectStatus.UNKNOWN, [lost]),
            words=(word_record(Said.LEAVE, note="*Pat* is on holiday."),),
            doubt=doubt_record(),
        ),
        "unknown_not_to_be_repeated": operation_record(
            status=OperationStatus.UNKNOWN,
            reason=Reason.OUTCOME_LOST,
            approval=consumed,
            effects=effect_records(EffectStatus.APPLIED, EffectStatus.UNKNOWN, [lost]),
            doubt=doubt_record(not_again=Reason.VERSION_CHANGED),
        ),
        "unknown_half_sent_again": operation_record(
            status=OperationStatus.UNKNOWN,
            reason=Reason.OUTCOME_LOST,
            approval=consumed,
            effects=effect_records(EffectStatus.APPLIED, EffectStatus.UNKNOWN, [lost]),
            words=(word_record(Said.SEND_AGAIN, note="Not in the log.", still_needed=1),),
            doubt=doubt_record(quorum=2, repeat=approval_record(terms=terms(2), votes=half)),
        ),
        "unknown_until_sent_again_under_its_key": operation_record(
            status=OperationStatus.UNKNOWN,
            reason=Reason.OUTCOME_LOST,
            approval=consumed,
            effects=by(keyed, EffectStatus.APPLIED, EffectStatus.UNKNOWN, "resend:acme"),
        ),
        "unknown_after_the_key": operation_record(
            status=OperationStatus.UNKNOWN,
            reason=Reason.OUTCOME_LOST,
            approval=consumed,
            effects=by(forgotten, EffectStatus.APPLIED, EffectStatus.UNKNOWN, "resend:acme"),
            doubt=doubt_record(),
        ),
        "unknown_until_searched": operation_record(
            status=OperationStatus.UNKNOWN,
            reason=Reason.OUTCOME_LOST,
            approval=consumed,
            effects=by(searched, EffectStatus.APPLIED, EffectStatus.UNKNOWN, "postmark:7"),
        ),
        "unknown_not_found": operation_record(
            status=OperationStatus.UNKNOWN,
            reason=Reason.OUTCOME_LOST,
            approval=consumed,
            effects=by(not_found, EffectStatus.APPLIED, EffectStatus.UNKNOWN, "postmark:7"),
            doubt=doubt_record(),
        ),
        "unknown_whether_closed": operation_record(
            status=OperationStatus.UNKNOWN,
            reason=Reason.OUTCOME_LOST,
            approval=consumed,
            effects=outside_desk(closing),
            doubt=doubt_record(),
        ),
        "delivered": operation_record(
            status=OperationStatus.SUCCEEDED,
            approval=consumed,
            effects=effect_records(EffectStatus.APPLIED, EffectStatus.APPLIED, [sent]),
            deliveries=(delivery_record(DeliveryKind.DELIVERED),),
        ),
        "bounced": operation_record(
            status=OperationStatus.SUCCEEDED,
            approval=consumed,
            effects=effect_records(EffectStatus.APPLIED, EffectStatus.APPLIED, [sent]),
            deliveries=(
                delivery_record(DeliveryKind.DELIVERED),
                delivery_record(DeliveryKind.BOUNCED, said="Permanent General <!channel>"),
                delivery_record(DeliveryKind.COMPLAINED),
            ),
        ),
        "partial_by_word": operation_record(
            status=OperationStatus.PARTIAL,
            reason=Reason.SAID_NOT_SENT,
            approval=consumed,
            effects=effect_records(
                EffectStatus.APPLIED,
                EffectStatus.NOT_APPLIED,
                [
                    replace(
                        lost,
                        status=AttemptStatus.NOT_APPLIED,
                        evidence={**lost.evidence, SAID_BY: U_APP, SAID: "not_sent"},
                    )
                ],
            ),
            words=(word_record(Said.NOT_SENT),),
        ),
        "contradicted": operation_record(
            status=OperationStatus.SUCCEEDED,
            approval=consumed,
            effects=effect_records(
                EffectStatus.APPLIED,
                EffectStatus.APPLIED,
                [replace(sent, evidence={SAID_BY: U_APP, SAID: "not_sent", **sent.evidence})],
            ),
            words=(word_record(Said.NOT_SENT),),
        ),
        "rejected": operation_record(
            status=OperationStatus.REJECTED,
            approval=approval_record(
                status=ApprovalStatus.DENIED,
                votes=(vote_record(U_APP2, Vote.REJECT, "Too <curt>, say *sorry* first."),),
            ),
        ),
        "expired": operation_record(
            status=OperationStatus.EXPIRED,
            reason=Reason.EXPIRED,
            approval=approval_record(status=ApprovalStatus.EXPIRED),
        ),
        "superseded": operation_record(
            status=OperationStatus.SUPERSEDED,
            reason=Reason.SUPERSEDED,
            detail={"by": "0197f000-0000-7000-8000-000000000009"},
            approval=approval_record(status=ApprovalStatus.VOID),
        ),
        "withdrawn": operation_record(
            status=OperationStatus.WITHDRAWN,
            reason=Reason.CANCELLED,
            approval=approval_record(status=ApprovalStatus.WITHDRAWN),
        ),
        "stale": operation_record(
            status=OperationStatus.STALE,
            reason=Reason.VERSION_CHANGED,
            approval=replace(approved, status=ApprovalStatus.VOID),
            ticket=ticket_record(
                current_version=9,
                changes_since=(ticket_change(8), ticket_change(9, author="Kim")),
            ),
        ),
        "compensated": operation_record(
            status=OperationStatus.COMPENSATED,
            approval=consumed,
            effects=effect_records(EffectStatus.APPLIED, EffectStatus.NOT_APPLIED, [refused]),
        ),
        "left": operation_record(
            status=OperationStatus.LEFT,
            approval=consumed,
            effects=effect_records(EffectStatus.APPLIED, EffectStatus.NOT_APPLIED, [refused]),
        ),
        "run_succeeded": run_record(),
        "run_cancelled": run_record(
            status=RunStatus.CANCELLED,
            reason=Reason.CANCELLED,
            summary="",
            operations=(),
            accounted=(),
        ),
        "run_put_off_by_its_model": run_record(
            status=RunStatus.WAITING,
            reason=None,
            summary="",
            operations=(),
            accounted=(),
            ended_at=None,
            model_asked_again_at=NOW,
        ),
    }
