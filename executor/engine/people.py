"""What Slack says about people: stored when the bot has looked, asked for when somebody waits."""

from __future__ import annotations

from collections.abc import Sequence

from executor.domain.identity import FRESH_FOR, Identity
from executor.domain.ids import PrincipalId, TenantId
from executor.engine.engine import Engine
from executor.store import clock, tenants
from executor.store.wakeups import Kind

AT_ONCE = 50


async def observe(
    engine: Engine, tenant: TenantId, principal: PrincipalId, identity: Identity
) -> None:
    """Store an observation, unless a newer one is stored. Opens its own transaction."""
    async with engine.database.transaction() as conn:
        await tenants.put_identity(conn, tenant, principal, identity)
    engine.ring(Kind.WORK)


async def to_look_at(
    engine: Engine, tenant: TenantId, people: Sequence[PrincipalId]
) -> list[PrincipalId]:
    """Say whose newest observation is too old to decide on. Opens its own transaction."""
    async with engine.database.transaction() as conn:
        known = await tenants.read_identities(conn, [(tenant, who) for who in people])
        now = await clock.now(conn)
    # Half the time is kept back, so that an answer is still fresh when it is used.
    return [
        who
        for who in people
        if (tenant, who) not in known or now - known[tenant, who].observed_at > FRESH_FOR / 2
    ]


async def wanted(engine: Engine) -> list[tuple[TenantId, PrincipalId]]:
    """List whom the executor waits for. Opens its own transaction."""
    async with engine.database.transaction() as conn:
        return await tenants.wanted_identities(conn, AT_ONCE)
