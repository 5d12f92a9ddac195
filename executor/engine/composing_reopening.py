"""Freezes what a reopening would do: the ticket at the version that our own close made, and why."""

from __future__ import annotations

import json
from collections.abc import Callable
from uuid import UUID

from executor.domain.closing import REOPENING_NOTE
from executor.domain.effect import EffectKind
from executor.domain.ids import EffectId, PrincipalId
from executor.domain.intent import (
    REOPEN_TICKET,
    Intent,
    PlannedEffect,
    about_ticket,
    intent_document,
    reopen_key,
)
from executor.domain.payloads import JsonObject, canonical
from executor.domain.policy import Policy
from executor.domain.ticket import Ticket
from executor.engine.composing import Target, outside_change
from executor.engine.desk import REOPENED
from executor.engine.desk_port import TicketDesk
from executor.engine.promises import promise
from executor.store.operations import OperationRow


def compose_reopening(
    mint: Callable[[], UUID],
    desk: TicketDesk | None,
    policy: Policy,
    requester: PrincipalId,
    closing: OperationRow,
    target: Target,
) -> Intent:
    """Make the intent of *open this ticket again, for the email of its closing was not sent*."""
    key = reopen_key(closing.desk, closing.ticket_id, closing.id)
    if desk is None or target.observation is None:
        effects: tuple[PlannedEffect, ...] = (_built_in(EffectId(mint()), target.ticket),)
    else:
        effects = outside_change(mint, desk, target.observation, EffectKind.TICKET_REOPEN)
    document = intent_document(
        REOPEN_TICKET,
        tenant=closing.tenant_id,
        requested_by=requester,
        policy_version=policy.version,
        about=about_ticket(target.ticket, target.stamp),
        effects=effects,
        templates={},
    )
    return Intent(REOPEN_TICKET, key, {**document, "undoes": _undone(closing)}, effects)


def _built_in(id_: EffectId, ticket: Ticket) -> PlannedEffect:
    reopening: JsonObject = {
        "desk": ticket.desk,
        "ticket": ticket.id,
        "version": ticket.version,
        "note": REOPENING_NOTE,
    }
    return PlannedEffect(
        id_,
        EffectKind.TICKET_REOPEN,
        REOPENED.capability,
        ticket.desk,
        canonical(reopening),
        reopening,
        {"desk": ticket.desk, "ticket": ticket.id, "note": REOPENING_NOTE},
        promise(REOPENED),
    )


def _undone(closing: OperationRow) -> JsonObject:
    """Spell what would be undone: which closing, and which email of it was not sent, and why."""
    frozen = json.loads(closing.intent)
    email = next(part["email"] for part in frozen["effects"] if "email" in part)
    return {
        "operation": str(closing.id),
        "number": closing.number,
        "digest": closing.digest.hex(),
        "mail_not_sent": {
            "to": [box["address"] for box in email["to"]],
            "subject": email["subject"],
            "reason": None if closing.reason is None else closing.reason.value,
        },
    }
