"""Items of one commit that share a row are decided in order, each on what the one before left."""

from __future__ import annotations

from executor.domain.approval import Vote
from executor.domain.budget import Settle
from executor.domain.transition import NoChange, Reason, Refused
from executor.engine.budget import reserve
from executor.engine.charging import charge_alone
from executor.engine.click import Recorded
from executor.engine.purse import Ask, Held
from executor.engine.report import Report, report
from executor.engine.setup import activate_policy
from tests.support.fake_mail import applied, not_applied
from tests.support.office import RENE, SAM, TENANT, Office, policy


async def test_the_second_vote_of_a_commit_sees_the_first(office: Office) -> None:
    await activate_policy(office.engine, policy(approval={"quorum": 2}))
    operation = await office.proposed()
    results = await office.decide(
        await office.click_for(operation, RENE),
        await office.click_for(operation, RENE),
        await office.click_for(operation, SAM),
        await office.click_for(operation, SAM, Vote.REJECT),
    )
    assert results[0] == Recorded(Vote.APPROVE, 1, decided=False)
    assert results[1] == NoChange(Reason.ALREADY_VOTED)
    assert results[2] == Recorded(Vote.APPROVE, 0, decided=True)
    assert isinstance(results[3], Refused)
    assert results[3].reason is Reason.ALREADY_GRANTED
    assert await office.status(operation) == "approved"


async def test_two_reports_of_one_attempt_in_one_commit_are_one_fact(office: Office) -> None:
    claimed, opened = await office.opened()
    key, attempt = claimed.claim.key, opened.attempt.id
    facts = [
        Report(key, attempt, not_applied(retryable=True), "w1"),
        Report(key, attempt, applied(), "w2"),
        Report(key, attempt, not_applied(retryable=False), "w3"),
    ]
    assert await report(office.engine, facts) == ["succeeded"] * 3
    run_id = await office.run_of(key[1])
    moves = [event for event in await office.events(run_id) if event[0] == "reported"]
    assert moves == [("reported", "w1", "not_applied"), ("reported", "w2", "applied")]


async def test_reservations_of_one_commit_share_one_account(office: Office) -> None:
    await activate_policy(office.engine, policy(budget={"run_microusd": 10}))
    claimed = await office.claim_run(await office.start_run())
    ask = Ask(claimed.key, claimed.lease.epoch, "model:test", 4, 60.0)
    results = await reserve(office.engine, [ask] * 3)
    held = [result for result in results if isinstance(result, Held)]
    assert len(held) == 2
    events = {(TENANT, one.reservation_id): Settle(3) for one in held}
    await charge_alone(office.engine, dict(events))
    assert await office.rows("SELECT spent_microusd, held_microusd FROM run_budgets") == [(6, 0)]
