"""Giving roles, passing one's own on for a while, and taking them back.

Whoever gives or takes waits for every decision and opening of the tenant under way and keeps others
out until COMMIT: a revocation is before an opening or after it, and the journal tells which.
Who may not is journaled, as whoever may not decide is. Locks: the tenant, the grant, the tenant's
journal head.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from executor.domain import grant, identity
from executor.domain.authority import Authority
from executor.domain.grant import NO_SINGLE_THING, Grant, GrantId, GrantStatus, is_pattern
from executor.domain.ids import PrincipalId, TenantId, is_operator, slack_user
from executor.domain.journal import Chain, tenant_subject
from executor.domain.payloads import JsonObject
from executor.domain.policy import BUILTIN_ROLES, Permission
from executor.domain.secret_text import as_kept
from executor.domain.transition import Machine, NoChange, Reason, Refused
from executor.engine.engine import Engine
from executor.engine.failpoint import Commit
from executor.engine.rights import read_rights
from executor.store import approvals, grants, journal, tenants
from executor.store.connection import Connection
from executor.store.grants import GrantLine
from executor.store.people import read_identities

LONGEST_NOTE = 500
MOST_LISTED = 200
_FORBIDDEN = (Reason.NOT_PERMITTED, Reason.IDENTITY_REFUSED, Reason.OTHER_WORKSPACE)


@dataclass(frozen=True, slots=True)
class Wish:
    """A role to be given; without ``starts_at`` it holds at once, without ``ends_at`` for good.

    ``on_behalf_of`` passes on that person's own role, which needs an end.
    """

    principal: PrincipalId
    role: str
    resource: str = grant.EVERYTHING
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    on_behalf_of: PrincipalId | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Given:
    """The grant that was stored, and when."""

    grant: Grant
    at: datetime

    @property
    def number(self) -> int:
        """By which people name it."""
        return self.grant.number


@dataclass(frozen=True, slots=True)
class TakenBack:
    """The grant that does not count any more."""

    grant: Grant


async def give(
    engine: Engine, tenant: TenantId, by: PrincipalId, wish: Wish, request: bytes | None = None
) -> Given | NoChange | Refused:
    """Give a role; opens its own transaction. The same wish twice gives two grants.

    An operator gives any role; anybody passes on a role of their own. ``request`` is the hash of
    the signed request behind it: the same one again is ``NoChange``, so that nobody repeats it and
    gets back what was revoked. Raises ``CommitUnknown``.
    """
    async with engine.committing(Commit.GRANT) as conn:
        named = [by, wish.principal, *([wish.on_behalf_of] if wish.on_behalf_of else [])]
        authority = await _authority(conn, tenant, named)
        if authority is None:
            return Refused(Reason.NOT_PERMITTED, {"missing": Permission.OPERATE.value})
        if request and not await approvals.remember_requests(conn, [(tenant, request)]):
            return NoChange()
        objection = await _objection_to_giving(conn, authority, tenant, by, wish)
        subject = tenant_subject(tenant)
        chain = await journal.lock_chain(conn, [(tenant, subject)])
        if objection is not None:
            await _note_refusal(conn, chain, tenant, by, "give", objection)
            return objection
        new = Grant(
            GrantId(engine.mint()),
            0,
            wish.principal,
            wish.role,
            wish.resource,
            wish.starts_at or chain.now,
            wish.ends_at,
            by,
            wish.on_behalf_of,
        )
        entry = chain.birth(
            Machine.GRANT,
            tenant,
            subject,
            new.id,
            GrantStatus.ACTIVE,
            by,
            {
                "principal": new.principal,
                "role": new.role,
                "resource": new.resource,
                "starts_at": new.starts_at.isoformat(),
                "ends_at": None if new.ends_at is None else new.ends_at.isoformat(),
                "on_behalf_of": new.on_behalf_of,
            },
        )
        note = as_kept(wish.note, LONGEST_NOTE)
        number = await grants.insert(conn, tenant, new, note, entry, chain.now)
        await journal.advance(conn, chain)
    return Given(replace(new, number=number), chain.now)


async def take_back(
    engine: Engine, tenant: TenantId, by: PrincipalId, number: int
) -> TakenBack | NoChange | Refused:
    """Revoke a grant; opens its own transaction. Once more: ``NoChange``.

    An operator revokes any; beside that whoever gave it, passed it on or has it. Raises
    ``CommitUnknown``.
    """
    async with engine.committing(Commit.GRANT) as conn:
        authority = await _authority(conn, tenant, [by])
        line = await grants.lock(conn, tenant, number)
        if line is None or authority is None:
            return Refused(Reason.GRANT_UNKNOWN, {"grant": number})
        found = line.grant
        objection = None
        if by not in (found.granted_by, found.on_behalf_of, found.principal):
            objection = await objection_to_operating(conn, authority, tenant, by)
        subject = tenant_subject(tenant)
        chain = await journal.lock_chain(conn, [(tenant, subject)])
        if objection is not None:
            await _note_refusal(conn, chain, tenant, by, "revoke", objection)
            return objection
        decision = grant.decide(found, grant.Revoked())
        if isinstance(decision, NoChange | Refused):
            return decision
        entry = chain.move(Machine.GRANT, tenant, subject, found.id, found.seq, decision, by)
        await grants.revoke(conn, tenant, found, by, entry, chain.now)
        await journal.advance(conn, chain)
    return TakenBack(found)


async def list_grants(
    engine: Engine, tenant: TenantId, *, past: bool = False
) -> Sequence[GrantLine]:
    """List a tenant's grants, newest first, ``MOST_LISTED`` at most; opens its own transaction."""
    async with engine.database.transaction() as conn:
        return await grants.listed(conn, tenant, past=past, most=MOST_LISTED)


async def _authority(
    conn: Connection, tenant: TenantId, people: Sequence[PrincipalId]
) -> Authority | None:
    """Keep decisions and openings out, then read rights and the time."""
    await grants.hold_rights(conn, tenant)
    policies = await tenants.share_policies(conn, [tenant])
    rights = await read_rights(conn, policies, [(tenant, who) for who in people])
    return rights.of(policies.get(tenant), (await journal.lock_chain(conn, [])).now)


async def _objection_to_giving(
    conn: Connection, authority: Authority, tenant: TenantId, by: PrincipalId, wish: Wish
) -> Refused | None:
    known = BUILTIN_ROLES | set(authority.policy.roles)
    if wish.role not in known:
        return Refused(Reason.ROLE_UNKNOWN, {"role": wish.role, "known": sorted(known)})
    if not is_pattern(wish.resource):
        return Refused(Reason.GRANT_INVALID, {"problem": "resource"})
    user = slack_user(wish.principal)
    if user is None or user[0] != authority.policy.slack.team:
        return Refused(Reason.GRANT_INVALID, {"problem": "person"})
    begins = wish.starts_at or authority.now
    if wish.ends_at is not None and wish.ends_at <= max(begins, authority.now):
        return Refused(Reason.GRANT_INVALID, {"problem": "times"})
    giver = wish.on_behalf_of
    if giver is None:
        return await objection_to_operating(conn, authority, tenant, by)
    if wish.ends_at is None or giver == wish.principal:
        return Refused(Reason.GRANT_INVALID, {"problem": "delegation"})
    objection = (
        await _objection_to_person(conn, authority, tenant, by)
        if giver == by
        else await objection_to_operating(conn, authority, tenant, by)
    )
    if objection is not None:
        return objection
    if authority.own(giver, wish.role) is not None:
        return None
    unseen = authority.stale_groups((f"role:{wish.role}",))
    if unseen:
        return Refused(Reason.IDENTITY_UNKNOWN, {"groups": list(unseen)})
    return Refused(Reason.NOT_PERMITTED, {"missing": "own_role", "role": wish.role})


async def objection_to_operating(
    conn: Connection, authority: Authority, tenant: TenantId, by: PrincipalId
) -> Refused | None:
    """Say why somebody may not give or take the roles of others, or ``None``.

    Whoever holds the database's credentials may; people need the role of an operator, and about
    everything.
    """
    if is_operator(by):
        return None
    forbidden = authority.objection(by, Permission.OPERATE, NO_SINGLE_THING)
    return forbidden or await _objection_to_person(conn, authority, tenant, by)


async def _objection_to_person(
    conn: Connection, authority: Authority, tenant: TenantId, by: PrincipalId
) -> Refused | None:
    known = (await read_identities(conn, [(tenant, by)])).get((tenant, by))
    return identity.objection(known, authority.policy.slack.team, now=authority.now)


async def _note_refusal(
    conn: Connection,
    chain: Chain,
    tenant: TenantId,
    by: PrincipalId,
    asked: str,
    objection: Refused,
) -> None:
    if objection.reason not in _FORBIDDEN:
        return
    subject = tenant_subject(tenant)
    detail: JsonObject = {"asked": asked, "reason": objection.reason.value}
    refused = chain.note(tenant, subject, subject, "grant_refused", by, detail)
    await journal.write_notes(conn, [refused])
    await journal.advance(conn, chain)
