"""Whether somebody may decide at all, asked before a form is put before them.

This is a courtesy: what counts is asked again, under locks, when the decision is made.
"""

from __future__ import annotations

from executor.domain import identity
from executor.domain.grant import Resource
from executor.domain.ids import OperationId, PrincipalId, TenantId
from executor.domain.risk import RiskFacts
from executor.domain.terms import Terms
from executor.domain.transition import Reason, Refused
from executor.engine.engine import Engine
from executor.engine.rights import read_rights
from executor.store import card_records, clock, tenants
from executor.store.people import read_identities


async def objection_to_deciding(
    engine: Engine, tenant: TenantId, principal: PrincipalId, operation: OperationId
) -> Refused | None:
    """Say why this person may not decide, as the rule for clicks would; opens a transaction."""
    async with engine.database.transaction() as conn:
        policies = await tenants.share_policies(conn, [tenant])
        row = await card_records.operation(conn, tenant, operation)
        rights = await read_rights(conn, policies, [(tenant, principal)])
        known = await read_identities(conn, [(tenant, principal)])
        now = await clock.now(conn)
    policy = policies.get(tenant)
    if policy is None or row is None:
        return Refused(Reason.NOT_PERMITTED)
    facts = RiskFacts.from_json(row.risks)
    terms = Terms.from_json(row.terms).under(policy, row.kind, facts)
    return rights.authority(policy, now).objection_to_voting(
        principal, terms.requirements, Resource(row.kind, row.place, row.thing)
    ) or identity.objection(known.get((tenant, principal)), policy.slack.team, now=now)
