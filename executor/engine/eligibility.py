"""Whether somebody may decide at all, asked before a form is put before them.

This is a courtesy: what counts is asked again, under locks, when the decision is made.
"""

from __future__ import annotations

from executor.domain import identity
from executor.domain.ids import PrincipalId, TenantId
from executor.domain.policy import Permission
from executor.domain.transition import Reason, Refused
from executor.engine.engine import Engine
from executor.store import clock, tenants


async def objection_to_deciding(
    engine: Engine, tenant: TenantId, principal: PrincipalId
) -> Refused | None:
    """Say why this person may not decide, as the rule for clicks would; opens a transaction."""
    async with engine.database.transaction() as conn:
        policy = (await tenants.share_policies(conn, [tenant])).get(tenant)
        known = await tenants.read_identities(conn, [(tenant, principal)])
        now = await clock.now(conn)
    if policy is None:
        return Refused(Reason.NOT_PERMITTED)
    return policy.objection(principal, Permission.APPROVE) or identity.objection(
        known.get((tenant, principal)), policy.slack.team, now=now
    )
