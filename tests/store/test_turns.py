"""Turns of tenants in statements alone: what a claim touches stays the same as queues grow."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest
from sqlalchemy.dialects.postgresql import asyncpg as asyncpg_dialect

from executor.adapters.host_clock import SystemClock, mint_id
from executor.domain.ids import TenantId
from executor.engine.claims import claim_operations
from executor.engine.engine import Engine
from executor.store import operations, statements
from executor.store.address import asyncpg_dsn
from executor.store.database import Database
from executor.store.statements import statement
from tests.support.neighbours import NO_REFERENCES, pour_operations, pour_runs

FLOODING, QUIET, OTHER = "T1", "T2", "T3"
_TENANTS = """
INSERT INTO tenants (id, name, timezone)
SELECT id, id, 'UTC' FROM unnest(ARRAY['T1', 'T2', 'T3']) id;
INSERT INTO policies (tenant_id, version, document)
SELECT id, 'v', '{"admission": {"max_active_runs": 20}}' FROM tenants;
UPDATE tenants SET policy_version = 'v';
"""
_OVERDUE = """
UPDATE runs SET deadline_at = due_at;
INSERT INTO approvals (tenant_id, id, seq, status, operation_id, digest, content_revision, terms,
    opened_at, presented_at, decide_by, nudge_at)
SELECT o.tenant_id, o.id, 1, 'open', o.id, o.digest, 1,
       '{"quorum": 1, "requirements": [], "decide_within": 86400, "use_within": 3600}',
       now(), now(), o.due_at, o.due_at
FROM operations o;
INSERT INTO effects (tenant_id, id, seq, status, operation_id, position, kind, capability, promise,
    provider, idempotency_key, payload, payload_digest, envelope)
SELECT o.tenant_id, o.id, 1, 'dispatched', o.id, 1, 'email.send', 'opaque', '', 'smtp',
       CAST(o.id AS text), '', sha256(''), '{}'
FROM operations o;
INSERT INTO attempts (tenant_id, id, seq, status, operation_id, effect_id, number, epoch,
    capability, provider, idempotency_key, payload_digest, opened_at, deadline_at, conclude_at,
    reported_at, recover_at)
SELECT o.tenant_id, gen_random_uuid(), 2, t.status, o.id, o.id, t.number, 1, 'opaque', 'smtp', 'k',
       '', now(), o.due_at - interval '1 minute', o.due_at,
       CASE WHEN t.number = 2 THEN now() END, CASE WHEN t.number = 2 THEN o.due_at END
FROM operations o
CROSS JOIN (VALUES ('dispatched', 1), ('unknown', 2)) t (status, number);
INSERT INTO late_evidence (tenant_id, provider, event_id, reference, mail_id, kind, evidence,
    happened_at, received_at, due_at)
SELECT o.tenant_id, 'resend', CAST(o.id AS text), o.id, '1', 'delivered', '{}', now(), now(),
       o.due_at
FROM operations o;
UPDATE operations SET status = 'partial', compensate_at = due_at, due_at = NULL, opened_at = now(),
    ended_at = now();
"""
SWEEPS: dict[str, dict[str, object]] = {
    "runs_past_their_deadline": {},
    "approvals_past_their_time": {},
    "approvals_to_nudge_about": {},
    "attempts_to_conclude": {},
    "attempts_to_recover": {"kinds": ["email.send"]},
    "due_late_evidence": {},
    "closings_to_compensate": {},
}
CLAIMS: dict[str, dict[str, object]] = {
    "tenants_with_due_runs": {"tried": [], "most": 8},
    "due_runs": {"tenants": [QUIET, FLOODING], "most": 8},
    "tenants_with_due_operations": {"tried": [], "most": 8},
    "due_operations": {"tenants": [QUIET, FLOODING], "most": 8},
    "operations_to_wake_for": {"most": 8},
    "count_places": {"tenant": FLOODING},
}


@pytest.fixture
async def tenants(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection to a database with three tenants and no tie between rows."""
    connection = await asyncpg.connect(dsn=asyncpg_dsn(database_url))
    await connection.execute(NO_REFERENCES)
    await connection.execute(_TENANTS)
    yield connection
    await connection.close()


def _read(node: Any) -> int:
    """Count the rows that a plan has read, those that it dropped included."""
    own = 0
    if "Relation Name" in node:
        dropped = node.get("Rows Removed by Filter", 0)
        # The plan tells averages of its loops, rounded: 0.67 of three loops are two rows.
        own = round(node["Actual Loops"] * (node["Actual Rows"] + dropped))
    return own + sum(_read(part) for part in node.get("Plans", []))


async def _rows_read(connection: asyncpg.Connection, name: str) -> int:
    compiled = statement(name).clause.compile(
        dialect=asyncpg_dialect.dialect()  # type: ignore[no-untyped-call]
    )
    arguments = [CLAIMS[name][bind] for bind in compiled.positiontup or ()]
    transaction = connection.transaction()
    await transaction.start()
    try:
        found = await connection.fetchval(f"EXPLAIN (ANALYZE, FORMAT JSON) {compiled}", *arguments)
    finally:
        await transaction.rollback()
    return _read(json.loads(found)[0]["Plan"])


async def test_a_claim_reads_no_more_rows_however_long_the_queue_is(
    tenants: asyncpg.Connection,
) -> None:
    read: dict[str, list[int]] = {name: [] for name in CLAIMS}
    for round_number, count in enumerate((100, 4_000)):
        for tenant in (FLOODING, QUIET):
            await pour_runs(tenants, tenant, count, f"{round_number}:")
            await pour_operations(tenants, tenant, count, f"{round_number}:")
        await tenants.execute("UPDATE operations SET wake_pending = true")
        await tenants.execute("VACUUM ANALYZE runs, operations")
        for name in CLAIMS:
            read[name].append(await _rows_read(tenants, name))
    assert {name: few for name, (few, many) in read.items() if many > few} == {}
    assert max(many for _, many in read.values()) < 100


async def test_one_tenants_due_operations_delay_anothers_by_one_claim_at_most(
    tenants: asyncpg.Connection, database: Database
) -> None:
    engine = Engine(database, SystemClock(), mint_id)
    await pour_operations(tenants, FLOODING, 50, "")
    whose = [(await claim_operations(engine, "w1", 1))[0].claim.key[0] for _ in range(3)]
    await pour_operations(tenants, QUIET, 2, "")
    whose += [(await claim_operations(engine, "w1", 1))[0].claim.key[0] for _ in range(3)]
    assert whose == [FLOODING] * 3 + [QUIET, FLOODING, QUIET]
    await pour_operations(tenants, OTHER, 9, "")
    dealt = [c.claim.key[0] for c in await claim_operations(engine, "w1", 6)]
    assert sorted(dealt) == [FLOODING] * 3 + [OTHER] * 3


@pytest.mark.parametrize(("mine", "next_is"), [(2, FLOODING), (1, QUIET)])
async def test_an_operation_that_somebody_holds_keeps_nobody_waiting(
    tenants: asyncpg.Connection, database: Database, mine: int, next_is: str
) -> None:
    engine = Engine(database, SystemClock(), mint_id)
    await pour_operations(tenants, FLOODING, mine, "")
    await pour_operations(tenants, QUIET, 1, "")
    async with tenants.transaction():
        held = await tenants.fetchval(
            "SELECT id FROM operations WHERE tenant_id = $1 ORDER BY due_at LIMIT 1 FOR UPDATE",
            FLOODING,
        )
        [taken] = await claim_operations(engine, "w1", 1)
        assert taken.claim.key[0] == next_is
        await claim_operations(engine, "w1", 3)
        assert await claim_operations(engine, "w1", 3) == []
    assert [c.claim.key[1] for c in await claim_operations(engine, "w1", 1)] == [held]


async def test_runs_are_woken_for_every_tenant_in_each_round(
    tenants: asyncpg.Connection, database: Database
) -> None:
    for tenant, count in ((FLOODING, 50), (QUIET, 1), (OTHER, 2)):
        await pour_operations(tenants, tenant, count, "")
    await tenants.execute("UPDATE operations SET wake_pending = true")
    async with database.transaction() as conn:
        woken = [tenant for tenant, _ in await operations.waking(conn, 6)]
    assert sorted(woken) == [FLOODING] * 3 + [QUIET] + [OTHER] * 2


async def test_of_more_tenants_than_a_round_has_room_for_none_is_always_left_out(
    tenants: asyncpg.Connection, database: Database
) -> None:
    for tenant in (FLOODING, QUIET, OTHER):
        await pour_operations(tenants, tenant, 5, "")
    await tenants.execute("UPDATE operations SET wake_pending = true")
    seen: set[TenantId] = set()
    async with database.transaction() as conn:
        for _ in range(200):
            seen |= {tenant for tenant, _ in await operations.waking(conn, 1)}
    assert seen == {FLOODING, QUIET, OTHER}


async def test_every_sweep_looks_at_each_tenant_before_it_looks_at_more_of_one(
    tenants: asyncpg.Connection, database: Database
) -> None:
    await pour_runs(tenants, FLOODING, 30, "")
    await pour_operations(tenants, FLOODING, 30, "")
    await pour_runs(tenants, QUIET, 1, "")
    await pour_operations(tenants, QUIET, 1, "")
    # What is the quiet tenant's is overdue last.
    for table in ("runs", "operations"):
        await tenants.execute(f"UPDATE {table} SET due_at = now() WHERE tenant_id = $1", QUIET)  # noqa: S608
    await tenants.execute(_OVERDUE)
    seen = {}
    async with database.transaction() as conn:
        for name, binds in SWEEPS.items():
            rows = await statements.run(conn, name, most=2, **binds)
            seen[name] = {row.tenant_id for row in rows}
    assert seen == {name: {FLOODING, QUIET} for name in SWEEPS}
