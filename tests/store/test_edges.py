"""The table of edges in the database is the list of edges in the domain."""

from __future__ import annotations

from sqlalchemy import text

from executor.domain import approval, budget, effect, grant, operation, run
from executor.domain.transition import BORN, Machine
from executor.store.database import Database

EDGES: dict[Machine, frozenset[tuple[str, str]]] = {
    Machine.RUN: run.EDGES,
    Machine.OPERATION: operation.EDGES,
    Machine.EFFECT: effect.EFFECT_EDGES,
    Machine.ATTEMPT: effect.ATTEMPT_EDGES,
    Machine.APPROVAL: approval.EDGES,
    Machine.RESERVATION: budget.EDGES,
    Machine.GRANT: grant.EDGES,
}
STATUSES: dict[Machine, list[str]] = {
    Machine.RUN: list(run.RunStatus),
    Machine.OPERATION: list(operation.OperationStatus),
    Machine.EFFECT: list(effect.EffectStatus),
    Machine.ATTEMPT: list(effect.AttemptStatus),
    Machine.APPROVAL: list(approval.ApprovalStatus),
    Machine.RESERVATION: list(budget.ReservationStatus),
    Machine.GRANT: list(grant.GrantStatus),
}


async def test_the_database_knows_exactly_the_edges_of_the_domain(database: Database) -> None:
    async with database.transaction() as conn:
        rows = (await conn.execute(text("SELECT machine, source, target FROM edges"))).all()
    stored = {(row.machine, row.source, row.target) for row in rows}
    listed = {(m.value, source, target) for m, edges in EDGES.items() for source, target in edges}
    assert stored == listed


def test_every_edge_is_between_known_statuses_and_every_status_can_be_reached() -> None:
    assert set(EDGES) == set(Machine)
    for machine, edges in EDGES.items():
        known = {str(status) for status in STATUSES[machine]}
        assert {source for source, _ in edges} <= known | {BORN}
        assert {target for _, target in edges} == known
        assert sum(source == BORN for source, _ in edges) == 1
