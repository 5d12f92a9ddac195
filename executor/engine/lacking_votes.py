"""Whose votes are still lacking, by the rights of the moment in which somebody looks.

For cards alone: what counts is worked out again, under locks, with each vote.
"""

from __future__ import annotations

from collections.abc import Sequence

from executor.domain.approval import ApprovalStatus, Vote
from executor.domain.grant import Resource
from executor.domain.ids import PrincipalId, TenantId
from executor.domain.interest import Interest
from executor.domain.risk import RiskFacts
from executor.domain.terms import Requirement, Terms
from executor.engine.rights import read_rights
from executor.store import clock, tenants
from executor.store.card_records import AnyRow
from executor.store.connection import Connection


async def lacking_votes(
    conn: Connection,
    tenant: TenantId,
    row: AnyRow,
    asked: Sequence[tuple[PrincipalId, bool]],
    votes: Sequence[AnyRow],
) -> tuple[Requirement, ...] | None:
    """Say which votes an operation lacks, each requirement with the number of those; ``None``: it
    waits for none. ``row`` is the operation as its card reads it.
    """
    if row.approval_status != ApprovalStatus.OPEN:
        return None
    policies = await tenants.share_policies(conn, [tenant])
    yes = [PrincipalId(vote.principal) for vote in votes if vote.vote == Vote.APPROVE]
    rights = await read_rights(conn, policies, [(tenant, who) for who in yes])
    authority = rights.authority(policies[tenant], await clock.now(conn))
    facts = RiskFacts.from_json(row.risks)
    terms = Terms.from_json(row.terms).under(authority.policy, row.kind, facts)
    editor = None if row.editor is None else PrincipalId(row.editor)
    besides = Interest(PrincipalId(row.requester), asked, editor).people
    resource = Resource(row.kind, row.place, row.thing)
    without = {v.principal for v in votes if terms.step_up and not v.second_factor}
    counting = [who for who in yes if who not in without]
    return authority.lacking(terms.requirements, counting, resource, besides)
