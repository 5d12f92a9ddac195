"""Everything that concerns one person at one moment: what waits for them, what they have running,
and what nobody knows yet.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from executor.domain.authority import Authority
from executor.domain.grant import Resource
from executor.domain.ids import OperationId, PrincipalId, RunId, TenantId
from executor.domain.operation import OperationStatus
from executor.domain.risk import RiskFacts
from executor.domain.run import RunStatus
from executor.domain.terms import Requirement, terms_for
from executor.domain.transition import Refused
from executor.engine.engine import Engine
from executor.engine.pending import Pending, read_pending
from executor.engine.rights import read_rights
from executor.engine.status import runs_in_the_way
from executor.store import card_records, clock, operation_lookups, overviews, tenants
from executor.store.connection import Connection


@dataclass(frozen=True, slots=True)
class OwnRun:
    """A run of this person that goes on; ``waits_on`` numbers what people have to decide for it.

    ``at_work`` counts what has all the places where it waits for one.
    """

    number: int
    status: RunStatus
    goal: str
    created_at: datetime
    waits_on: tuple[int, ...]
    at_work: int | None = None


@dataclass(frozen=True, slots=True)
class InDoubt:
    """Something of which nobody knows whether it was done.

    ``looks_again_at`` is when a machine looks once more; without it people of ``requirements`` have
    to say what became of it, and ``may_settle`` tells whether this person is one of them.
    """

    id: OperationId
    number: int
    resource: Resource
    since: datetime
    looks_again_at: datetime | None
    requirements: tuple[Requirement, ...]
    may_settle: bool


@dataclass(frozen=True, slots=True)
class Home:
    """What one person has to look at; ``more_…`` count what is left out."""

    tenant_id: TenantId
    pending: Pending
    runs: tuple[OwnRun, ...]
    more_runs: int
    doubts: tuple[InDoubt, ...]
    more_doubts: int


async def home_of(
    engine: Engine, tenant: TenantId, principal: PrincipalId, *, most: int
) -> Home | Refused:
    """Read what concerns one person, ``most`` of each kind, or say why nothing does.

    Opens its own transaction.
    """
    async with engine.database.transaction() as conn:
        pending = await read_pending(conn, tenant, principal, most)
        if isinstance(pending, Refused):
            return pending
        rows = await overviews.runs_of(conn, tenant, principal, most)
        mine = await operation_lookups.of_runs(conn, [(tenant, RunId(row.id)) for row in rows])
        doubts = await _doubts(conn, tenant, principal, most + 1)
        at_work = await runs_in_the_way(conn, tenant, (row.status for row in rows))
    runs = tuple(
        OwnRun(
            row.number,
            RunStatus(row.status),
            row.goal,
            row.created_at,
            tuple(n for _, _, run, n, s in mine if run == row.id and s in _WAITING),
            at_work if row.status == RunStatus.QUEUED else None,
        )
        for row in rows
    )
    more = rows[0].all_of_them - len(rows) if rows else 0
    return Home(tenant, pending, runs, more, doubts[:most], max(0, len(doubts) - most))


_WAITING = frozenset({OperationStatus.AWAITING})


async def _doubts(
    conn: Connection, tenant: TenantId, principal: PrincipalId, most: int
) -> tuple[InDoubt, ...]:
    unknown = await card_records.in_doubt(conn, tenant, None, most)
    if not unknown:
        return ()
    policies = await tenants.share_policies(conn, [tenant])
    rights = await read_rights(conn, policies, [(tenant, principal)])
    authority = rights.authority(policies[tenant], await clock.now(conn))
    rows = {row.id: row for row in await overviews.about(conn, tenant, [u.id for u in unknown])}
    return tuple(_doubt(authority, principal, rows[u.id], u.since, u.recover_at) for u in unknown)


def _doubt(
    authority: Authority,
    principal: PrincipalId,
    row: card_records.AnyRow,
    since: datetime,
    looks_again_at: datetime | None,
) -> InDoubt:
    terms = terms_for(authority.policy, row.kind, RiskFacts.from_json(row.risks))
    resource = Resource(row.kind, row.place, row.thing)
    objection = authority.objection_to_voting(principal, terms.requirements, resource)
    return InDoubt(
        OperationId(row.id),
        row.number,
        resource,
        since,
        looks_again_at,
        terms.requirements,
        objection is None and looks_again_at is None,
    )
