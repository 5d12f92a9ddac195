"""Revalidation: what must still be true at the opening, read under locks and decided purely.

Called by ``opening`` inside its transaction, after every lock is held and the time was read. The
first objection is the reason that a person reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from executor.domain import approval, identity
from executor.domain.approval import Approval, ApprovalStatus, Vote
from executor.domain.effect import EffectKind
from executor.domain.identity import Identity
from executor.domain.ids import PrincipalId, RunId, TenantId
from executor.domain.journal import Chain
from executor.domain.operation import OperationStatus
from executor.domain.policy import Permission, Policy
from executor.domain.run import RunStatus
from executor.domain.ticket import Ticket, TicketStatus
from executor.domain.transition import Reason, Refused
from executor.engine import endings
from executor.engine.ports import MailPort
from executor.store import approvals, desk, effects, operations, proposals, runs, tenants
from executor.store.connection import Connection
from executor.store.operations import OperationKey, OperationRow


@dataclass(slots=True)
class World:
    """What revalidation reads, all under locks."""

    policies: dict[TenantId, Policy]
    runs: dict[tuple[TenantId, RunId], runs.RunRow]
    tickets: dict[tuple[TenantId, str], Ticket]
    rows: dict[OperationKey, OperationRow]
    consents: dict[OperationKey, Approval]
    parts: dict[OperationKey, list[effects.EffectRow]]
    tries: dict[OperationKey, list[effects.AttemptRow]]
    asked: dict[OperationKey, list[tuple[PrincipalId, bool]]]
    people: dict[tuple[TenantId, PrincipalId], Identity]
    succeeded: set[tuple[TenantId, str]]
    chain: Chain


async def lock_world(conn: Connection, keys: Sequence[OperationKey]) -> World:
    """Take every lock in order. The runs and tickets are named by rows that never change them."""
    tenants_of = {tenant for tenant, _ in keys}
    policies = await tenants.share_policies(conn, tenants_of)
    names = await operations.peek(conn, keys)
    run_rows = await runs.lock(conn, {(n.tenant_id, n.run_id) for n in names})
    tickets: dict[tuple[TenantId, str], Ticket] = {}
    for tenant in sorted(tenants_of):
        wanted = [n.ticket_id for n in names if n.tenant_id == tenant]
        locked = await desk.lock_tickets(conn, tenant, wanted)
        tickets |= {(tenant, id_): ticket for id_, ticket in locked.items()}
    # Beside what is to open, whatever shares its intent key: a late receipt must not prove an
    # earlier one applied between this look at it and our COMMIT.
    same_key = await operations.of_keys(conn, [(n.tenant_id, n.intent_key) for n in names])
    related = await operations.lock(conn, [*keys, *((t, id_) for t, id_, *_ in same_key)])
    rows = {key: related[key] for key in keys if key in related}
    consents = await approvals.lock(conn, list(rows))
    parts = await effects.of_operations(conn, list(rows))
    tries = await effects.attempts_of(conn, list(rows))
    asked = await proposals.requesters_of(conn, list(rows))
    voters = {
        (key[0], principal)
        for key, consent in consents.items()
        for principal, vote in consent.votes
        if vote is Vote.APPROVE
    }
    people = await tenants.read_identities(
        conn, voters | {(r.tenant_id, r.requester) for r in rows.values()}
    )
    chain = await endings.lock_cards_and_chain(conn, list(rows.values()))
    succeeded = {
        (other.tenant_id, other.intent_key)
        for other in related.values()
        if other.status is OperationStatus.SUCCEEDED
    }
    return World(
        policies,
        run_rows,
        tickets,
        rows,
        consents,
        parts,
        tries,
        asked,
        people,
        succeeded,
        chain,
    )


def objection(mail: MailPort, row: OperationRow, world: World, *, first: bool) -> Refused | None:
    """Say why ``row`` may not open now, or ``None``; ``first`` tells its first opening from later
    ones.

    ``IDENTITY_UNKNOWN`` means: look at the people named in ``who`` and ask again.
    """
    policy = world.policies.get(row.tenant_id)
    consent = world.consents.get(row.key)
    if policy is None or consent is None:
        return Refused(Reason.POLICY_CHANGED)
    run = world.runs.get((row.tenant_id, row.run_id))
    return (
        run_objection(None if run is None else run.status, first=first)
        or _consent_objection(row, consent, world.chain.now, first=first)
        or _authority_objection(policy, row, consent, world)
        or target_objection(
            world.tickets.get((row.tenant_id, row.ticket_id)),
            row.ticket_id,
            row.ticket_version if first else row.closed_version,
            first=first,
        )
        or (
            Refused(Reason.ALREADY_DONE)
            if (row.tenant_id, row.intent_key) in world.succeeded
            else None
        )
        or _provider_objection(mail, row, world)
    )


def run_objection(status: RunStatus | None, *, first: bool) -> Refused | None:
    """A run that is ending or held opens nothing.

    A run that went on while it waits, or succeeded meanwhile, does not stop a later effect.
    """
    if status in (None, RunStatus.CANCELLING, RunStatus.CANCELLED, RunStatus.FAILED):
        return Refused(Reason.CANCELLED)
    if first and status is RunStatus.SUCCEEDED:
        return Refused(Reason.CANCELLED)
    return None


def _consent_objection(
    row: OperationRow, consent: Approval, now: datetime, *, first: bool
) -> Refused | None:
    if consent.digest != row.digest or consent.content_revision != row.content_revision:
        return Refused(Reason.DIGEST_MISMATCH)
    if first:
        used = approval.decide(consent, approval.Used(), now=now)
        return used if isinstance(used, Refused) else None
    if consent.status is ApprovalStatus.GRANTED:
        # A person's "send again" is an approval of its own, which this repeat has to use.
        used = approval.decide(consent, approval.Used(), now=now)
        return Refused(Reason.APPROVAL_MISSING) if isinstance(used, Refused) else None
    if consent.status is not ApprovalStatus.CONSUMED:
        return Refused(Reason.APPROVAL_MISSING)
    return None


def _authority_objection(
    policy: Policy, row: OperationRow, consent: Approval, world: World
) -> Refused | None:
    """Everybody whose word this rests on must still be allowed to give it, and be who they were.

    Votes count under the policy that is active now: stricter rules bind at the opening.
    """
    voters = [who for who, vote in consent.votes if vote is Vote.APPROVE]
    requesters = {who for who, _ in world.asked.get(row.key, [])}
    forbidden = policy.objection(row.requester, Permission.REQUEST)
    if forbidden is not None:
        return Refused(forbidden.reason, {**forbidden.detail, "who": row.requester})
    counted = [
        who
        for who in voters
        if policy.objection(who, Permission.APPROVE) is None and who not in requesters
    ]
    if len(counted) < max(policy.approval.quorum, consent.quorum):
        return Refused(Reason.NOT_PERMITTED, {"missing": Permission.APPROVE.value})
    unknown: list[str] = []
    for who in (row.requester, *counted):
        seen = world.people.get((row.tenant_id, who))
        problem = identity.objection(seen, policy.slack.team, now=world.chain.now)
        if problem is not None and problem.reason is not Reason.IDENTITY_UNKNOWN:
            return Refused(problem.reason, {**problem.detail, "who": who})
        if problem is not None:
            unknown.append(who)
    return Refused(Reason.IDENTITY_UNKNOWN, {"who": unknown}) if unknown else None


def target_objection(
    ticket: Ticket | None, ticket_id: str, wanted: int | None, *, first: bool
) -> Refused | None:
    """The ticket must stand where it was approved or, later, where our own close has left it."""
    if ticket is None:
        return Refused(Reason.TICKET_UNKNOWN, {"ticket": ticket_id})
    if ticket.version != wanted or (first and ticket.status is TicketStatus.CLOSED):
        return Refused(Reason.VERSION_CHANGED, {"approved": wanted, "version": ticket.version})
    return None


def _provider_objection(mail: MailPort, row: OperationRow, world: World) -> Refused | None:
    """The mail must leave through the account that was approved."""
    for part in world.parts[row.key]:
        if part.kind is EffectKind.EMAIL_SEND and part.provider != mail.provider:
            return Refused(
                Reason.PROVIDER_CHANGED, {"approved": part.provider, "configured": mail.provider}
            )
    return None


def whom_to_look_at(refused: Refused) -> list[PrincipalId]:
    """Name the people that an ``IDENTITY_UNKNOWN`` waits for."""
    who = refused.detail.get("who")
    return [PrincipalId(str(name)) for name in who] if isinstance(who, Sequence) else []
