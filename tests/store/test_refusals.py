"""The database itself refuses what the code must not do, whatever the application sends."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from executor.domain.errors import DuplicateKey, ExecutorError, ForbiddenByDatabase
from executor.domain.ids import operator_principal
from executor.domain.transition import BORN
from executor.engine.granting import Given, Wish, give
from executor.store import inbox
from executor.store.connection import Connection
from executor.store.database import Database
from tests.store.test_edges import EDGES, STATUSES
from tests.support.fake_model import FakeModel, says
from tests.support.office import OTTO, TENANT, Office
from tests.support.working import Working

NEXT = """
INSERT INTO journal (tenant_id, subject, position, machine, entity_id, seq, source, target, event,
                     actor, detail, recorded_at, previous_hash, hash)
SELECT tenant_id, subject, 900 + position, machine, entity_id, seq, source, target, event, actor,
       detail, recorded_at, previous_hash, hash FROM journal WHERE machine = 'run' AND seq = 1
"""


@pytest.fixture
async def office(database: Database) -> Office:
    """An office in which every table has a row: one mail is on its way, one run has read a lot."""
    office = await Office.open(database)
    await office.opened()
    async with database.transaction() as conn:
        await inbox.put(conn, TENANT, "Ev1", {})
        for statement in (
            "INSERT INTO late_evidence (tenant_id, provider, event_id, reference, mail_id, kind, "
            "evidence, happened_at, received_at, due_at) SELECT id, 'resend', 'msg_1', "
            "gen_random_uuid(), '1', 'bounced', '{}', now(), now(), now() FROM tenants",
            "INSERT INTO tenant_days (tenant_id, day) SELECT id, '2026-01-01' FROM tenants",
            "INSERT INTO steps (tenant_id, run_id, number, kind, answers_step, answers_ordinal, "
            "content, recorded_at) SELECT tenant_id, run_id, 2, 'tool', 1, 0, '{}', recorded_at "
            "FROM steps",
        ):
            await conn.execute(text(statement))
    return office


async def _refused_by(office: Office, *statements: str) -> str:
    """Run statements in one transaction and name the rule that refused them."""
    with pytest.raises((ForbiddenByDatabase, DuplicateKey)) as refused:
        async with office.database.transaction() as conn:
            for statement in statements:
                await conn.execute(text(statement))
    return str(refused.value.constraint)  # type: ignore[attr-defined]


def _set(table: str, assignment: str) -> list[str]:
    return [" ".join(("UPDATE", table, "SET", assignment))]


def _link(hash_and_end: str) -> list[str]:
    insert = (
        "INSERT INTO decision_links (tenant_id, operation_id, approval_id, principal, digest, "
        "content_revision, nonce, channel, message_ts, issued_at, token_hash, expires_at) "
        "SELECT tenant_id, operation_id, id, 'p', digest, 1, id, 'C', '1', now(), HERE "
        "FROM approvals"
    )
    return [insert.replace("HERE", hash_and_end)]


def _journal(**changes: str) -> list[str]:
    select = NEXT
    for column, value in changes.items():
        head, _, tail = select.rpartition("SELECT tenant_id, subject")
        select = head + "SELECT tenant_id, subject" + tail.replace(f" {column},", f" {value},", 1)
    return [select]


def _request(columns: str, values: str) -> list[str]:
    into = (
        "INSERT INTO agent_requests (tenant_id, id, agent, channel, ts, thread_ts, answer,",
        "asked_at,",
        columns,
        ") SELECT id, gen_random_uuid(), 'a', 'C1', '1.1', '1.1', '{}', now(),",
        values,
        "FROM tenants",
    )
    return [" ".join(into)]


def _question(columns: str, values: str) -> list[str]:
    into = (
        "INSERT INTO questions (tenant_id, id, run_id, operation_id, asked_by, question,",
        "request_hash, asked_at,",
        columns,
        ") SELECT tenant_id, id, run_id, id, 'p', 'Why?', 'x', now(),",
        values,
        "FROM operations",
    )
    return [" ".join(into)]


CHECKS: dict[str, list[str]] = {
    "clock_offset_has_one_row": [
        "SET LOCAL signoff.clock_may_move = 'on'",
        "INSERT INTO clock_offset (only_row, moved) VALUES (false, '1 s')",
    ],
    "a_tenant_has_a_short_id": ["INSERT INTO tenants (id, name, timezone) VALUES ('', 'x', 'UTC')"],
    "a_turn_is_for_known_work": _set("turns", "work = 'nap'"),
    "facts_carry_the_time_of_their_observation": _set(
        "identity_observations", "observed_at = NULL"
    ),
    "members_carry_the_time_of_their_observation": [
        "INSERT INTO group_observations (tenant_id, group_id, members) "
        "SELECT id, 'S0REVIEWERS', '{}' FROM tenants"
    ],
    "a_journal_row_is_a_move_or_a_note": _journal(target="NULL"),
    "the_first_move_is_a_birth": _journal(seq="2"),
    "numbers_begin_at_one": _journal(seq="0", source="'queued'"),
    "hashes_are_sha256": [NEXT.replace("previous_hash, hash FROM", "previous_hash, 'x' FROM")],
    "a_run_has_a_known_status": _set("runs", "status = 'asleep'"),
    "a_run_has_ended_when_its_status_says_so": _set(
        "runs", "ended_at = now(), reason = 'completed', due_at = NULL"
    ),
    "an_ended_run_says_why": _set(
        "runs",
        "status = 'failed', ended_at = now(), reason = NULL, due_at = NULL, lease_owner = NULL, "
        "lease_until = NULL",
    ),
    "an_ended_run_is_not_due": _set(
        "runs",
        "status = 'failed', ended_at = now(), reason = 'x', due_at = now(), lease_owner = NULL, "
        "lease_until = NULL",
    ),
    "only_a_driven_run_is_due": _set("runs", "driven = false"),
    "only_a_parked_run_has_an_end_of_its_wait": _set("runs", "parked_until = now()"),
    "only_a_running_run_is_leased": _set("runs", "status = 'waiting', parked_until = now()"),
    "a_lease_has_an_owner_and_an_end": _set("runs", "lease_until = NULL"),
    "takeovers_are_counted_from_zero": _set("runs", "takeovers = -1"),
    "a_step_is_a_reply_a_result_or_a_question": _set(
        "steps", "kind = 'thought', answers_step = NULL"
    ),
    "a_result_names_its_call": _set("steps", "answers_step = NULL, kind = 'tool'"),
    "the_digest_is_of_the_intent": _set("operations", "intent = intent || ' '"),
    "an_operation_has_a_known_status": _set(
        "operations",
        "status = 'done', ended_at = now(), due_at = NULL, lease_owner = NULL, lease_until = NULL",
    ),
    "an_operation_has_ended_when_its_status_says_so": _set("operations", "ended_at = now()"),
    "an_operation_that_acted_was_opened": _set("operations", "opened_at = NULL"),
    "an_operation_that_was_never_opened_did_not_act": _set("operations", "status = 'approved'"),
    "only_live_work_is_due": _set(
        "operations", "status = 'partial', ended_at = now(), lease_owner = NULL, lease_until = NULL"
    ),
    "what_is_about_a_ticket_names_it_and_nothing_else_does": _set("operations", "desk = NULL"),
    "only_a_reopening_undoes_something": _set("operations", "compensates = id"),
    "only_what_is_partial_is_compensated": _set("operations", "compensate_at = now()"),
    "only_work_in_hand_is_leased": _set("operations", "status = 'unknown'"),
    "an_operations_lease_has_an_owner_and_an_end": _set("operations", "lease_until = NULL"),
    "a_silent_desk_has_a_problem": _set("operations", "desk_problem = 'no answer'"),
    "the_payload_is_what_was_digested": _set("effects", "payload = payload || 'x'"),
    "an_effect_has_a_known_status": _set("effects", "status = 'sent'"),
    "an_attempt_has_a_known_status": _set("attempts", "status = 'sent', reported_at = now()"),
    "an_attempt_is_reported_when_it_is_no_longer_open": _set("attempts", "reported_at = now()"),
    "nothing_is_concluded_before_the_deadline": _set("attempts", "conclude_at = deadline_at"),
    "only_a_keyed_attempt_has_a_window": _set("attempts", "key_window_seconds = 60"),
    "only_an_attempt_that_can_be_looked_up_has_a_lag": _set("attempts", "lookup_lag_seconds = 60"),
    "only_an_unknown_attempt_is_recovered": _set("attempts", "recover_at = now()"),
    "an_approval_has_a_known_status": _set("approvals", "status = 'fine'"),
    "at_least_one_vote_is_needed": _set("approvals", "terms = jsonb_set(terms, '{quorum}', '0')"),
    "it_says_whose_votes_it_needs": _set(
        "approvals", "terms = jsonb_set(terms, '{requirements}', 'null')"
    ),
    "the_time_to_decide_begins_when_it_is_shown": _set("approvals", "presented_at = NULL"),
    "a_granted_approval_has_a_time_to_use": _set("approvals", "use_by = NULL"),
    "an_approval_has_ended_when_its_status_says_so": _set("approvals", "ended_at = NULL"),
    "a_vote_is_yes_or_no": _set("decisions", "vote = 'maybe'"),
    "a_run_never_holds_less_than_nothing": _set("run_budgets", "held_microusd = -1"),
    "a_day_never_holds_less_than_nothing": _set("tenant_days", "held_microusd = -1"),
    "what_is_unknown_of_a_run_is_held": _set("run_budgets", "unknown_microusd = 1"),
    "what_is_unknown_of_a_day_is_held": _set("tenant_days", "unknown_microusd = 1"),
    "a_call_has_a_known_status": _set("model_calls", "status = 'rung'"),
    "a_call_has_ended_when_its_status_says_so": _set("model_calls", "ended_at = NULL"),
    "a_failed_call_says_why": _set("model_calls", "status = 'failed'"),
    "usage_is_told_as_a_whole": _set("model_calls", "input_tokens = NULL"),
    "tokens_are_not_negative": _set("model_calls", "output_tokens = -1"),
    "a_request_is_named_by_its_sha256": _set("model_calls", "request_digest = 'x'"),
    "a_reservation_has_a_known_status": _set("reservations", "status = 'lost'"),
    "a_reservation_is_settled_to_an_actual_cost": _set("reservations", "actual_microusd = NULL"),
    "costs_are_not_negative": _set("reservations", "amount_microusd = -1"),
    "a_card_shows_something_that_can_be_told": _set("cards", "subject_kind = 'poem'"),
    "a_card_never_shows_what_nobody_wanted": _set("cards", "shown_revision = 99"),
    "a_shown_card_has_a_place": _set("cards", "ts = NULL, unseen_since = now(), look_at = NULL"),
    "a_card_is_unseen_as_long_as_it_has_no_place": _set("cards", "unseen_since = now()"),
    "only_what_is_unseen_is_told": _set("cards", "told_at = now()"),
    "only_a_shown_card_is_looked_at": _set(
        "cards",
        "look_at = now(), ts = NULL, channel = NULL, shown_revision = 0, unseen_since = now()",
    ),
    "a_pace_is_of_a_known_family": _set("paces", "family = 'shout'"),
    "a_trouble_has_a_beginning": [
        "INSERT INTO delivery_troubles (tenant_id, place, problem, lasting, since, noted_at) "
        "VALUES ('T', '', 'x', true, now(), now() - interval '1 s')"
    ],
    "a_posting_is_in_flight_or_over": _set("card_postings", "outcome = 'seen', ts = NULL"),
    "a_posted_card_has_a_ts": _set("card_postings", "ts = NULL"),
    "only_what_is_absent_may_turn_up": _set("card_postings", "look_at = now()"),
    "a_handled_event_is_not_due": _set("inbox", "handled_at = now(), due_at = now()"),
    "a_ticket_is_open_or_closed": _set("desk_tickets", "status = 'ajar'"),
    "versions_begin_at_one": _set("desk_tickets", "version = 0"),
    "a_change_has_a_known_kind": _set("desk_events", "kind = 'rumour'"),
    "late_evidence_has_a_known_kind": _set("late_evidence", "kind = 'lost'"),
    "late_evidence_is_due_until_it_is_matched": _set("late_evidence", "due_at = NULL"),
    "a_grant_has_a_known_status": _set("grants", "status = 'lent'"),
    "a_grant_begins_before_it_ends": _set("grants", "ends_at = starts_at"),
    "nobody_acts_on_their_own_behalf": _set("grants", "on_behalf_of = principal"),
    "a_revoked_grant_says_by_whom": _set("grants", "revoked_by = 'operator:ada'"),
    "a_closed_question_has_an_answer_or_says_why_not": _question("closed_at", "now()"),
    "only_what_was_taken_up_is_answered": _question("closed_at, answer", "now(), 'So.'"),
    "a_request_comes_to_something_known": _request("outcome", "'lost'"),
    "what_was_accepted_has_a_run": _request(
        "outcome, kind, content_digest", "'accepted', 'run', ''"
    ),
    "what_could_be_read_has_content": _request("outcome, kind", "'refused', 'run'"),
    "nudges_are_counted_from_zero": _set("approvals", "nudges_made = -1"),
    "a_nudge_has_a_known_kind": [
        "INSERT INTO nudges (tenant_id, id, operation_id, approval_id, kind, whom, made_at) "
        "SELECT tenant_id, id, operation_id, id, 'hint', '[]', now() FROM approvals"
    ],
    "a_pause_is_at_a_limit_of_its_run_or_of_a_day": [
        "INSERT INTO pauses (tenant_id, run_id, scope, needed_microusd, paused_at, look_at) "
        "SELECT tenant_id, id, 'day', 1, now(), now() FROM runs"
    ],
    "a_warning_is_about_a_run_or_a_day": [
        "INSERT INTO budget_warnings (tenant_id, id, used_microusd, limit_microusd, made_at) "
        "SELECT id, gen_random_uuid(), 1, 1, now() FROM tenants"
    ],
    "failures_are_counted_from_zero": [
        "INSERT INTO second_factors (tenant_id, principal, sealed, enrolled_by, enrolled_at, "
        "failures) SELECT id, 'p', '', 'o', now(), -1 FROM tenants"
    ],
    "a_token_is_known_by_its_sha256": _link("'x', now() + interval '1 minute'"),
    "a_link_ends_after_it_was_issued": _link("sha256('x'), now()"),
    "episodes_begin_at_one": _set("ticket_episodes", "episode = 0"),
}


async def _reserve(office: Office) -> None:
    """Spend money and give a role, so that there is a reservation and a grant to break."""
    working = await Working.start(office, FakeModel([says("Done.")]))
    await working.drive()
    given = await give(office.engine, TENANT, operator_principal("ada"), Wish(OTTO, "approver"))
    assert isinstance(given, Given)


async def test_every_check_refuses_what_it_names(office: Office) -> None:
    await _reserve(office)
    listed = await office.rows(
        "SELECT conname FROM pg_constraint WHERE contype = 'c' "
        "AND connamespace = CAST('public' AS regnamespace)"
    )
    assert {name for (name,) in listed} == set(CHECKS)
    wrong = []
    for name, statements in CHECKS.items():
        found = await _refused_by(office, *statements)
        if found != name:
            wrong.append((name, found))
    assert wrong == []


async def test_no_machine_takes_an_edge_that_is_not_listed(office: Office) -> None:
    wrong = []
    async with office.database.transaction() as conn:
        for machine, edges in EDGES.items():
            statuses = [str(status) for status in STATUSES[machine]]
            for source in (BORN, *statuses):
                for target in statuses:
                    if (source, target) in edges:
                        continue
                    found = await _try_edge(conn, machine.value, source, target)
                    if found != "only_edges_are_taken":
                        wrong.append((machine.value, source, target, found))
    assert wrong == []


async def _try_edge(conn: Connection, machine: str, source: str, target: str) -> str | None:
    """Insert one journal row in a savepoint and name the rule that refused it."""
    seq = 1 if source == BORN else 2
    try:
        async with conn.begin_nested():
            await conn.execute(
                text(
                    "INSERT INTO journal (tenant_id, subject, position, machine, entity_id, seq, "
                    "source, target, event, actor, detail, recorded_at, previous_hash, hash) "
                    "VALUES ('T', gen_random_uuid(), 1, :machine, gen_random_uuid(), :seq, "
                    ":source, :target, 'e', 'a', '{}', now(), sha256(''), sha256(''))"
                ),
                {"machine": machine, "seq": seq, "source": source, "target": target},
            )
    except Exception as error:
        driver = getattr(error, "orig", None)
        return getattr(getattr(driver, "__cause__", None), "constraint_name", None)
    return None


@pytest.mark.parametrize(
    ("table", "assignment", "rule"),
    [
        ("runs", "status = 'queued', lease_owner = NULL, lease_until = NULL",
         "a_run_stands_where_its_journal_ends"),
        ("operations", "status = 'unknown', lease_owner = NULL, lease_until = NULL",
         "an_operation_stands_where_its_journal_ends"),
        ("effects", "status = 'unknown'", "an_effect_stands_where_its_journal_ends"),
        ("attempts", "status = 'applied', reported_at = now()",
         "an_attempt_stands_where_its_journal_ends"),
        ("approvals", "status = 'expired'", "an_approval_stands_where_its_journal_ends"),
        ("runs", "seq = seq + 1", "a_run_stands_where_its_journal_ends"),
    ],
)  # fmt: skip
async def test_a_status_does_not_change_without_its_journal_row(
    office: Office, table: str, assignment: str, rule: str
) -> None:
    assert await _refused_by(office, *_set(table, assignment)) == rule


@pytest.mark.parametrize(
    ("seq", "source", "target", "rule"),
    [
        (3, "waiting", "running", "a_move_starts_where_the_last_one_ended"),
        (4, "running", "waiting", "a_move_starts_where_the_last_one_ended"),
        (2, "queued", "failed", "one_target_a_sequence_number"),
    ],
    ids=["a forged source", "a skipped number", "a second target of one number"],
)
async def test_the_chain_of_moves_is_unbroken(
    office: Office, seq: int, source: str, target: str, rule: str
) -> None:
    [insert] = _journal(seq=str(seq), source=f"'{source}'", target=f"'{target}'")
    assert await _refused_by(office, insert) == rule


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE journal SET actor = 'somebody'",
        "DELETE FROM journal WHERE position = 1",
        "TRUNCATE journal CASCADE",
        "UPDATE journal SET actor = actor WHERE false",
    ],
)
async def test_the_journal_is_append_only(office: Office, statement: str) -> None:
    before = await office.rows("SELECT * FROM journal ORDER BY subject, position")
    with pytest.raises(ExecutorError):
        async with office.database.transaction() as conn:
            await conn.execute(text(statement))
    assert await office.rows("SELECT * FROM journal ORDER BY subject, position") == before


async def test_a_second_live_operation_of_one_intent_key_is_refused(office: Office) -> None:
    await office.claimed("4102")
    renamed = "UPDATE operations SET intent_key = 'close:builtin:4101:1'"
    assert await _refused_by(office, renamed) == "one_live_operation_an_intent_key"


async def test_a_second_successor_of_one_operation_is_refused(office: Office) -> None:
    await office.claimed("4102")
    both = "UPDATE operations SET replaces = (SELECT id FROM operations ORDER BY number LIMIT 1)"
    assert await _refused_by(office, both) == "one_successor_an_operation"


async def test_a_second_open_attempt_of_one_effect_is_refused(office: Office) -> None:
    second = (
        "INSERT INTO attempts (tenant_id, id, seq, status, operation_id, effect_id, number, epoch, "
        "capability, provider, idempotency_key, payload_digest, opened_at, deadline_at, "
        "conclude_at) "
        "SELECT tenant_id, gen_random_uuid(), 1, status, operation_id, effect_id, 2, epoch, "
        "capability, provider, idempotency_key, payload_digest, opened_at, deadline_at, "
        "conclude_at FROM attempts"
    )
    assert await _refused_by(office, second) == "one_open_attempt_an_effect"


async def test_a_second_live_approval_of_one_operation_is_refused(office: Office) -> None:
    await office.claimed("4102")
    second = (
        "INSERT INTO approvals (tenant_id, id, seq, status, operation_id, digest, content_revision,"
        " terms, opened_at) SELECT tenant_id, "
        "gen_random_uuid(), 1, 'open', operation_id, digest, 1, terms, opened_at FROM approvals "
        "WHERE status = 'granted'"
    )
    assert await _refused_by(office, second) == "one_live_approval_an_operation"


async def test_a_first_approval_beside_the_first_is_refused(office: Office) -> None:
    await office.opened("4102")
    second = (
        "INSERT INTO approvals (tenant_id, id, seq, status, operation_id, digest, content_revision,"
        " terms, opened_at) SELECT tenant_id, "
        "gen_random_uuid(), 1, 'open', operation_id, digest, 1, terms, opened_at FROM approvals "
        "WHERE status = 'consumed'"
    )
    assert await _refused_by(office, second) == "one_first_approval_an_operation"


async def test_an_approval_of_a_repeat_of_something_else_is_refused(office: Office) -> None:
    await office.opened("4102")
    crossed = (
        "INSERT INTO approvals (tenant_id, id, seq, status, operation_id, repeats_attempt, digest, "
        "content_revision, terms, opened_at) "
        "SELECT a.tenant_id, gen_random_uuid(), 1, 'open', a.operation_id, t.id, a.digest, 1, "
        "a.terms, a.opened_at FROM approvals a JOIN attempts t ON t.operation_id <> a.operation_id"
    )
    wanted = "an_approval_of_a_repeat_names_an_attempt_of_its_operation"
    assert await _refused_by(office, crossed) == wanted
