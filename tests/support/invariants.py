"""What must be true after every test of the engine, whatever happened in it."""

from __future__ import annotations

from sqlalchemy import text

from executor.domain.ids import RunId, TenantId
from executor.domain.journal import verify
from executor.store import journal
from executor.store.database import Database

_NEVER = {
    "an effect without an approval that its own operation consumed": """
        SELECT a.id FROM attempts a JOIN operations o USING (tenant_id)
        WHERE o.id = a.operation_id AND NOT EXISTS (
            SELECT FROM approvals p WHERE p.tenant_id = o.tenant_id AND p.operation_id = o.id
            AND p.status = 'consumed' AND p.digest = o.digest)""",
    "an ended run with a lease": """
        SELECT id FROM runs WHERE ended_at IS NOT NULL AND lease_owner IS NOT NULL""",
    "an unopened operation of an ended run": """
        SELECT o.id FROM operations o JOIN runs r ON r.tenant_id = o.tenant_id AND r.id = o.run_id
        WHERE o.status IN ('awaiting', 'approved') AND r.ended_at IS NOT NULL""",
    "an operation that can act while its run is cancelled": """
        SELECT o.id FROM operations o JOIN runs r ON r.tenant_id = o.tenant_id AND r.id = o.run_id
        WHERE o.status = 'executing' AND r.status IN ('cancelled', 'succeeded')""",
    "a run's account that is not the sum of its reservations": """
        SELECT b.run_id FROM run_budgets b LEFT JOIN (
            SELECT tenant_id, run_id,
                   sum(amount_microusd) FILTER (WHERE status IN ('held', 'unknown')) AS held,
                   sum(amount_microusd) FILTER (WHERE status = 'unknown') AS unknown,
                   sum(actual_microusd) AS spent
            FROM reservations GROUP BY 1, 2) r USING (tenant_id, run_id)
        WHERE (b.held_microusd, b.unknown_microusd, b.spent_microusd)
            <> (COALESCE(r.held, 0), COALESCE(r.unknown, 0), COALESCE(r.spent, 0))""",
    "a day's account that is not the sum of its reservations": """
        SELECT d.day FROM tenant_days d LEFT JOIN (
            SELECT tenant_id, day,
                   sum(amount_microusd) FILTER (WHERE status IN ('held', 'unknown')) AS held,
                   sum(amount_microusd) FILTER (WHERE status = 'unknown') AS unknown,
                   sum(actual_microusd) AS spent
            FROM reservations GROUP BY 1, 2) r USING (tenant_id, day)
        WHERE (d.held_microusd, d.unknown_microusd, d.spent_microusd)
            <> (COALESCE(r.held, 0), COALESCE(r.unknown, 0), COALESCE(r.spent, 0))""",
    "a call of a model whose money went to another run": """
        SELECT c.reservation_id FROM model_calls c
        JOIN reservations v ON v.tenant_id = c.tenant_id AND v.id = c.reservation_id
        WHERE v.run_id <> c.run_id""",
    "a call that is over while its money is held as for one that is not": """
        SELECT c.reservation_id FROM model_calls c
        JOIN reservations v ON v.tenant_id = c.tenant_id AND v.id = c.reservation_id
        WHERE (c.status = 'asked') <> (v.status = 'held')""",
    "a recorded reply of a model that no call was made for": """
        SELECT s.run_id FROM (
            SELECT tenant_id, run_id, count(*) AS replies FROM steps
            WHERE kind = 'model' AND content ? 'usage' GROUP BY 1, 2) s
        LEFT JOIN (
            SELECT tenant_id, run_id, count(*) AS calls FROM model_calls
            WHERE status = 'replied' GROUP BY 1, 2) c USING (tenant_id, run_id)
        WHERE s.replies > COALESCE(c.calls, 0)""",
    "a closing that is compensated without a reopening that was done": """
        SELECT o.id FROM operations o WHERE o.status = 'compensated' AND NOT EXISTS (
            SELECT FROM operations r WHERE r.tenant_id = o.tenant_id AND r.compensates = o.id
            AND r.status = 'succeeded')""",
    "two successes of one intent key": """
        SELECT intent_key FROM operations WHERE status = 'succeeded'
        GROUP BY tenant_id, intent_key HAVING count(*) > 1""",
    "a journal that goes on where its record does not stand": """
        SELECT j.entity_id FROM journal j JOIN (
            SELECT tenant_id, id, seq FROM runs UNION ALL SELECT tenant_id, id, seq FROM operations
            UNION ALL SELECT tenant_id, id, seq FROM effects
            UNION ALL SELECT tenant_id, id, seq FROM attempts
            UNION ALL SELECT tenant_id, id, seq FROM approvals
            UNION ALL SELECT tenant_id, id, seq FROM reservations) s
            ON s.tenant_id = j.tenant_id AND s.id = j.entity_id
        WHERE j.machine IS NOT NULL AND j.seq > s.seq""",
}


async def check(database: Database) -> None:
    """Assert that the stored records and every run's chain hold."""
    async with database.transaction() as conn:
        for what, query in _NEVER.items():
            assert (await conn.execute(text(query))).all() == [], what
        for row in (await conn.execute(text("SELECT tenant_id, id FROM runs"))).all():
            entries, head = await journal.read_chain(conn, TenantId(row.tenant_id), RunId(row.id))
            assert verify(entries, head) is None
