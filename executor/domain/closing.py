"""Closing a ticket with one email: what the model may propose, and the email that it becomes.

Nothing of a proposal is repaired on its way. What cannot be shown, approved and sent as it is, is
refused with a sentence that tells the model which field to change and how.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import ErrorDetails

from executor.domain.address import parse_mailbox, parse_mailboxes
from executor.domain.closing_html import html_matches_text
from executor.domain.email import EmailContent, Mailbox
from executor.domain.errors import InvalidContent
from executor.domain.ids import TenantId
from executor.domain.intent import message_id
from executor.domain.mail_text import LONGEST_SUBJECT, validate_body, validate_subject
from executor.domain.new_ticket import LANGUAGE, TICKET_ID
from executor.domain.payloads import JsonObject, digest
from executor.domain.policy import Policy
from executor.domain.secret_text import is_tainted
from executor.domain.stamp import Stamp
from executor.domain.ticket import Ticket

CLOSING_NOTE = "Closed by Signoff after a person had approved it."
"""What an outside desk shows beside a close; on some desks everybody can read it."""

REOPENING_NOTE = "Opened again by Signoff, for the email about the close was not sent."
"""What a desk shows beside a reopening; on some desks everybody can read it."""

MOST_RECIPIENTS = 20
"""Addresses in one field of a proposal; a closure email is no mailing."""

_MOST_PROBLEMS = 3
_REMEDIES: Mapping[str, str] = {
    "ticket_id": 'write the id of the ticket as text, for example "4101"',
    "language": 'write the language of the email as a BCP 47 tag, for example "en" or "pt-BR"',
    "subject": "write the subject line of the email as text",
    "message": "write the body of the email as text, without greeting and signature",
    "to": (
        "leave it out to write to the ticket's customer, or write a list of addresses: "
        '["pat@cust.example"]'
    ),
    "cc": 'leave it out, or write a list of addresses: ["pat@cust.example"]',
    "query": "write the words to look for as text",
    "kind": 'write "run" or "close_ticket"',
    "request_key": (
        "write a name of your own for this request, of letters, digits and . _ : / - only, at most "
        "128 of them"
    ),
    "arguments": "write them as one object",
    "goal": "write what the run shall reach as text",
    "version": (
        "leave it out, or write the version of the ticket that you have read, as its desk names it"
    ),
}
_INSTEAD: Mapping[str, str] = {
    "attachments": (
        "No attachment can be sent, for a card could not show all of it to the person who "
        "approves: put what matters into message."
    ),
    "bcc": "Name in cc who shall get a copy; everybody sees it there.",
    "html": "The HTML part is made from message, so that both say the same.",
}
"""What to do instead of an argument that mail has and this tool does not."""

_LOST = "\ufffd"


def _ticket_id_as_text(value: object) -> object:
    """Take a number for its digits: models often send ``4101`` where ``"4101"`` is asked for."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str):
        return value.strip().removeprefix("#")
    return value


TicketIdArgument = Annotated[
    str, BeforeValidator(_ticket_id_as_text), Field(pattern=TICKET_ID, max_length=64)
]
AddressArgument = Annotated[str, Field(max_length=600)]


class ProposeClosing(BaseModel):
    """The arguments of the tool ``propose_closing``, as the model writes them.

    ``message`` is the body alone; greeting, ticket reference and signature come from the template.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    ticket_id: TicketIdArgument
    language: str = Field(pattern=LANGUAGE)
    subject: str = Field(max_length=LONGEST_SUBJECT)
    message: str = Field(max_length=200_000)
    to: tuple[AddressArgument, ...] | None = Field(
        default=None, min_length=1, max_length=MOST_RECIPIENTS
    )
    cc: tuple[AddressArgument, ...] = Field(default=(), max_length=MOST_RECIPIENTS)


@dataclass(frozen=True, slots=True)
class RenderedEmail:
    """Both bodies of an email, and each template's name with the SHA-256 (hex) of its source."""

    text: str
    html: str
    templates: Mapping[str, str]


def arguments_problem(errors: Sequence[ErrorDetails], *, of: str = "this tool") -> str:
    """Tell the model which arguments are wrong and what to write instead, one sentence a field.

    Repeats nothing of what the model wrote but names of fields, shortened. At most three fields.
    """
    problems: dict[str, str] = {}
    for error in errors:
        where, name = _spell(error["loc"])
        if where not in problems:
            problems[where] = _one_problem(error, where, name, of)
    sentences = list(problems.values())[:_MOST_PROBLEMS]
    if len(problems) > _MOST_PROBLEMS:
        sentences.append(f"{len(problems) - _MOST_PROBLEMS} more arguments are wrong.")
    return " ".join(sentences)


def _one_problem(error: ErrorDetails, where: str, name: str, of: str) -> str:
    remedy = _REMEDIES.get(name, "correct it")
    context: dict[str, Any] = error.get("ctx") or {}
    match error["type"]:
        case "missing":
            return f"{where} is missing: {remedy}."
        case "extra_forbidden":
            instead = _INSTEAD.get(name, "")
            return f"{where} is not an argument of {of}: leave it out. {instead}".rstrip()
        case "too_long":
            return f"{where} is too long (the limit is {context.get('max_length')}): name fewer."
        case "string_too_long":
            return f"{where} is too long (the limit is {context.get('max_length')}): shorten it."
        case "string_type" | "tuple_type" | "model_type" | "int_type":
            return f"{where} has the wrong type: {remedy}."
        case _:
            return f"{where} cannot be used as it is: {remedy}."


def _spell(location: tuple[int | str, ...]) -> tuple[str, str]:
    """Return where an error is, and the name of the argument that it is in."""
    if not location:
        return "arguments", "arguments"
    name = str(location[0])
    shown = name if len(name) <= 40 and name.isprintable() else f"{name[:40]!r}…"
    for part in location[1:]:
        if isinstance(part, int):
            shown += f"[{part}]"
    return shown, name


def build_closing_email(
    policy: Policy,
    ticket: Ticket,
    proposal: ProposeClosing,
    rendered: RenderedEmail,
    *,
    tenant: TenantId,
    key: str,
    stamp: Stamp | None = None,
) -> EmailContent:
    """Compose the email of a proposal; ``key`` is the intent key of the closing.

    Equal proposals for one key give equal emails, Message-ID included; ``stamp`` is the version of
    an outside ticket. Without ``to`` the email
    goes to the ticket's customer. Raises ``InvalidContent`` whose field is the argument to change.
    """
    limit = policy.email.max_text_characters
    refuse_lost([("subject", proposal.subject), ("message", proposal.message)])
    refuse_lost(addresses_of(proposal.to or (), proposal.cc))
    refuse_secrets([("subject", proposal.subject), ("message", proposal.message)])
    refuse_secrets(addresses_of(proposal.to or (), proposal.cc))
    validate_subject(proposal.subject)
    validate_body(proposal.message, limit=limit, field="message")
    validate_body(rendered.text, limit=limit, field="message")
    if not html_matches_text(rendered.text, rendered.html):
        raise InvalidContent(
            "message", "its text and its HTML would differ", "Write it as plain paragraphs."
        )
    to = (
        (customer_mailbox(ticket),)
        if proposal.to is None
        else parse_mailboxes(proposal.to, field="to")
    )
    cc = parse_mailboxes(proposal.cc, field="cc")
    return compose_email(
        policy, ticket, to, cc, proposal.subject, rendered, tenant=tenant, key=key, stamp=stamp
    )


def compose_email(
    policy: Policy,
    ticket: Ticket,
    to: tuple[Mailbox, ...],
    cc: tuple[Mailbox, ...],
    subject: str,
    rendered: RenderedEmail,
    *,
    tenant: TenantId,
    key: str,
    stamp: Stamp | None,
) -> EmailContent:
    """Compose an email of parts that were checked; whoever is in ``to`` gets no copy as well."""
    sender = parse_mailbox(policy.email.sender, field="email.from")
    reply_to = policy.email.reply_to
    named = {box.ascii_address for box in to}
    unsigned = EmailContent(
        sender=sender,
        to=to,
        cc=tuple(box for box in cc if box.ascii_address not in named),
        bcc=(),
        reply_to=parse_mailbox(reply_to, field="email.reply_to") if reply_to else None,
        subject=subject,
        text=rendered.text,
        html=rendered.html,
        message_id="",
    )
    content: JsonObject = {
        "ticket": [
            ticket.desk,
            ticket.id,
            ticket.version if stamp is None else stamp.as_json(),
        ],
        "email": digest(unsigned.as_json()).hex(),
    }
    domain = sender.ascii_address.rpartition("@")[2]
    return replace(unsigned, message_id=message_id(key, content, tenant, domain))


def addresses_of(to: Sequence[str], cc: Sequence[str]) -> list[tuple[str, str]]:
    """Name the field that each written address stands in."""
    fields = [(f"to[{index}]", text) for index, text in enumerate(to)]
    return fields + [(f"cc[{index}]", text) for index, text in enumerate(cc)]


def refuse_lost(fields: Sequence[tuple[str, str]]) -> None:
    """Refuse fields that are not what was written.

    A record cannot hold NUL and lone surrogates and has U+FFFD in their place, as broken text has.
    """
    for field, text in fields:
        if _LOST in text:
            raise InvalidContent(
                field,
                f"a character of it was lost, U+FFFD stands for it at {text.index(_LOST)}",
                "Write the character that was meant, or none.",
            )


def refuse_secrets(fields: Sequence[tuple[str, str]]) -> None:
    """Refuse fields that hold what looks like a secret: whoever approves would have to read it."""
    for field, text in fields:
        if is_tainted(text):
            raise InvalidContent(
                field,
                "it holds what looks like a secret (a key, a token or a password)",
                "Leave it out: what is approved is shown in full, and no secret may be shown.",
            )


def customer_mailbox(ticket: Ticket) -> Mailbox:
    """Return the customer's mailbox; a name that no header may carry is left out.

    Raises ``InvalidContent`` for field ``to`` when the ticket's address itself cannot be used.
    """
    bare = parse_mailbox(ticket.customer_email, field="to")
    name = " ".join(ticket.customer_name.split())
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    try:
        return parse_mailbox(f'"{escaped}" <{bare.address}>', field="to")
    except InvalidContent:
        # The name is the customer's own choice; it must not make the ticket impossible to close.
        return bare
