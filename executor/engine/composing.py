"""Freezes what a proposal would do: the email is rendered here, once, and each effect gets the
bytes that will leave.

An outside desk's closing request holds its precondition and a marker that names the effect. A desk
whose close cannot carry note and marker gets an effect before it that leaves them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from uuid import UUID

from executor.domain.closing import (
    CLOSING_NOTE,
    REOPENING_NOTE,
    ProposeClosing,
    RenderedEmail,
    build_closing_email,
)
from executor.domain.closing_draft import ClosingDraft, build_drafted_email
from executor.domain.effect import EffectKind
from executor.domain.email import EmailContent
from executor.domain.ids import EffectId, PrincipalId, TenantId, desk_marker
from executor.domain.intent import (
    CLOSE_TICKET,
    Intent,
    PlannedEffect,
    about_ticket,
    intent_document,
)
from executor.domain.payloads import JsonObject, canonical
from executor.domain.policy import Policy
from executor.domain.stamp import DeskVersion, Stamp
from executor.domain.ticket import Ticket
from executor.engine.closure_email import ClosureEmails
from executor.engine.desk import BUILT_IN
from executor.engine.desk_port import NotedDesk, Observation, TicketDesk
from executor.engine.ports import MailPort
from executor.engine.promises import guard, promise
from executor.engine.providers import Providers
from executor.store.runs import RunRow


@dataclass(frozen=True, slots=True)
class Target:
    """The ticket of a proposal; ``observation`` is how an outside desk showed it."""

    ticket: Ticket
    observation: Observation | None = None

    @property
    def stamp(self) -> Stamp | None:
        """The version of an outside ticket."""
        return None if self.observation is None else self.observation.stamp

    @property
    def version(self) -> DeskVersion:
        """What the ticket is compared by."""
        return self.ticket.version if self.observation is None else self.observation.stamp


def compose_closing(
    mint: Callable[[], UUID],
    providers: Providers,
    emails: ClosureEmails,
    policy: Policy,
    row: RunRow,
    target: Target,
    key: str,
    proposal: ProposeClosing,
) -> tuple[Intent, EmailContent]:
    """Make the intent of *close this ticket and send this email*. Raises ``InvalidContent``."""
    rendered = emails.render(target.ticket, proposal, policy.email.signature)
    email = build_closing_email(
        policy,
        target.ticket,
        proposal,
        rendered,
        tenant=row.tenant_id,
        key=key,
        stamp=target.stamp,
    )
    asked = (row.tenant_id, row.requester)
    return _intent(mint, providers, policy, asked, target, key, email, rendered), email


def compose_drafted(
    mint: Callable[[], UUID],
    providers: Providers,
    emails: ClosureEmails,
    policy: Policy,
    asked: tuple[TenantId, PrincipalId],
    target: Target,
    key: str,
    draft: ClosingDraft,
    language: str,
    editor: PrincipalId | None,
) -> tuple[Intent, EmailContent]:
    """Make the intent of *close this ticket and send this email* whose whole text is given.

    ``asked`` is the tenant and the requester. Raises ``InvalidContent``.
    """
    rendered = emails.lay_out(draft.text, language)
    email = build_drafted_email(
        policy, target.ticket, draft, rendered, tenant=asked[0], key=key, stamp=target.stamp
    )
    intent = _intent(mint, providers, policy, asked, target, key, email, rendered, editor)
    return intent, email


def _intent(
    mint: Callable[[], UUID],
    providers: Providers,
    policy: Policy,
    asked: tuple[TenantId, PrincipalId],
    target: Target,
    key: str,
    email: EmailContent,
    rendered: RenderedEmail,
    editor: PrincipalId | None = None,
) -> Intent:
    effects = (
        *_at_the_desk(mint, providers.desk, target),
        _sending(EffectId(mint()), providers.mail, email),
    )
    document = intent_document(
        CLOSE_TICKET,
        tenant=asked[0],
        requested_by=asked[1],
        policy_version=policy.version,
        about=about_ticket(target.ticket, target.stamp),
        effects=effects,
        templates=rendered.templates,
        edited_by=editor,
    )
    return Intent(CLOSE_TICKET, key, document, effects)


def _at_the_desk(
    mint: Callable[[], UUID], desk: TicketDesk | None, target: Target
) -> tuple[PlannedEffect, ...]:
    if desk is None or target.observation is None:
        return (_built_in_close(EffectId(mint()), target.ticket),)
    return outside_change(mint, desk, target.observation, EffectKind.TICKET_CLOSE)


def _built_in_close(id_: EffectId, ticket: Ticket) -> PlannedEffect:
    close: JsonObject = {"desk": ticket.desk, "ticket": ticket.id, "version": ticket.version}
    return PlannedEffect(
        id_,
        EffectKind.TICKET_CLOSE,
        BUILT_IN.capability,
        ticket.desk,
        canonical(close),
        close,
        {"desk": ticket.desk, "ticket": ticket.id},
        promise(BUILT_IN),
    )


def outside_change(
    mint: Callable[[], UUID], desk: TicketDesk, seen: Observation, kind: EffectKind
) -> tuple[PlannedEffect, ...]:
    """Freeze a close or a reopening with its note.

    The note is an effect of its own where the desk needs one.

    The document has no marker: it names the effect, and two equal proposals must stay equal. The
    hash of the payload covers it.
    """
    id_ = EffectId(mint())
    marker = desk_marker(id_)
    closes = kind is EffectKind.TICKET_CLOSE
    text = CLOSING_NOTE if closes else REOPENING_NOTE
    freeze = desk.freeze_close if closes else desk.freeze_reopen
    payload = freeze(seen, marker, text)
    envelope: JsonObject = {
        "ticket": seen.ticket.id,
        "marker": marker,
        "stamp": seen.stamp.as_json(),
    }
    about: JsonObject = {
        "desk": desk.name,
        "ticket": seen.ticket.id,
        "payload_sha256": hashlib.sha256(payload).hexdigest(),
    }
    note: JsonObject = {"note": text}
    declaration = replace(desk.declaration, kind=kind)
    told: JsonObject = {"guard": guard(declaration)}
    if closes:
        told = {**told, "desk_notifies": desk.notifies_on_close}

    def planned(id_: EffectId, kind: EffectKind, content: JsonObject) -> PlannedEffect:
        return PlannedEffect(
            id_,
            kind,
            desk.capability,
            desk.name,
            payload,
            envelope,
            content,
            promise(declaration),
        )

    if isinstance(desk, NotedDesk):
        return (
            planned(EffectId(mint()), EffectKind.TICKET_NOTE, {**about, **note}),
            planned(id_, kind, {**about, **told}),
        )
    return (planned(id_, kind, {**about, **note, **told}),)


def _sending(id_: EffectId, mail: MailPort, email: EmailContent) -> PlannedEffect:
    payload = mail.freeze(email, id_.hex)
    return PlannedEffect(
        id_,
        EffectKind.EMAIL_SEND,
        mail.capability,
        mail.provider,
        payload,
        {"from": email.sender.ascii_address, "to": list(email.recipients())},
        {
            "provider": mail.provider,
            "email": email.as_json(),
            "payload_sha256": hashlib.sha256(payload).hexdigest(),
        },
        promise(mail.declaration),
    )
