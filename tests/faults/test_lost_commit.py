"""A COMMIT whose answer was lost is an unknown too: what is stored decides, nothing is guessed."""

from __future__ import annotations

import pytest

from executor.domain.approval import Vote
from executor.domain.errors import CommitUnknown
from executor.domain.transition import NoChange, Reason
from executor.engine.claims import ClaimedOperation
from executor.engine.click import NotConfirmed, Recorded
from executor.engine.decisions import read_back
from executor.engine.executing import execute, openings
from executor.engine.leases import operation_keeper
from executor.engine.opening import LostLease, Opened
from executor.engine.opening import read_back as read_back_opening
from executor.engine.report import Report, report
from tests.support.fake_mail import applied
from tests.support.office import Office
from tests.support.tcp_proxy import TcpProxy


async def _execute(far: Office, claimed: ClaimedOperation) -> None:
    keeper = operation_keeper(far.engine, claimed.claim.key, claimed.lease)
    group = openings(far.engine, far.providers)
    await execute(far.engine, far.providers, group, claimed.claim, keeper)


async def test_an_opening_that_was_stored_is_called_though_its_answer_was_lost(
    office: Office, far: Office, proxy: TcpProxy
) -> None:
    claimed = await office.claimed()
    proxy.lose_commit_answers()
    await _execute(far, claimed)
    assert proxy.answer_lost.is_set()
    assert office.mail.accepted == 1
    assert await office.status(claimed.claim.key[1]) == "succeeded"


async def test_an_opening_that_was_not_stored_is_not_called_and_is_due_again(
    office: Office, far: Office, proxy: TcpProxy
) -> None:
    claimed = await office.claimed()
    proxy.stop_commits()
    await _execute(far, claimed)
    assert proxy.commit_stopped.is_set()
    assert office.mail.accepted == 0
    assert await office.rows("SELECT id FROM attempts") == []
    assert await office.status(claimed.claim.key[1]) == "approved"
    await office.later(seconds=2)
    await _execute(far, await office.claim_operation(claimed.claim.key[1], "w2"))
    assert office.mail.accepted == 1


async def test_an_opening_read_back_after_a_takeover_is_not_called(office: Office) -> None:
    claimed, opened = await office.opened()
    found = await read_back_opening(office.engine, claimed.claim)
    assert isinstance(found, Opened)
    assert found.attempt.id == opened.attempt.id
    await office.later(seconds=31)
    successor = await office.claim_operation(claimed.claim.key[1], "w2")
    assert isinstance(await read_back_opening(office.engine, claimed.claim), LostLease)
    assert not isinstance(await read_back_opening(office.engine, successor.claim), Opened)


async def test_a_vote_whose_answer_was_lost_is_read_back_and_not_counted_twice(
    office: Office, far: Office, proxy: TcpProxy
) -> None:
    operation = await office.proposed()
    click = await office.click_for(operation)
    proxy.lose_commit_answers()
    with pytest.raises(CommitUnknown):
        await far.decide(click)
    assert await read_back(far.engine, click) == Recorded(Vote.APPROVE, 0, decided=True)
    assert await far.decide(click) == [NoChange(Reason.ALREADY_VOTED)]
    assert await office.rows("SELECT count(*) FROM decisions") == [(1,)]


async def test_a_vote_that_was_not_stored_is_not_confirmed_and_may_come_again(
    office: Office, far: Office, proxy: TcpProxy
) -> None:
    operation = await office.proposed()
    click = await office.click_for(operation)
    proxy.stop_commits()
    with pytest.raises(CommitUnknown):
        await far.decide(click)
    assert await read_back(far.engine, click) == NotConfirmed()
    assert await office.status(operation) == "awaiting"
    assert await far.decide(click) == [Recorded(Vote.APPROVE, 0, decided=True)]


@pytest.mark.parametrize("stored", [True, False])
async def test_a_fact_is_reported_until_it_is_stored(
    office: Office, far: Office, proxy: TcpProxy, stored: bool
) -> None:
    claimed, opened = await office.opened()
    fact = Report(claimed.claim.key, opened.attempt.id, applied(), "w1")
    if stored:
        proxy.lose_commit_answers()
    else:
        proxy.stop_commits()
    with pytest.raises(CommitUnknown):
        await report(far.engine, [fact])
    assert await report(far.engine, [fact]) == ["succeeded"]
    run_id = await office.run_of(claimed.claim.key[1])
    told = [event for event in await office.events(run_id) if event[0] == "reported"]
    assert len(told) == 1
