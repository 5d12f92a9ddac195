"""T5: whoever has a fact may report it, and the truth about the whole follows from all attempts."""

from __future__ import annotations

from datetime import timedelta

import pytest

from executor.adapters.host_clock import mint_id
from executor.domain.effect import Outcome, OutcomeKind
from executor.domain.ids import AttemptId, OperationId
from executor.engine.claims import ClaimedOperation
from executor.engine.endings import Stopped
from executor.engine.opening import NotOpened, Opened
from executor.engine.report import Report, report
from tests.support.fake_mail import applied, not_applied, unknown
from tests.support.office import TENANT, Office


async def _opened_again(office: Office, operation: OperationId) -> tuple[ClaimedOperation, Opened]:
    claimed = await office.claim_operation(operation, "w2")
    opened = await office.open_one(claimed)
    assert isinstance(opened, Opened), opened
    return claimed, opened


async def _statuses(office: Office) -> list[str]:
    rows = await office.rows("SELECT status FROM attempts ORDER BY number")
    return [status for (status,) in rows]


async def _mail(office: Office) -> str:
    [(status,)] = await office.rows("SELECT status FROM effects WHERE kind = 'email.send'")
    return str(status)


async def test_a_receipt_ends_the_operation_and_wakes_its_run(office: Office) -> None:
    claimed, opened = await office.opened()
    assert await office.report(claimed, opened, applied()) == "succeeded"
    [row] = await office.rows(
        "SELECT wake_pending, lease_owner, due_at, ended_at IS NOT NULL FROM operations"
    )
    assert row == (True, None, None, True)
    evidence = await office.rows("SELECT evidence ->> 'code', reported_at IS NULL FROM attempts")
    assert evidence == [("250", False)]


@pytest.mark.parametrize("later", [applied(), unknown(), not_applied(retryable=True)])
async def test_applied_is_final(office: Office, later: Outcome) -> None:
    claimed, opened = await office.opened()
    await office.report(claimed, opened, applied())
    before = await office.rows("SELECT position FROM journal_heads")
    assert await office.report(claimed, opened, later) == "succeeded"
    assert await _statuses(office) == ["applied"]
    assert await office.rows("SELECT position FROM journal_heads") == before


async def test_a_late_receipt_of_a_stale_worker_is_recorded(office: Office) -> None:
    claimed, opened = await office.opened()
    await office.later(seconds=31)
    successor = await office.claim_operation(claimed.claim.key[1], "w2")
    assert successor.claim.epoch > claimed.claim.epoch
    assert isinstance(await office.open_one(successor), NotOpened)
    assert await office.report(claimed, opened, applied(), actor="w1") == "succeeded"
    run_id = await office.run_of(claimed.claim.key[1])
    assert ("reported", "w1", "applied") in await office.events(run_id)


async def test_a_later_refusal_cannot_hide_an_earlier_acceptance(office: Office) -> None:
    claimed, first = await office.opened()
    operation = claimed.claim.key[1]
    await office.report(claimed, first, not_applied(retryable=True))
    await office.later(seconds=5)
    again, second = await _opened_again(office, operation)
    assert await office.report(claimed, first, applied()) == "succeeded"
    assert await office.report(again, second, not_applied(retryable=True)) == "succeeded"
    assert (await _statuses(office), await _mail(office)) == (["applied", "not_applied"], "applied")


async def test_both_facts_in_one_group_come_to_the_same(office: Office) -> None:
    claimed, first = await office.opened()
    key = claimed.claim.key
    await office.report(claimed, first, not_applied(retryable=True))
    await office.later(seconds=5)
    _, second = await _opened_again(office, key[1])
    facts = [
        Report(key, second.attempt.id, not_applied(retryable=False), "w2"),
        Report(key, first.attempt.id, applied(), "w1"),
    ]
    assert await report(office.engine, facts) == ["succeeded", "succeeded"]
    assert await _mail(office) == "applied"


async def test_what_is_unknown_is_told_and_holds_until_it_is_known(office: Office) -> None:
    claimed, opened = await office.opened()
    operation = claimed.claim.key[1]
    assert await office.report(claimed, opened, unknown()) == "unknown"
    assert await office.reason(operation) == "outcome_lost"
    [row] = await office.rows("SELECT ended_at, due_at, lease_owner, wake_pending FROM operations")
    assert row == (None, None, None, False)
    await office.later(days=1)
    assert await office.claim_operations() == []
    assert await office.report(claimed, opened, applied()) == "succeeded"


async def test_what_was_unknown_and_is_proved_not_sent_is_partial_and_never_sent_again(
    office: Office,
) -> None:
    claimed, opened = await office.opened()
    await office.report(claimed, opened, unknown())
    assert await office.report(claimed, opened, not_applied(retryable=True)) == "partial"
    await office.later(days=1)
    assert await office.claim_operations() == []


async def test_a_partial_operation_succeeds_on_a_contradicting_receipt(office: Office) -> None:
    claimed, opened = await office.opened()
    operation = claimed.claim.key[1]
    assert await office.report(claimed, opened, not_applied(retryable=False)) == "partial"
    assert await office.reason(operation) == "refused_by_provider"
    assert await office.report(claimed, opened, applied()) == "succeeded"


async def test_a_retry_waits_its_time_and_is_a_new_attempt_under_the_same_key(
    office: Office,
) -> None:
    claimed, opened = await office.opened()
    operation = claimed.claim.key[1]
    assert await office.report(claimed, opened, not_applied(retryable=True)) == "executing"
    assert await office.claim_operations() == []
    await office.later(seconds=1.1)
    _, second = await _opened_again(office, operation)
    assert second.attempt.number == 2
    assert second.effect.idempotency_key == opened.effect.idempotency_key
    assert second.effect.payload == opened.effect.payload
    assert second.effect.first_attempt_at == opened.attempt.opened_at


async def test_the_provider_may_ask_for_a_longer_wait(office: Office) -> None:
    claimed, opened = await office.opened()
    outcome = Outcome(
        OutcomeKind.NOT_APPLIED, {"code": 450}, retryable=True, retry_after=timedelta(minutes=5)
    )
    await office.report(claimed, opened, outcome)
    await office.later(minutes=4)
    assert await office.claim_operations() == []
    await office.later(minutes=1, seconds=1)
    assert len(await office.claim_operations()) == 1


async def test_retries_end(office: Office) -> None:
    claimed, opened = await office.opened()
    operation = claimed.claim.key[1]
    most = office.engine.durations.most_attempts
    for number in range(1, most + 1):
        assert opened.attempt.number == number
        status = await office.report(claimed, opened, not_applied(retryable=True))
        assert status == ("partial" if number == most else "executing")
        if number < most:
            await office.later(minutes=1)
            claimed, opened = await _opened_again(office, operation)
    assert await _statuses(office) == ["not_applied"] * most


async def test_a_retry_is_checked_again_and_ends_with_the_truth_about_its_parts(
    office: Office,
) -> None:
    claimed, opened = await office.opened()
    operation = claimed.claim.key[1]
    await office.report(claimed, opened, not_applied(retryable=True))
    await office.customer_writes()
    await office.later(minutes=1)
    again = await office.claim_operation(operation)
    assert isinstance(await office.open_one(again), NotOpened)
    assert (await office.status(operation), await office.reason(operation)) == (
        "partial",
        "version_changed",
    )


async def test_after_a_cancel_nothing_is_sent_again(office: Office) -> None:
    claimed, opened = await office.opened()
    operation = claimed.claim.key[1]
    await office.report(claimed, opened, not_applied(retryable=True))
    run_id = await office.run_of(operation)
    stopped = await office.cancel(run_id)
    assert isinstance(stopped, Stopped)
    assert (stopped.status, len(stopped.sending)) == ("cancelling", 1)
    await office.later(minutes=1)
    assert isinstance(await office.open_one(await office.claim_operation(operation)), NotOpened)
    assert (await office.status(operation), await office.reason(operation)) == (
        "partial",
        "cancelled",
    )


async def test_a_report_that_names_nothing_changes_nothing(office: Office) -> None:
    claimed, opened = await office.opened()
    nowhere = (TENANT, OperationId(mint_id()))
    results = await report(
        office.engine,
        [
            Report(nowhere, opened.attempt.id, applied(), "w1"),
            Report(claimed.claim.key, AttemptId(mint_id()), applied(), "w1"),
        ],
    )
    assert results == [None, "executing"]
    assert await _statuses(office) == ["dispatched"]


async def test_all_attempts_of_many_operations_are_reported_in_one_commit(office: Office) -> None:
    pairs = [await office.opened(ticket) for ticket in ("4101", "4102")]
    outcomes = [applied(), not_applied(retryable=False)]
    facts = [
        Report(claimed.claim.key, opened.attempt.id, outcome, "w1")
        for (claimed, opened), outcome in zip(pairs, outcomes, strict=True)
    ]
    assert await report(office.engine, facts) == ["succeeded", "partial"]
