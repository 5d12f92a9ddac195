"""Claims and sweeps touch what is due: their plans use the partial indexes, whatever else waits."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import asyncpg
import pytest
from sqlalchemy.dialects.postgresql import asyncpg as asyncpg_dialect

from executor.store.address import asyncpg_dsn
from executor.store.statements import statement
from tests.support.neighbours import NO_REFERENCES

# Rows as a busy installation has them: thousands wait for people, none of which is due.
_MANY = """
INSERT INTO tenants (id, name, timezone) VALUES ('T1', 'T1', 'UTC');
INSERT INTO runs (tenant_id, id, seq, status, goal, requester, origin_key, request_digest,
    reply_to, policy_version, created_at, deadline_at, max_parked_seconds, parked_until)
SELECT 'T1', gen_random_uuid(), 3, 'waiting', 'g', 'r', CAST(n AS text), '', '{}', 'v',
       now(), now() + interval '7 days', 259200, now() + interval '3 days'
FROM generate_series(1, 4000) n;
INSERT INTO operations (tenant_id, id, seq, status, run_id, kind, intent_key, intent, digest,
    content_digest, content_revision, requester, policy_version, place, thing, desk, ticket_id,
    ticket_version, risks, created_at)
SELECT 'T1', r.id, 1, 'awaiting', r.id, 'close_ticket', 'close:d:' || r.origin_key || ':1', 'x',
       sha256('x'), '', 1, 'r', 'v', 'd', r.origin_key, 'd', r.origin_key, 1, '{}', now()
FROM runs r;
INSERT INTO approvals (tenant_id, id, seq, status, operation_id, digest, content_revision, terms,
    opened_at, presented_at, decide_by)
SELECT 'T1', o.id, 1, 'open', o.id, o.digest, 1,
       '{"quorum": 1, "requirements": [], "decide_within": 86400, "use_within": 3600}',
       now(), now(), now() + interval '1 day'
FROM operations o;
INSERT INTO decisions (tenant_id, approval_id, principal, vote, note, digest, content_revision,
    shown_at, decided_at)
SELECT 'T1', a.id, 'p', 'approve', '', a.digest, 1, '{}', now() FROM approvals a;
INSERT INTO proposals (tenant_id, run_id, step, ordinal, operation_id, requester, linked,
    proposed_at)
SELECT 'T1', o.run_id, 1, 0, o.id, 'r', false, now() FROM operations o;
INSERT INTO steps (tenant_id, run_id, number, kind, answers_step, answers_ordinal, content,
    recorded_at)
SELECT 'T1', o.run_id, 2, 'tool', 1, 0, '{}', now() FROM operations o;
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
INSERT INTO questions (tenant_id, id, run_id, operation_id, asked_by, question, request_hash,
    asked_at, unanswered, closed_at)
SELECT 'T1', o.id, o.run_id, o.id, 'p', 'Why?', sha256(CAST(CAST(o.id AS text) AS bytea)), now(),
       'model_failed', now()
FROM operations o;
INSERT INTO pauses (tenant_id, run_id, scope, needed_microusd, raise_id, paused_at, look_at)
SELECT 'T1', o.run_id, 'run', 1, o.id, now(), now() + interval '1 minute' FROM operations o;
INSERT INTO agent_requests (tenant_id, id, agent, channel, ts, thread_ts, request_key, kind,
    content_digest, outcome, run_id, answer, asked_at)
SELECT 'T1', o.id, o.ticket_id, 'C1', CAST(o.id AS text), '1.1', '1', 'close_ticket', '',
       'accepted', o.run_id, '{}', now() - interval '1 day'
FROM operations o;
INSERT INTO reservations (tenant_id, id, seq, status, run_id, day, purpose, amount_microusd,
    actual_microusd, reserved_at, deadline_at)
SELECT 'T1', o.id, 2, 'settled', o.id, CAST(now() AS date), 'm', 1, 1, now(), now()
FROM operations o;
INSERT INTO model_calls (tenant_id, reservation_id, run_id, number, model, request_digest,
    max_output_tokens, status, problem, asked_at, ended_at)
SELECT 'T1', o.id, o.run_id, 1, 'm', sha256(''), 1, 'failed', '429', now(), now()
FROM operations o;
INSERT INTO cards (tenant_id, subject_id, subject_kind, wanted_revision, shown_revision, channel,
    ts, wanted_at)
SELECT 'T1', o.id, 'operation', 1, 1, 'C1', CAST(o.id AS text), now() FROM operations o;
INSERT INTO card_postings (tenant_id, nonce, subject_id, channel, content_revision, view_digest,
    outcome, ts, attempted_at)
SELECT 'T1', o.id, o.id, 'C1', 1, '', 'posted', CAST(o.id AS text), now() FROM operations o;
INSERT INTO inbox (tenant_id, event_id, payload, received_at, handled_at)
SELECT 'T1', CAST(o.id AS text), '{}', now(), now() FROM operations o;
INSERT INTO late_evidence (tenant_id, provider, event_id, reference, mail_id, kind, evidence,
    happened_at, received_at, matched_at)
SELECT 'T1', 'resend', CAST(o.id AS text), o.id, '1', 'delivered', '{}', now(), now(), now()
FROM operations o;
ANALYZE;
"""

# With one row, or one row a tenant.
_SHORT = ("clock_offset", "tenants", "policies", "turns")
NIL = UUID(int=0)
NOW = datetime.now(UTC)
PLANS: dict[str, tuple[dict[str, object], set[str]]] = {
    "tenants_with_due_runs": ({"tried": [], "most": 10}, {"runs_that_are_due"}),
    "tenants_with_due_operations": ({"tried": [], "most": 10}, {"operations_that_are_due"}),
    "due_runs": ({"tenants": ["T1"], "most": 10}, {"runs_that_are_due", "runs_at_work"}),
    "due_operations": ({"tenants": ["T1"], "most": 10}, {"operations_that_are_due"}),
    "count_places": ({"tenant": "T1"}, {"runs_at_work"}),
    "attempts_to_conclude": ({"most": 10}, {"attempts_to_conclude"}),
    "attempts_to_recover": ({"most": 10, "kinds": ["email.send"]}, {"attempts_to_recover"}),
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
    "unknown_charges": (
        {"tenant": "T1", "run": None, "day": None, "most": 10},
        {"reservations_nobody_told_of"},
    ),
    "reservations_of_concluded_attempts": (
        {"word": "said_by", "most": 10},
        {"reservations_for_attempts", "an_attempt_belongs_to_one_operation"},
    ),
    "failed_calls_in_a_row": (
        {"tenant": "T1", "run": NIL},
        {"a_call_of_a_run_has_a_number_of_its_own"},
    ),
    "runs_past_their_deadline": ({"most": 10}, {"runs_not_ended_by_deadline"}),
    "runs_parked_too_long": ({"most": 10}, {"runs_that_are_parked"}),
    "look_at_pauses": ({"most": 10, "look_at": NOW}, {"pauses_to_look_at"}),
    "raises_that_nobody_waits_for": ({"most": 10}, {"raises_that_nobody_has_opened"}),
    "operations_to_wake_for": ({"most": 10}, {"operations_whose_runs_wait_to_be_woken"}),
    "something_is_due": ({"tenant": "T1"}, {"cards_that_are_due"}),
    "look_at_shown_cards": ({"tenant": "T1", "most": 10}, {"cards_to_look_at"}),
    "cards_to_update": ({"tenant": "T1", "now": NOW, "most": 10}, {"cards_that_are_due"}),
    "claim_strays": ({"tenant": "T1", "most": 10}, {"postings_that_may_turn_up"}),
    "claim_cards": (
        {"tenant": "T1", "subjects": [NIL], "lease_seconds": 30.0},
        {"cards_pkey"},
    ),
    "claim_events": ({"most": 10, "lease_seconds": 30.0}, {"inbox_that_is_due"}),
    "due_late_evidence": ({"most": 10}, {"late_evidence_that_is_due"}),
    "request_of_message": (
        {"tenant": "T1", "channel": "C1", "ts": "1.1"},
        {"a_message_of_an_agent_asks_once"},
    ),
    "request_of_key": (
        {"tenant": "T1", "agent": "a", "request_key": "k"},
        {"a_key_of_an_agent_is_taken_once"},
    ),
    "count_requests": (
        {"tenant": "T1", "agent": "a", "seconds": 3600.0},
        {"agent_requests_by_age", "runs_not_ended_by_requester"},
    ),
    "runs_of_agents": ({"tenants": ["T1"], "runs": [NIL]}, {"a_run_has_one_request"}),
    "operations_of_keys": (
        {"tenants": ["T1"], "intent_keys": ["close:d:7:1"]},
        {"one_live_operation_an_intent_key", "operations_that_may_have_succeeded"},
    ),
    "rejected_of_keys": (
        {"tenant": "T1", "intent_keys": ["close:d:7:1"]},
        {"operations_that_were_rejected"},
    ),
    "successor_of": ({"tenant": "T1", "id": NIL}, {"one_successor_an_operation"}),
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
    await connection.execute(NO_REFERENCES)
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
            if node["Node Type"] == "Seq Scan" and node["Relation Name"] not in _SHORT
        ]
        if not wanted <= used or scanned:
            wrong.append((name, sorted(used), scanned))
    assert wrong == []


async def test_the_time_is_an_index_condition_and_not_asked_of_every_row(
    busy: asyncpg.Connection,
) -> None:
    for name in ("due_runs", "due_operations", "something_is_due", "attempts_to_conclude"):
        binds, wanted = PLANS[name]
        nodes = _nodes(await _plan(busy, name, binds))
        scans = [node for node in nodes if node.get("Index Name") in wanted]
        timed = [scan for scan in scans if "<=" in scan.get("Index Cond", "")]
        # Whose leases still run is counted whatever the time.
        assert len(timed) == len(scans) - (name == "due_runs") > 0, (name, scans)


async def test_among_shown_cards_those_that_wait_for_their_turn_are_found_by_index(
    busy: asyncpg.Connection,
) -> None:
    binds: dict[str, object] = {"tenant": "T1", "now": NOW, "tries": 2, "each": 50}
    nodes = _nodes(await _plan(busy, "waiting_cards", binds))
    assert "cards_that_nobody_can_see" in {node.get("Index Name") for node in nodes}
    scanned = {n["Relation Name"] for n in nodes if n["Node Type"] == "Seq Scan"}
    assert not scanned & {"cards", "operations", "approvals", "runs"}


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
        "proposals_of_operation": {"tenant": "T1", "operation": one[0]},
        "predecessor_of": {"tenant": "T1", "id": one[0]},
        "lock_cards": {"tenants": ["T1"], "subjects": [one[0]]},
        "effects_by_id": {"tenants": ["T1"], "ids": [one[0]]},
        "delivery_notes": {"tenant": "T1", "operation": one[0], "most": 50},
    }
    for name, binds in cases.items():
        nodes = _nodes(await _plan(busy, name, binds))
        scanned = [n["Relation Name"] for n in nodes if n["Node Type"] == "Seq Scan"]
        assert scanned == [], name


async def test_charges_are_found_by_name_and_money_is_told_without_reading_all_of_it(
    busy: asyncpg.Connection,
) -> None:
    name = (await busy.fetchval("SELECT id FROM reservations LIMIT 1")).hex[-8:]
    cases: dict[str, tuple[dict[str, object], str]] = {
        "charges_by_name": ({"tenant": "T1", "name": name}, "reservations_by_short_name"),
        "unknown_charges": (
            {"tenant": "T1", "run": None, "day": None, "most": 100},
            "reservations_nobody_told_of",
        ),
        "runs_short_of_money": (
            {"tenant": "T1", "requester": None, "most": 50},
            "reservations_nobody_told_of",
        ),
    }
    for statement_name, (binds, index) in cases.items():
        nodes = _nodes(await _plan(busy, statement_name, binds))
        assert index in {node.get("Index Name") for node in nodes}, statement_name
        scanned = {n["Relation Name"] for n in nodes if n["Node Type"] == "Seq Scan"}
        assert not scanned & {"reservations", "runs"}, statement_name
