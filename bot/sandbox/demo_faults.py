"""What can go wrong around the demo, in plain words, and what has to be true then."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from executor.domain.operation import OperationStatus


class MailKind(StrEnum):
    """Who sends the demo's mail."""

    SMTP = "smtp"
    RESEND = "resend"
    POSTMARK = "postmark"


class DeskKind(StrEnum):
    """Where the demo's tickets are."""

    BUILTIN = "builtin"
    ZENDESK = "zendesk"
    GITHUB = "github"


class ModelKind(StrEnum):
    """Who does the thinking: the scripted model, itself or at a double of that provider."""

    SCRIPTED = "scripted"
    ANTHROPIC = "anthropic"
    OPENAI = "openai"


class FaultAt(StrEnum):
    """Where the fault happens."""

    MAIL = "mail"
    DESK = "desk"


class DemoFault(StrEnum):
    """What happens to the first mail, or to the first change at the desk."""

    REFUSE = "refuse"
    HANG_BEFORE = "hang-before"
    HANG_AFTER = "hang-after"
    LOST_ANSWER = "lost-answer"
    ERROR_AFTER = "5xx-after"
    CUT_BODY = "cut-body"
    REPEAT = "repeat"
    CONFLICT = "conflict"
    TOO_MANY = "429"
    TOO_MANY_RETRY_AFTER = "429-retry-after"
    REJECT = "reject"


@dataclass(frozen=True, slots=True)
class Outside:
    """Who sends the demo's mail, where its tickets and its model are, what goes wrong once."""

    mail: MailKind = MailKind.SMTP
    desk: DeskKind = DeskKind.BUILTIN
    model: ModelKind = ModelKind.SCRIPTED
    fault: DemoFault | None = None
    at: FaultAt = FaultAt.MAIL


@dataclass(frozen=True, slots=True)
class End:
    """How a job ends, and what is found outside afterwards."""

    status: OperationStatus
    mails: int


TOLD: Mapping[FaultAt, Mapping[DemoFault, str]] = {
    FaultAt.MAIL: {
        DemoFault.REFUSE: "connections are refused until one was tried",
        DemoFault.HANG_BEFORE: (
            "no answer; Resend and Postmark accept the mail when we have given up"
        ),
        DemoFault.HANG_AFTER: "the mail is accepted, and no answer comes",
        DemoFault.LOST_ANSWER: (
            "the mail is accepted, and the connection drops instead of an answer"
        ),
        DemoFault.ERROR_AFTER: "the mail is accepted, and the answer is a 500",
        DemoFault.CUT_BODY: "the mail is accepted, and the answer breaks off in its middle",
        DemoFault.REPEAT: "the provider delivers the one mail twice",
        DemoFault.TOO_MANY: "the answer is 429, without Retry-After",
        DemoFault.TOO_MANY_RETRY_AFTER: "the answer is 429, with Retry-After",
        DemoFault.REJECT: "the mail is rejected for good",
    },
    FaultAt.DESK: {
        DemoFault.REFUSE: "once approved, connections are refused until one was tried",
        DemoFault.HANG_BEFORE: "no answer; the change is made when we have given up",
        DemoFault.HANG_AFTER: "the change is made, and no answer comes",
        DemoFault.LOST_ANSWER: "the change is made, and the connection drops instead of an answer",
        DemoFault.ERROR_AFTER: "the change is made, and the answer is a 500",
        DemoFault.CUT_BODY: "the change is made, and the answer breaks off in its middle",
        DemoFault.REPEAT: "somebody on the way sends the change twice; the second answer comes",
        DemoFault.CONFLICT: "the answer is 409, though nobody has changed the ticket",
        DemoFault.TOO_MANY: "too many requests, without Retry-After; GitHub is left alone a minute",
        DemoFault.TOO_MANY_RETRY_AFTER: "too many requests, with Retry-After",
        DemoFault.REJECT: "the agent or token may not change tickets",
    },
}

NAMES: Mapping[MailKind | DeskKind, str] = {
    MailKind.RESEND: "Resend",
    MailKind.POSTMARK: "Postmark",
    DeskKind.ZENDESK: "Zendesk",
    DeskKind.GITHUB: "GitHub Issues",
}
"""Who else there is; the mail server and the built-in desk are our own."""

_NOT_IN_SMTP: Mapping[DemoFault, tuple[str, DemoFault | None]] = {
    DemoFault.ERROR_AFTER: ("a server that answers with an error has not accepted", None),
    DemoFault.CUT_BODY: ("its answer is one line", DemoFault.LOST_ANSWER),
    DemoFault.REPEAT: ("the demo's mail server delivers what it accepts once", None),
    DemoFault.TOO_MANY: ("it has no 429", DemoFault.REFUSE),
    DemoFault.TOO_MANY_RETRY_AFTER: ("it has no 429", DemoFault.REFUSE),
}

_NOT_IN_GITHUB: Mapping[DemoFault, str] = {
    DemoFault.REPEAT: "GitHub would keep the note twice, and nobody could tell whose repeat it was",
    DemoFault.CONFLICT: "GitHub does not compare versions, so it has no conflict",
}

_UNTOLD = frozenset({DemoFault.HANG_BEFORE, DemoFault.HANG_AFTER, DemoFault.LOST_ANSWER})


def impossible(outside: Outside) -> str | None:
    """Say why the planned fault cannot happen there, and what to choose; ``None`` if it can."""
    if outside.fault is None:
        return None
    if outside.at is FaultAt.MAIL:
        return _impossible_at_mail(outside.mail, outside.fault)
    return _impossible_at_desk(outside.desk, outside.fault)


def _impossible_at_mail(mail: MailKind, fault: DemoFault) -> str | None:
    if fault is DemoFault.CONFLICT:
        return "a mail is not in conflict with anything: choose --fault-at desk with --desk zendesk"
    if mail is not MailKind.SMTP or fault not in _NOT_IN_SMTP:
        return None
    why, instead = _NOT_IN_SMTP[fault]
    choice = "choose --mail resend or postmark"
    if instead is not None:
        choice += f", or --fault {instead.value}"
    return f"SMTP cannot do {fault.value!r}, because {why}: {choice}"


def _impossible_at_desk(desk: DeskKind, fault: DemoFault) -> str | None:
    if desk is DeskKind.BUILTIN:
        return (
            "a ticket of the built-in desk is closed together with the record of it, so nothing "
            "goes wrong between the two: choose --desk zendesk or github"
        )
    if desk is not DeskKind.GITHUB or fault not in _NOT_IN_GITHUB:
        return None
    return f"{_NOT_IN_GITHUB[fault]}: choose --desk zendesk, or --fault lost-answer"


def end_of(outside: Outside) -> End:
    """Return how an approved job ends that meets the planned fault, if any."""
    succeeded = End(OperationStatus.SUCCEEDED, 1)
    if outside.at is FaultAt.DESK:
        if outside.fault is DemoFault.REJECT:
            return End(OperationStatus.FAILED, 0)
        return succeeded
    if outside.fault is DemoFault.REJECT:
        return End(OperationStatus.PARTIAL, 0)
    if outside.mail is MailKind.SMTP and outside.fault in _UNTOLD:
        # A mail server forgets what it had not accepted when the connection ended.
        return End(OperationStatus.UNKNOWN, int(outside.fault is not DemoFault.HANG_BEFORE))
    return succeeded
