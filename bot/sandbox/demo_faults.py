"""What can go wrong at the demo's mail provider, in plain words, and what has to be true then."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from executor.domain.operation import OperationStatus


class MailKind(StrEnum):
    """Who sends the demo's mail."""

    SMTP = "smtp"
    RESEND = "resend"
    POSTMARK = "postmark"


class DemoFault(StrEnum):
    """What happens to the first mail."""

    REFUSE = "refuse"
    HANG_BEFORE = "hang-before"
    HANG_AFTER = "hang-after"
    LOST_ANSWER = "lost-answer"
    ERROR_AFTER = "5xx-after"
    CUT_BODY = "cut-body"
    REPEAT = "repeat"
    TOO_MANY = "429"
    TOO_MANY_RETRY_AFTER = "429-retry-after"
    REJECT = "reject"


TOLD: Mapping[DemoFault, str] = {
    DemoFault.REFUSE: "connections are refused until one was tried",
    DemoFault.HANG_BEFORE: "no answer; Resend and Postmark accept the mail when we have given up",
    DemoFault.HANG_AFTER: "the mail is accepted, and no answer comes",
    DemoFault.LOST_ANSWER: "the mail is accepted, and the connection drops instead of an answer",
    DemoFault.ERROR_AFTER: "the mail is accepted, and the answer is a 500",
    DemoFault.CUT_BODY: "the mail is accepted, and the answer breaks off in its middle",
    DemoFault.REPEAT: "the provider delivers the one mail twice",
    DemoFault.TOO_MANY: "the answer is 429, without Retry-After",
    DemoFault.TOO_MANY_RETRY_AFTER: "the answer is 429, with Retry-After",
    DemoFault.REJECT: "the mail is rejected for good",
}

_NOT_IN_SMTP: Mapping[DemoFault, tuple[str, DemoFault | None]] = {
    DemoFault.ERROR_AFTER: ("a server that answers with an error has not accepted", None),
    DemoFault.CUT_BODY: ("its answer is one line", DemoFault.LOST_ANSWER),
    DemoFault.REPEAT: ("the demo's mail server delivers what it accepts once", None),
    DemoFault.TOO_MANY: ("it has no 429", DemoFault.REFUSE),
    DemoFault.TOO_MANY_RETRY_AFTER: ("it has no 429", DemoFault.REFUSE),
}

_UNTOLD = frozenset({DemoFault.HANG_BEFORE, DemoFault.HANG_AFTER, DemoFault.LOST_ANSWER})


def impossible(kind: MailKind, fault: DemoFault) -> str | None:
    """Say why a provider cannot fail like this, and what to choose; ``None`` where it can."""
    if kind is not MailKind.SMTP or fault not in _NOT_IN_SMTP:
        return None
    why, instead = _NOT_IN_SMTP[fault]
    choice = "choose --mail resend or postmark"
    if instead is not None:
        choice += f", or --fault {instead.value}"
    return f"SMTP cannot do {fault.value!r}, because {why}: {choice}"


def end_of(kind: MailKind, fault: DemoFault) -> tuple[OperationStatus, int]:
    """Return how a job ends whose first mail meets a fault, and how many mails are accepted."""
    if fault is DemoFault.REJECT:
        return OperationStatus.PARTIAL, 0
    if kind is MailKind.SMTP and fault in _UNTOLD:
        # A mail server forgets what it had not accepted when the connection ended.
        return OperationStatus.UNKNOWN, int(fault is not DemoFault.HANG_BEFORE)
    return OperationStatus.SUCCEEDED, 1
