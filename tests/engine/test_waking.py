"""Runs wait for operations at no cost, and are woken when all those of their step have ended."""

from __future__ import annotations

import asyncio

from executor.domain.approval import Vote
from executor.engine.converging import Accepted
from executor.engine.endings import Stopped
from executor.engine.waking import wake
from tests.support.fake_mail import applied, not_applied, unknown
from tests.support.office import SAM, Office, closing
from tests.support.waiting import another_pool
from tests.support.working import Working


async def _waiting_for_two(office: Office) -> tuple[Working, list[str]]:
    working = await Working.propose(office, closing("4101"), closing("4102"))
    await working.drive()
    assert await office.run_status(working.run_id) == "waiting"
    return working, []


async def test_a_run_waits_until_all_operations_of_its_step_have_ended(office: Office) -> None:
    working, _ = await _waiting_for_two(office)
    await office.show()
    first, second = await working.operations()
    await office.click(first, vote=Vote.REJECT)
    assert await wake(office.engine) == 1
    assert await working.due() is False
    await office.click(second, vote=Vote.REJECT)
    assert await wake(office.engine) == 1
    assert await working.due() is True
    assert await wake(office.engine) == 0


async def test_two_operations_that_end_at_once_wake_their_run(
    office: Office, database_url: str
) -> None:
    working, _ = await _waiting_for_two(office)
    await office.show()
    first, second = await working.operations()
    async with another_pool(database_url) as pool:
        colleague = office.colleague(pool)
        await asyncio.gather(
            office.click(first, vote=Vote.REJECT), colleague.click(second, vote=Vote.REJECT)
        )
        await asyncio.gather(wake(office.engine), wake(colleague.engine))
    assert await working.due() is True


async def test_a_linked_run_is_woken_with_the_run_that_owns_the_operation(office: Office) -> None:
    first = await Working.propose(office, closing())
    await first.drive()
    second = await Working.propose(office, closing(), requester=SAM)
    await second.drive()
    await office.show()
    [operation] = await first.operations()
    await office.click(operation, vote=Vote.REJECT)
    await wake(office.engine)
    assert [await first.due(), await second.due()] == [True, True]


async def test_a_linked_run_is_told_that_the_operation_was_withdrawn(office: Office) -> None:
    first = await Working.propose(office, closing())
    await first.drive()
    second = await Working.propose(office, closing(), requester=SAM)
    await second.drive()
    await office.cancel(first.run_id)
    await wake(office.engine)
    assert [await first.due(), await second.due()] == [False, True]
    [operation] = await first.operations()
    assert await office.status(operation) == "withdrawn"


async def test_a_run_cancelled_in_doubt_ends_when_the_doubt_does(office: Office) -> None:
    claimed, opened = await office.opened()
    run_id = await office.run_of(claimed.claim.key[1])
    stopped = await office.cancel(run_id)
    assert isinstance(stopped, Stopped)
    assert await office.run_status(run_id) == "cancelling"
    await office.report(claimed, opened, unknown())
    await wake(office.engine)
    assert await office.run_status(run_id) == "cancelling"
    await office.report(claimed, opened, applied())
    await wake(office.engine)
    assert await office.run_status(run_id) == "cancelled"


async def test_a_second_cancel_names_what_is_being_sent_and_changes_nothing(
    office: Office,
) -> None:
    claimed, opened = await office.opened()
    run_id = await office.run_of(claimed.claim.key[1])
    first = await office.cancel(run_id)
    second = await office.cancel(run_id)
    assert isinstance(first, Stopped)
    assert isinstance(second, Stopped)
    assert (second.status, second.sending) == (first.status, first.sending)
    await office.report(claimed, opened, not_applied(retryable=False))
    await wake(office.engine)
    assert await office.run_status(run_id) == "cancelled"


async def test_an_operation_that_ends_before_the_run_lies_down_is_not_missed(
    office: Office,
) -> None:
    working = await Working.propose(office, closing())
    await office.show()
    [result] = [r for r in working.results if isinstance(r, Accepted)]
    await office.click(result.operation_id, vote=Vote.REJECT)
    await wake(office.engine)
    await working.drive()
    assert await office.run_status(working.run_id) == "succeeded"
