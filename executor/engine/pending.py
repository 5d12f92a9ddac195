"""What waits for one person: what that person's vote could still count for, most urgent first.

The rules are those of a click; what counts is asked again, under locks, when the click comes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from executor.domain import identity
from executor.domain.approval import Vote
from executor.domain.authority import Authority
from executor.domain.grant import Resource
from executor.domain.ids import OperationId, PrincipalId, TenantId
from executor.domain.risk import RiskFacts
from executor.domain.terms import Terms
from executor.domain.transition import Reason, Refused
from executor.engine.engine import Engine
from executor.engine.rights import read_rights
from executor.store import clock, overviews, tenants
from executor.store.card_records import AnyRow
from executor.store.connection import Connection
from executor.store.people import read_identities

MOST_LOOKED_AT = 500
"""Open approvals of a tenant that are looked at for one person; those with the least time left."""


@dataclass(frozen=True, slots=True)
class PendingLine:
    """One operation that waits for a person's vote; what it is about is as in ``Resource``."""

    id: OperationId
    number: int
    kind: str
    place: str
    thing: str
    requester: PrincipalId
    asked_at: datetime
    decide_by: datetime


@dataclass(frozen=True, slots=True)
class Pending:
    """What waits as of ``now``; ``more`` waits beside it and, if not ``is_all``, perhaps others."""

    now: datetime
    lines: tuple[PendingLine, ...]
    more: int = 0
    is_all: bool = True


async def pending_for(
    engine: Engine, tenant: TenantId, principal: PrincipalId, most: int
) -> Pending | Refused:
    """List what waits for one person, ``most`` at most, or say why nothing could.

    Opens its own transaction.
    """
    async with engine.database.transaction() as conn:
        return await read_pending(conn, tenant, principal, most)


async def read_pending(
    conn: Connection, tenant: TenantId, principal: PrincipalId, most: int
) -> Pending | Refused:
    """List what waits for one person inside the caller's transaction; see ``pending_for``."""
    policies = await tenants.share_policies(conn, [tenant])
    policy = policies.get(tenant)
    if policy is None:
        return Refused(Reason.NOT_PERMITTED, {"missing": "approve"})
    rows = await overviews.to_decide(conn, tenant, MOST_LOOKED_AT)
    voters = {PrincipalId(who) for row in rows for who, *_ in row.votes}
    rights = await read_rights(conn, policies, [(tenant, who) for who in {principal, *voters}])
    known = await read_identities(conn, [(tenant, principal)])
    authority = rights.authority(policy, await clock.now(conn))
    stranger = identity.objection(
        known.get((tenant, principal)), policy.slack.team, now=authority.now
    )
    if stranger is not None:
        return stranger
    mine = [row for row in rows if _waits_for(authority, principal, row)]
    return Pending(
        authority.now,
        tuple(_line(row) for row in mine[:most]),
        max(0, len(mine) - most),
        len(rows) < MOST_LOOKED_AT,
    )


def _waits_for(authority: Authority, principal: PrincipalId, row: AnyRow) -> bool:
    """Say whether a vote of this person would count for a requirement that is not met yet."""
    if any(who == principal for who, *_ in row.votes):
        return False
    facts = RiskFacts.from_json(row.risks)
    terms = Terms.from_json(row.terms).under(authority.policy, row.kind, facts)
    besides = frozenset(
        PrincipalId(who) for who in (*row.asked_by, row.requester, row.editor) if who is not None
    )
    if principal in besides:
        return False
    yes = _counting(row.votes, step_up=terms.step_up)
    resource = Resource(row.kind, row.place, row.thing)
    open_ = authority.lacking(terms.requirements, yes, resource, besides)
    if not open_:
        return False
    return authority.objection_to_voting(principal, open_, resource, besides) is None


def _counting(votes: Sequence[Sequence[object]], *, step_up: bool) -> list[PrincipalId]:
    return [
        PrincipalId(str(who))
        for who, vote, factored in votes
        if vote == Vote.APPROVE and (factored or not step_up)
    ]


def _line(row: AnyRow) -> PendingLine:
    return PendingLine(
        OperationId(row.id),
        row.number,
        row.kind,
        row.place,
        row.thing,
        PrincipalId(row.requester),
        row.created_at,
        row.decide_by,
    )
