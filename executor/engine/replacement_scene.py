"""Everything around one operation that somebody wants replaced, locked and judged.

What an edit and asking again share before they do anything. Locks: policies, runs, tickets,
episodes, operations, approvals, cards, journal heads.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from executor.domain import identity, operation
from executor.domain.approval import Approval
from executor.domain.authority import Authority
from executor.domain.identity import Identity
from executor.domain.intent import CLOSE_TICKET
from executor.domain.journal import Chain
from executor.domain.operation import LIVE, OperationStatus
from executor.domain.payloads import JsonObject, JsonValue
from executor.domain.policy import Policy
from executor.domain.ticket import BUILTIN_DESK
from executor.domain.transition import Reason, Refused
from executor.engine import endings, revalidation
from executor.engine.clicked_view import clicked_view
from executor.engine.closure_email import ClosureEmails
from executor.engine.composing import Target
from executor.engine.engine import Engine
from executor.engine.episode_keys import closing_keys
from executor.engine.providers import Providers
from executor.engine.replacement import Pressed
from executor.engine.rights import Rights, read_rights
from executor.engine.sighting import TOO_SLOW, Sight
from executor.store import (
    approvals,
    cards,
    desk,
    operation_lookups,
    operations,
    proposals,
    revisions,
    runs,
    tenants,
)
from executor.store.connection import Connection
from executor.store.operations import OperationRow
from executor.store.people import read_identities
from executor.store.proposals import Asking
from executor.store.revisions import Successor


class LookedTooLongAgo(Exception):
    """The outside ticket has to be looked at again; nothing was decided."""


@dataclass(frozen=True, slots=True)
class Workshop:
    """What replacements are made with."""

    engine: Engine
    providers: Providers
    emails: ClosureEmails


@dataclass(frozen=True, slots=True)
class Scene:
    """One operation that somebody wants replaced, with everything around it locked.

    ``others`` share its intent key, or have the key that the ticket's closing has now. ``view`` is
    the digest of the drawing that was pressed; ``None``: it is no message of ours.
    """

    conn: Connection
    shop: Workshop
    pressed: Pressed
    row: OperationRow
    consent: Approval
    run: runs.RunRow
    runs: dict[endings.RunKey, runs.RunRow]
    target: Target | None
    sight: Sight | None
    key: str
    others: Sequence[OperationRow]
    successor: Successor | None
    askings: Sequence[Asking]
    policy: Policy
    rights: Rights
    person: Identity | None
    view: bytes | None
    chain: Chain

    @property
    def found(self) -> Target:
        """The ticket, which was judged to be there."""
        assert self.target is not None, "its ticket was looked at"
        return self.target

    @property
    def email(self) -> dict[str, Any]:
        """The email that the operation would send, as it stands in its intent."""
        parts = json.loads(self.row.intent)["effects"]
        found: dict[str, Any] = next(part["email"] for part in parts if "email" in part)
        return found

    @property
    def authority(self) -> Authority:
        """Who may do what, by facts that are fresh."""
        return self.rights.authority(self.policy, self.chain.now)


async def lock_scene(
    conn: Connection, shop: Workshop, pressed: Pressed, sight: Sight | None, *, last_look: bool
) -> Scene | Refused:
    """Take every lock in order, or say why there is nothing here that could be replaced.

    Raises ``LookedTooLongAgo`` unless it was the last look.
    """
    tenant, key = pressed.tenant_id, pressed.key
    policies = await tenants.share_policies(conn, [tenant])
    named = await operation_lookups.peek(conn, [key])
    if not named or tenant not in policies:
        return Refused(Reason.CONTENT_CHANGED)
    [names] = named
    if names.ticket is None:
        return Refused(Reason.NOT_REPLACEABLE)
    run_rows = await runs.lock(
        conn, {(tenant, names.run_id), *await proposals.waiting_runs(conn, [key])}
    )
    targets = await _lock_target(conn, names, sight)
    keys = await closing_keys(conn, tenant, names.desk, targets)
    intent_key = keys.get(names.ticket_id, names.intent_key)
    of_keys = await operation_lookups.of_keys(
        conn, [(tenant, intent_key), (tenant, names.intent_key)]
    )
    rows = await operations.lock(conn, [key, *((t, id_) for t, id_, *_ in of_keys)])
    row = rows[key]
    consent = (await approvals.lock(conn, [key])).get(key)
    if consent is None:
        return Refused(Reason.CONTENT_CHANGED)
    askings = await proposals.of_operation(conn, key)
    involved = [(tenant, pressed.principal), (tenant, row.requester)]
    rights = await read_rights(conn, policies, involved)
    people = await read_identities(conn, [(tenant, pressed.principal)])
    chain = await endings.lock_cards_and_chain(conn, [row])
    place = (await cards.lock(conn, [key])).get(key)
    posting = (await cards.postings(conn, [(tenant, pressed.nonce)])).get(pressed.nonce)
    too_old = sight is not None and sight.problem is None and not sight.is_usable(chain.now)
    if too_old and not last_look:
        raise LookedTooLongAgo
    return Scene(
        conn,
        shop,
        pressed,
        row,
        consent,
        run_rows[tenant, names.run_id],
        run_rows,
        targets.get(names.ticket_id),
        sight,
        intent_key,
        [other for other in rows.values() if other.key != key],
        await revisions.successor_of(conn, key),
        askings,
        policies[tenant],
        rights,
        people.get((tenant, pressed.principal)),
        clicked_view(place, posting, row.id, pressed.channel, pressed.message_ts),
        chain,
    )


async def _lock_target(
    conn: Connection, names: operation_lookups.OperationNames, sight: Sight | None
) -> dict[str, Target]:
    """Lock a ticket of the built-in desk; one of an outside desk was seen before."""
    if names.desk == BUILTIN_DESK:
        locked = await desk.lock_tickets(conn, names.tenant_id, [names.ticket_id])
        return {id_: Target(ticket) for id_, ticket in locked.items()}
    if sight is None or sight.observation is None:
        return {}
    return {names.ticket_id: Target(sight.observation.ticket, sight.observation)}


def objection_to_person(scene: Scene) -> Refused | None:
    """Say why this person may not act at all just now."""
    return identity.objection(scene.person, scene.policy.slack.team, now=scene.chain.now)


def requester_objection(scene: Scene) -> Refused | None:
    """Say why whoever asked for it first may not ask for it now."""
    authority = scene.rights.authority_to_propose(scene.policy, scene.chain.now)
    return revalidation.requester_objection(authority, scene.row.requester, scene.row.resource)


def objection_to_view(scene: Scene) -> Refused | None:
    """Say why what was pressed is not what stands there now."""
    pressed, consent = scene.pressed, scene.consent
    if scene.row.kind != CLOSE_TICKET or consent.id != pressed.approval_id:
        return Refused(Reason.CONTENT_CHANGED)
    if scene.view is None:
        return Refused(Reason.NOT_SHOWN)
    if (consent.digest, consent.content_revision) != (pressed.digest, pressed.content_revision):
        return Refused(Reason.CONTENT_CHANGED)
    return None


def objection_to_sight(scene: Scene) -> Refused | None:
    """Say why nothing can be decided about the ticket: its desk did not tell in time."""
    if scene.row.desk == BUILTIN_DESK:
        return None
    sight = scene.sight
    if sight is not None and sight.is_usable(scene.chain.now):
        return None
    problem = TOO_SLOW if sight is None else sight.problem or TOO_SLOW
    return Refused(Reason.DESK_UNAVAILABLE, {"ticket": scene.row.ticket_id, "problem": problem})


def refusal_of_ended(scene: Scene) -> Refused:
    """Say why an operation that no longer waits cannot be replaced, and what took its place."""
    after = scene.successor
    if after is None or scene.row.status is not OperationStatus.SUPERSEDED:
        return Refused(operation.refusal_for(scene.row.status))
    detail: dict[str, JsonValue] = {"successor": after.number}
    if after.editor is not None:
        detail["editor"] = after.editor
    return Refused(Reason.SUPERSEDED, detail)


def objection_to_repeat(scene: Scene) -> Refused | None:
    """Say what else is done or under way about the same closing of the ticket."""
    for other in scene.others:
        if other.intent_key == scene.key and other.status is OperationStatus.SUCCEEDED:
            return Refused(Reason.ALREADY_DONE)
    for other in scene.others:
        if other.intent_key == scene.key and other.status in LIVE:
            told: JsonObject = {"operation": other.number, "status": other.status.value}
            return Refused(Reason.CONFLICTS_WITH, told)
    return None
