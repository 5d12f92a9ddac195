"""Claims and sweeps touch what is due: their plans use the partial indexes, whatever else waits."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import asyncpg
import pytest
from sqlalchemy.dialects.postgresql import asyncpg as asyncpg_dialect

from executor.store.address import asyncpg_dsn
from executor.store.statements import statement

# Rows as a busy installation has them: thousands wait for people, none of which is due. They have
# no journal, so what ties them to one is dropped first; no index is.
_NO_REFERENCES = """
DO $$ DECLARE found record; BEGIN
    FOR found IN SELECT conrelid::regclass AS owner, conname FROM pg_constraint
                 WHERE contype = 'f' AND connamespace = 'public'::regnamespace LOOP
        EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', found.owner, found.conname);
    END LOOP;
END $$
"""
_MANY = """
INSERT INTO tenants (id, name, timezone) VALUES ('T1', 'T1', 'UTC');
INSERT INTO runs (tenant_id, id, seq, status, goal, requester, origin_key, request_digest,
    reply_to, policy_version, created_at, deadline_at)
SELECT 'T1', gen_random_uuid(), 3, 'waiting', 'g', 'r', CAST(n AS text), '', '{}', 'v',
       now(), now() + interval '7 days'
FROM generate_series(1, 4000) n;
INSERT INTO operations (tenant_id, id, seq, status, run_id, kind, intent_key, intent, digest,
    content_digest, content_revision, requester, policy_version, desk, ticket_id, ticket_version,
    created_at)
SELECT 'T1', r.id, 1, 'awaiting', r.id, 'close_ticket', 'close:d:' || r.origin_key || ':1', 'x',
       sha256('x'), '', 1, 'r', 'v', 'd', r.origin_key, 1, now()
FROM runs r;
INSERT INTO approvals (tenant_id, id, seq, status, operation_id, digest, content_revision, quorum,
    decide_within_seconds, use_within_seconds, opened_at, presented_at, decide_by)
SELECT 'T1', o.id, 1, 'open', o.id, o.digest, 1, 1, 86400, 3600, now(), now(),
       now() + interval '1 day'
FROM operations o;
INSERT INTO decisions (tenant_id, approval_id, principal, vote, note, digest, content_revision,
    shown_at, decided_at)
SELECT 'T1', a.id, 'p', 'approve', '', a.digest, 1, '{}', now() FROM approvals a;
INSERT INTO proposals (tenant_id, run_id, step, ordinal, operation_id, requester, linked,
    proposed_at)
SELECT 'T1', o.run_id, 1, 0, o.id, 'r', false, now() FROM operations o;
INSERT INTO effects (tenant_id, id, seq, status, operation_id, position, kind, capability, promise,
    provider, idempotency_key, payload, payload_digest, envelope)
SELECT 'T1', o.id, 1, 'planned', o.id, 1, 'email.send', 'opaque', '', 'smtp', CAST(o.id AS text),
       '', sha256(''), '{}'
FROM operations o;
INSERT INTO attempts (tenant_id, id, seq, status, operation_id, effect_id, number, epoch,
    capability, provider, idempotency_key, payload_digest, opened_at, deadline_at, conclude_at,
    reported_at)
SELECT 'T1', o.id, 2, 'applied', o.id, o.id, 1, 1, 'opaque', 'smtp', CAST(o.id AS text),
       sha256(''), now(), now(), now() + interval '1 minute', now()
FROM operations o;
INSERT INTO reservations (tenant_id, id, seq, status, run_id, day, purpose, amount_microusd,
    actual_microusd, reserved_at, deadline_at)
SELECT 'T1', o.id, 2, 'settled', o.id, CAST(now() AS date), 'm', 1, 1, now(), now()
FROM operations o;
INSERT INTO cards (tenant_id, subject_id, subject_kind, wanted_revision, shown_revision, channel,
    ts, wanted_at)
SELECT 'T1', o.id, 'operation', 1, 1, 'C1', CAST(o.id AS text), now() FROM operations o;
INSERT INTO inbox (tenant_id, event_id, payload, received_at, handled_at)
SELECT 'T1', CAST(o.id AS text), '{}', now(), now() FROM operations o;
INSERT INTO late_evidence (tenant_id, provider, event_id, reference, mail_id, kind, evidence,
    happened_at, received_at, matched_at)
SELECT 'T1', 'resend', CAST(o.id AS text), o.id, '1', 'delivered', '{}', now(), now(), now()
FROM operations o;
ANALYZE;
"""

NIL = UUID(int=0)
PLANS: dict[str, tuple[dict[str, object], set[str]]] = {
    "due_runs": ({"most": 10}, {"runs_that_are_due"}),
    "due_operations": ({"most": 10}, {"operations_that_are_due"}),
    "attempts_to_conclude": ({"most": 10}, {"attempts_to_conclude"}),
    "attempts_to_recover": (
        {"most": 10, "kinds": ["email.send"]},
        {"attempts_to_recover", "effects_pkey"},
    ),
    "closings_to_compensate": ({"most": 10}, {"closings_to_compensate"}),
    "reopenings_of": (
        {"tenants": ["T1"], "ids": [NIL]},
        {"one_reopening_a_closing"},
    ),
    "approvals_past_their_time": (
        {"most": 10},
        {"approvals_to_decide_by", "approvals_to_use_by"},
    ),
    "reservations_past_their_deadline": ({"most": 10}, {"reservations_past_their_deadline"}),
    "runs_past_their_deadline": ({"most": 10}, {"runs_not_ended_by_deadline"}),
    "operations_to_wake_for": ({"most": 10}, {"operations_whose_runs_wait_to_be_woken"}),
    "claim_cards": ({"most": 10, "lease_seconds": 30.0}, {"cards_that_are_due"}),
    "claim_events": ({"most": 10, "lease_seconds": 30.0}, {"inbox_that_is_due"}),
    "due_late_evidence": ({"most": 10}, {"late_evidence_that_is_due"}),
    "operations_of_keys": (
        {"tenants": ["T1"], "intent_keys": ["close:d:7:1"]},
        {"one_live_operation_an_intent_key", "operations_that_may_have_succeeded"},
    ),
}


async def _plan(connection: asyncpg.Connection, name: str, binds: dict[str, object]) -> Any:
    dialect = asyncpg_dialect.dialect()  # type: ignore[no-untyped-call]
    compiled = statement(name).clause.compile(dialect=dialect)
    arguments = [binds[bind] for bind in compiled.positiontup or ()]
    found = await connection.fetchval(f"EXPLAIN (FORMAT JSON) {compiled}", *arguments)
    return json.loads(found)[0]["Plan"]


def _nodes(plan: Any) -> list[dict[str, Any]]:
    return [plan, *(node for part in plan.get("Plans", []) for node in _nodes(part))]


@pytest.fixture
async def busy(database_url: str) -> Any:
    """A connection to a database in which thousands of rows wait."""
    connection = await asyncpg.connect(dsn=asyncpg_dsn(database_url))
    await connection.execute(_NO_REFERENCES)
    await connection.execute(_MANY)
    yield connection
    await connection.close()


async def test_claims_and_sweeps_read_their_partial_index_and_no_table(
    busy: asyncpg.Connection,
) -> None:
    wrong = []
    for name, (binds, wanted) in PLANS.items():
        nodes = _nodes(await _plan(busy, name, binds))
        used = {node["Index Name"] for node in nodes if "Index Name" in node}
        scanned = [
            node["Relation Name"]
            for node in nodes
            if node["Node Type"] == "Seq Scan" and node["Relation Name"] != "clock_offset"
        ]
        if not wanted <= used or scanned:
            wrong.append((name, sorted(used), scanned))
    assert wrong == []


async def test_the_time_is_an_index_condition_and_not_asked_of_every_row(
    busy: asyncpg.Connection,
) -> None:
    for name in ("due_runs", "due_operations", "claim_cards", "attempts_to_conclude"):
        binds, wanted = PLANS[name]
        nodes = _nodes(await _plan(busy, name, binds))
        [scan] = [node for node in nodes if node.get("Index Name") in wanted]
        assert "<=" in scan.get("Index Cond", ""), (name, scan)


async def test_what_belongs_to_one_operation_or_run_is_found_by_index(
    busy: asyncpg.Connection,
) -> None:
    one = (await busy.fetchval("SELECT id FROM operations LIMIT 1"),)
    keys = {"tenants": ["T1"], "operations": [one[0]]}
    cases: dict[str, dict[str, object]] = {
        "lock_operations": {"tenants": ["T1"], "ids": [one[0]]},
        "lock_runs": {"tenants": ["T1"], "ids": [one[0]]},
        "lock_approvals": dict(keys),
        "effects_of_operations": dict(keys),
        "attempts_of_operations": dict(keys),
        "requesters_of": dict(keys),
        "runs_that_wait_for": dict(keys),
        "operations_of_runs": {"tenants": ["T1"], "runs": [one[0]]},
        "proposals_of_run": {"tenant": "T1", "run": one[0]},
        "lock_cards": {"tenants": ["T1"], "subjects": [one[0]]},
        "effects_by_id": {"tenants": ["T1"], "ids": [one[0]]},
        "delivery_notes": {"tenant": "T1", "operation": one[0], "most": 50},
    }
    for name, binds in cases.items():
        nodes = _nodes(await _plan(busy, name, binds))
        scanned = [n["Relation Name"] for n in nodes if n["Node Type"] == "Seq Scan"]
        assert scanned == [], name
