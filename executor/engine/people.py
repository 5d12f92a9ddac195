"""What Slack says about people and their groups: stored when the bot has looked, asked for when
somebody waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from executor.domain.groups import GroupObservation
from executor.domain.identity import FRESH_FOR, Identity, objection, somebody_elsewhere
from executor.domain.ids import PrincipalId, TenantId, slack_user
from executor.domain.transition import Refused
from executor.engine.engine import Engine
from executor.engine.events import StoredEvent
from executor.store import clock, inbox, people, tenants
from executor.store.wakeups import Kind

AT_ONCE = 50
GROUP_LOOK_EVERY_SECONDS = 5.0
"""``usergroups.users.list`` is Tier 2, 20 a minute (docs.slack.dev, rate limits, 2026)."""

_YOUNG_FOR = FRESH_FOR / 2
"""Half the time is kept back, so that an answer is still fresh when it is used."""


@dataclass(frozen=True, slots=True)
class ToLookAt:
    """Of whom the newest observation is too old to decide on."""

    people: tuple[PrincipalId, ...] = ()
    groups: tuple[str, ...] = ()


async def observe(
    engine: Engine, tenant: TenantId, principal: PrincipalId, identity: Identity
) -> None:
    """Store an observation, unless a newer one is stored. Opens its own transaction."""
    async with engine.database.transaction() as conn:
        await people.put_identity(conn, tenant, principal, identity)
    engine.ring(Kind.WORK)


async def observe_group(
    engine: Engine, tenant: TenantId, group: str, observation: GroupObservation
) -> None:
    """Store who is in a group, unless a newer look is stored. Opens its own transaction."""
    async with engine.database.transaction() as conn:
        await people.put_group(conn, tenant, group, observation)
    engine.ring(Kind.WORK)


async def to_look_at(
    engine: Engine, tenant: TenantId, who: Sequence[PrincipalId], groups: Sequence[str] = ()
) -> ToLookAt:
    """Say which of these, and of the groups that the active policy names, have to be looked at.

    Opens its own transaction.
    """
    async with engine.database.transaction() as conn:
        policy = (await tenants.share_policies(conn, [tenant])).get(tenant)
        named = {*groups, *(policy.groups if policy is not None else ())}
        known = await people.read_identities(conn, [(tenant, one) for one in who])
        seen = await people.read_groups(conn, [(tenant, g) for g in named]) if named else {}
        now = await clock.now(conn)
    young = {one for (_, one), its in known.items() if now - its.observed_at <= _YOUNG_FOR}
    young_groups = {
        group for (_, group), its in seen.items() if now - its.observed_at <= _YOUNG_FOR
    }
    return ToLookAt(
        tuple(one for one in who if one not in young), tuple(sorted(named - young_groups))
    )


async def is_seen_lately(engine: Engine, tenant: TenantId, group: str) -> bool:
    """Say whether a group was looked at a short while ago. Opens its own transaction."""
    async with engine.database.transaction() as conn:
        seen = (await people.read_groups(conn, [(tenant, group)])).get((tenant, group))
        now = await clock.now(conn)
    return seen is not None and now - seen.observed_at <= _YOUNG_FOR


async def wanted(engine: Engine, tenant: TenantId) -> ToLookAt:
    """List whom and what the executor waits for. Opens its own transaction."""
    async with engine.database.transaction() as conn:
        return ToLookAt(
            tuple(await people.wanted_identities(conn, tenant, AT_ONCE)),
            tuple(await people.wanted_groups(conn, tenant, AT_ONCE)),
        )


async def claim_group_look(engine: Engine, tenant: TenantId, group: str) -> datetime | None:
    """Take the next look at a group, as of the database's time; ``None``: it is not due yet.

    Looks are shared by all processes. Opens its own transaction.
    """
    async with engine.database.transaction() as conn:
        return await people.claim_group_look(conn, tenant, group, GROUP_LOOK_EVERY_SECONDS)


async def group_is_silent(
    engine: Engine, tenant: TenantId, group: str, problem: str, wait_seconds: float
) -> None:
    """Keep why a look at a group was not answered; what was seen before ages on.

    Opens its own transaction.
    """
    async with engine.database.transaction() as conn:
        await people.note_silence_about_group(conn, tenant, group, problem, wait_seconds)


async def who_acts(
    engine: Engine, tenant: TenantId, claimed: PrincipalId, member: PrincipalId
) -> PrincipalId | None:
    """Name the principal behind a request that says its sender is ``claimed``, of another team.

    It is ``member`` where Slack's facts say that this member of ours is of that team as well;
    somebody of that team otherwise, who can do nothing here. ``None``: ``member`` was not looked
    at in time. Opens its own transaction.
    """
    user = slack_user(claimed)
    async with engine.database.transaction() as conn:
        seen = (await people.read_identities(conn, [(tenant, member)])).get((tenant, member))
        now = await clock.now(conn)
        if seen is None or user is None or now - seen.observed_at > FRESH_FOR:
            return None
        if seen.is_of(tenant) and seen.agrees_with(user[0]):
            return member
        await people.put_identity(conn, tenant, claimed, somebody_elsewhere(user[0], now))
    return claimed


async def objection_to_member(
    engine: Engine, tenant: TenantId, principal: PrincipalId
) -> Refused | None:
    """Say why this is no full member of the tenant's workspace, or ``None``.

    Opens its own transaction.
    """
    async with engine.database.transaction() as conn:
        seen = await people.read_identities(conn, [(tenant, principal)])
        now = await clock.now(conn)
    return objection(seen.get((tenant, principal)), tenant, now=now)


async def handle_by_outdating(
    engine: Engine, event: StoredEvent, who: Sequence[PrincipalId], groups: Sequence[str]
) -> None:
    """Let what was seen of people and groups before an event count for nothing, and handle it.

    Opens its own transaction.
    """
    async with engine.database.transaction() as conn:
        if not await inbox.handled(conn, event):
            return
        now = await clock.now(conn)
        await people.outdate(conn, event.tenant_id, who, groups, now, now - FRESH_FOR)
    engine.ring(Kind.IDENTITIES)


async def group_problems(engine: Engine, tenant: TenantId) -> dict[str, int]:
    """Count the groups of the active policy of which Slack tells nothing, by its reason.

    Opens its own transaction.
    """
    async with engine.database.transaction() as conn:
        policy = (await tenants.share_policies(conn, [tenant])).get(tenant)
        if policy is None or not policy.groups:
            return {}
        return await people.group_problems(conn, tenant, policy.groups)
