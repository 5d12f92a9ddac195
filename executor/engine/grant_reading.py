"""What people ask about grants: which there are, and what each of them rests on just now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from zoneinfo import ZoneInfo

from executor.domain import identity
from executor.domain.authority import Authority
from executor.domain.grant import Grant
from executor.domain.ids import PrincipalId, TenantId, is_operator
from executor.domain.policy import BUILTIN_ROLES, Permission, Policy
from executor.domain.transition import Reason, Refused
from executor.engine.engine import Engine
from executor.engine.granting import MOST_LISTED, objection_to_operating
from executor.engine.rights import read_rights
from executor.store import clock, grants, tenants
from executor.store.connection import Connection
from executor.store.grants import GrantLine
from executor.store.people import read_identities


class Footing(StrEnum):
    """What a grant rests on beside itself."""

    NOTHING_ELSE = "nothing_else"
    GIVER_HAS_IT = "giver_has_it"
    GIVER_LOST_IT = "giver_lost_it"
    GIVER_UNSEEN = "giver_unseen"
    ROLE_IS_GONE = "role_is_gone"


@dataclass(frozen=True, slots=True)
class ListedGrant:
    """One grant as it is listed."""

    line: GrantLine
    footing: Footing


@dataclass(frozen=True, slots=True)
class GrantList:
    """Grants, newest first, of one moment; ``is_whole`` where they are those of all people."""

    grants: Sequence[ListedGrant]
    now: datetime
    zone: ZoneInfo
    is_whole: bool


@dataclass(frozen=True, slots=True)
class LocalTime:
    """A moment, and the zone in which a tenant's people read a clock."""

    now: datetime
    zone: ZoneInfo


async def local_time(engine: Engine, tenant: TenantId) -> LocalTime:
    """Read the database's time and the tenant's zone. Opens its own transaction."""
    async with engine.database.transaction() as conn:
        policy = (await tenants.share_policies(conn, [tenant])).get(tenant)
        return LocalTime(await clock.now(conn), _zone(policy))


async def see_grants(
    engine: Engine, tenant: TenantId, by: PrincipalId, *, past: bool = False
) -> GrantList | Refused:
    """List grants: all of them to an operator, to others those that they have, gave or passed on.

    ``past`` asks for those that are over as well; ``MOST_LISTED`` at most. Opens its own
    transaction.
    """
    async with engine.database.transaction() as conn:
        policies = await tenants.share_policies(conn, [tenant])
        policy = policies.get(tenant)
        if policy is None:
            return Refused(Reason.NOT_PERMITTED, {"missing": Permission.OPERATE.value})
        rights = await read_rights(conn, policies, [(tenant, by)])
        own = rights.authority(policy, await clock.now(conn))
        stranger = await _objection_to_reading(conn, own, tenant, by)
        if stranger is not None:
            return stranger
        is_whole = await objection_to_operating(conn, own, tenant, by) is None
        about = None if is_whole else by
        found = await grants.listed(conn, tenant, past=past, most=MOST_LISTED, about=about)
        givers = {line.grant.on_behalf_of for line in found} - {None}
        rights = await read_rights(conn, policies, [(tenant, giver) for giver in givers if giver])
        authority = rights.authority(policy, own.now)
    listed = [ListedGrant(line, _footing(authority, line.grant)) for line in found]
    return GrantList(listed, own.now, _zone(policy), is_whole)


async def _objection_to_reading(
    conn: Connection, authority: Authority, tenant: TenantId, by: PrincipalId
) -> Refused | None:
    """Whoever only shares a channel with us reads nothing."""
    if is_operator(by):
        return None
    known = (await read_identities(conn, [(tenant, by)])).get((tenant, by))
    return identity.objection(known, authority.policy.slack.team, now=authority.now)


def _footing(authority: Authority, grant: Grant) -> Footing:
    if grant.role not in BUILTIN_ROLES and grant.role not in authority.policy.roles:
        return Footing.ROLE_IS_GONE
    if grant.on_behalf_of is None:
        return Footing.NOTHING_ELSE
    if authority.own(grant.on_behalf_of, grant.role) is not None:
        return Footing.GIVER_HAS_IT
    unseen = authority.stale_groups((f"role:{grant.role}",))
    return Footing.GIVER_UNSEEN if unseen else Footing.GIVER_LOST_IT


def _zone(policy: Policy | None) -> ZoneInfo:
    return ZoneInfo("UTC" if policy is None else policy.tenant.timezone)
