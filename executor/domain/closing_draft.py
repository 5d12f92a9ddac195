"""The email of a closing as a person writes it: whole, as the customer reads it.

Greeting and signature are part of its text, for no template touches it any more; only the HTML is
made from it. It is held to the same rules as a proposal of the model's, and all that is wrong is
told at once, so that a form can show it where it was typed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from executor.domain.address import parse_mailbox, parse_mailboxes
from executor.domain.closing import (
    MOST_RECIPIENTS,
    RenderedEmail,
    addresses_of,
    compose_email,
    refuse_lost,
    refuse_secrets,
)
from executor.domain.closing_html import html_matches_text
from executor.domain.email import EmailContent, Mailbox
from executor.domain.errors import InvalidContent
from executor.domain.ids import TenantId
from executor.domain.mail_text import validate_body, validate_subject
from executor.domain.payloads import storable_text
from executor.domain.policy import Policy
from executor.domain.stamp import Stamp
from executor.domain.ticket import Ticket


@dataclass(frozen=True, slots=True)
class ClosingDraft:
    """What a person may change of an email; each of ``to`` and ``cc`` is one mailbox."""

    to: tuple[str, ...]
    cc: tuple[str, ...]
    subject: str
    text: str

    @property
    def tidy(self) -> ClosingDraft:
        """The same, storable, with line ends of one kind and one behind the last line."""
        text = storable_text(self.text).replace("\r\n", "\n")
        return ClosingDraft(
            tuple(map(storable_text, self.to)),
            tuple(map(storable_text, self.cc)),
            storable_text(self.subject),
            text if text.endswith("\n") or not text else f"{text}\n",
        )


def draft_of(email: Mapping[str, Any]) -> ClosingDraft:
    """Read what a person may change of an email that stands in an intent."""
    return ClosingDraft(
        tuple(map(_spelled, email["to"])),
        tuple(map(_spelled, email["cc"])),
        email["subject"],
        email["text"],
    )


def problems_of(policy: Policy, draft: ClosingDraft) -> list[InvalidContent]:
    """List everything that keeps a draft from being sent, at most one problem a field."""
    limit = policy.email.max_text_characters
    tries: Sequence[Callable[[], object]] = (
        lambda: _mailboxes(draft.to, "to"),
        lambda: _mailboxes(draft.cc, "cc"),
        lambda: _checked_subject(draft.subject),
        lambda: _checked_text(draft.text, limit),
    )
    found = []
    for attempt in tries:
        try:
            attempt()
        except InvalidContent as problem:
            found.append(problem)
    return found


def build_drafted_email(
    policy: Policy,
    ticket: Ticket,
    draft: ClosingDraft,
    rendered: RenderedEmail,
    *,
    tenant: TenantId,
    key: str,
    stamp: Stamp | None,
) -> EmailContent:
    """Compose the email of a draft whose text was laid out; raises ``InvalidContent``."""
    for problem in problems_of(policy, draft):
        raise problem
    if not html_matches_text(rendered.text, rendered.html):
        raise InvalidContent(
            "text", "its text and its HTML would differ", "Write it as plain paragraphs."
        )
    to, cc = _mailboxes(draft.to, "to"), _mailboxes(draft.cc, "cc")
    return compose_email(
        policy, ticket, to, cc, draft.subject, rendered, tenant=tenant, key=key, stamp=stamp
    )


def says_the_same(draft: ClosingDraft, email: Mapping[str, Any]) -> bool:
    """Tell whether a draft without problems is what an email already says."""
    before = draft_of(email)
    return (
        draft.subject == before.subject
        and draft.text == before.text
        and _mailboxes(draft.to, "to") == _mailboxes(before.to, "to")
        and _mailboxes(draft.cc, "cc") == _mailboxes(before.cc, "cc")
    )


def _checked_subject(subject: str) -> None:
    refuse_lost([("subject", subject)])
    refuse_secrets([("subject", subject)])
    validate_subject(subject)


def _checked_text(text: str, limit: int) -> None:
    refuse_lost([("text", text)])
    refuse_secrets([("text", text)])
    validate_body(text, limit=limit)


def _mailboxes(texts: Sequence[str], field: str) -> tuple[Mailbox, ...]:
    if field == "to" and not texts:
        raise InvalidContent("to", "it is empty", "Write the address that the email goes to.")
    if len(texts) > MOST_RECIPIENTS:
        raise InvalidContent(
            field, f"it names {len(texts)}, the limit is {MOST_RECIPIENTS}", "Name fewer."
        )
    refuse_lost(addresses_of(texts, ()) if field == "to" else addresses_of((), texts))
    return parse_mailboxes(texts, field=field)


def _spelled(box: Mapping[str, str]) -> str:
    """Write a mailbox so that it is read back as it is."""
    name, address = box["name"], box["address"]
    try:
        if parse_mailbox(address, field="to").ascii_address != box["ascii_address"]:
            address = box["ascii_address"]
    except InvalidContent:
        address = box["ascii_address"]
    if not name:
        return address
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}" <{address}>'
