"""Locks are taken in one order, each by id, and an epoch is compared under the lock it guards.

Each test holds one row, lets a use case run into it, and shows that what comes later in the order
is still free: so no two use cases can hold what the other waits for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import text

from executor.domain.approval import Vote
from executor.domain.budget import Void
from executor.domain.errors import StaleEpoch
from executor.engine.asking import Ask, ask
from executor.engine.budget import reserve
from executor.engine.charging import charge_alone
from executor.engine.compensating import compensate
from executor.engine.endings import expire
from executor.engine.opening import Opened, OpenResult, Ready, open_attempts
from executor.engine.purse import Ask as AskForMoney
from executor.engine.purse import Held
from executor.engine.report import Report, report
from executor.engine.sighting import see_all
from executor.store.database import Database
from tests.support.fake_mail import applied, not_applied
from tests.support.office import RENE, TENANT, Office, closing
from tests.support.outside import PAT, at_zendesk
from tests.support.waiting import another_pool, until_blocked

Act = Callable[[], Coroutine[Any, Any, object]]


async def _runs_into(url: str, act: Act, *, held: str, free: list[str]) -> object:
    """Let ``act`` wait for the rows ``held``; those of ``free`` must be lockable meanwhile."""
    async with another_pool(url) as pool:
        async with pool.transaction() as holder:
            assert (await holder.execute(text(f"{held} FOR UPDATE"))).all()
            acting = asyncio.create_task(act())
            await until_blocked(url)
            async with pool.transaction() as probe:
                for rows in free:
                    assert (await probe.execute(text(f"{rows} FOR UPDATE NOWAIT"))).all(), rows
        return await acting


RUN = "SELECT 1 FROM runs"
TICKET = "SELECT 1 FROM desk_tickets WHERE id = '4101'"
OPERATION = "SELECT 1 FROM operations"
APPROVAL = "SELECT 1 FROM approvals"
CARD = "SELECT 1 FROM cards"
HEAD = "SELECT 1 FROM journal_heads"
ORDER = [RUN, TICKET, OPERATION, APPROVAL, CARD, HEAD]


def _later_than(rows: str) -> list[str]:
    return ORDER[ORDER.index(rows) + 1 :]


@pytest.mark.parametrize("held", [RUN, TICKET, OPERATION, APPROVAL, CARD])
async def test_an_opening_locks_in_order(database: Database, database_url: str, held: str) -> None:
    office = await Office.open(database)
    claimed = await office.claimed()
    await _runs_into(
        database_url, lambda: office.open_one(claimed), held=held, free=_later_than(held)
    )


@pytest.mark.parametrize("held", [OPERATION, APPROVAL, CARD])
async def test_a_decision_locks_in_order(database: Database, database_url: str, held: str) -> None:
    office = await Office.open(database)
    operation = await office.proposed()
    free = [RUN, *_later_than(held)]
    await _runs_into(database_url, lambda: office.click(operation), held=held, free=free)


@pytest.mark.parametrize("held", [RUN, OPERATION, APPROVAL, CARD])
async def test_a_rejection_that_stops_its_run_locks_in_order(
    database: Database, database_url: str, held: str
) -> None:
    office = await Office.open(database)
    operation = await office.proposed()
    click = replace(await office.click_for(operation, vote=Vote.REJECT), stops_run=True)
    await _runs_into(database_url, lambda: office.decide(click), held=held, free=_later_than(held))


@pytest.mark.parametrize("held", [RUN, OPERATION, APPROVAL, CARD])
async def test_a_question_locks_in_order(database: Database, database_url: str, held: str) -> None:
    office = await Office.open(database)
    operation = await office.proposed()
    asked = Ask(TENANT, operation, RENE, "Why?", "C1", "U0REVIEWER", bytes(32))
    await _runs_into(
        database_url, lambda: ask(office.engine, [asked]), held=held, free=_later_than(held)
    )


async def test_turns_are_given_out_before_any_card_is_locked(
    database: Database, database_url: str
) -> None:
    office = await Office.open(database)
    await office.proposed()
    async with database.transaction() as conn:
        await conn.execute(text("UPDATE cards SET due_at = signoff_clock()"))
    await _runs_into(
        database_url, office.due_cards, held="SELECT 1 FROM paces", free=[OPERATION, CARD, HEAD]
    )


@pytest.mark.parametrize("held", [RUN, OPERATION, APPROVAL, CARD])
async def test_a_cancel_locks_in_order(database: Database, database_url: str, held: str) -> None:
    office = await Office.open(database)
    run_id = await office.run_of(await office.proposed())
    await _runs_into(database_url, lambda: office.cancel(run_id), held=held, free=_later_than(held))


@pytest.mark.parametrize("held", [RUN, TICKET, OPERATION, APPROVAL, CARD])
async def test_a_compensation_locks_in_order(
    database: Database, database_url: str, held: str
) -> None:
    office = await Office.open(database)
    claimed, opened = await office.opened()
    await office.report(claimed, opened, not_applied(retryable=False))
    await _runs_into(
        database_url,
        lambda: compensate(office.engine, office.providers),
        held=held,
        free=_later_than(held),
    )
    assert len(await office.rows("SELECT 1 FROM operations")) == 2


@pytest.mark.parametrize("held", [OPERATION, CARD])
async def test_a_report_locks_no_run(database: Database, database_url: str, held: str) -> None:
    office = await Office.open(database)
    claimed, opened = await office.opened()
    free = [RUN, TICKET, APPROVAL, *{CARD, HEAD}.difference({held})]
    await _runs_into(
        database_url, lambda: office.report(claimed, opened, applied()), held=held, free=free
    )


async def test_a_proposal_locks_its_tickets_by_id_whatever_their_order_in_the_reply(
    database: Database, database_url: str
) -> None:
    office = await Office.open(database)
    run_id = await office.start_run()
    claimed = await office.claim_run(run_id)
    await _runs_into(
        database_url,
        lambda: office.ask(run_id, claimed, closing("4102"), closing("4101")),
        held=TICKET,
        free=["SELECT 1 FROM desk_tickets WHERE id = '4102'"],
    )


async def test_operations_are_locked_by_id_whatever_their_order_in_the_batch(
    database: Database, database_url: str
) -> None:
    office = await Office.open(database)
    pairs = [await office.opened(ticket) for ticket in ("4101", "4102")]
    first, second = (claimed.claim.key for claimed, _ in pairs)
    reports = [Report(c.claim.key, o.attempt.id, applied(), "w1") for c, o in pairs][::-1]
    batches: list[Act] = [
        lambda: expire(office.engine, [second, first]),
        lambda: report(office.engine, reports),
    ]
    for batch in batches:
        await _runs_into(
            database_url,
            batch,
            held=f"{OPERATION} WHERE id = '{first[1]}'",
            free=[f"{OPERATION} WHERE id = '{second[1]}'"],
        )


async def test_reservations_are_locked_before_their_accounts(
    database: Database, database_url: str
) -> None:
    office = await Office.open(database)
    claimed = await office.claim_run(await office.start_run())
    ask = AskForMoney(claimed.key, claimed.lease.epoch, "model:test", 5, 60.0)
    [held] = await reserve(office.engine, [ask])
    assert isinstance(held, Held)
    key = (TENANT, held.reservation_id)
    await _runs_into(
        database_url,
        lambda: charge_alone(office.engine, {key: Void()}),
        held="SELECT 1 FROM reservations",
        free=["SELECT 1 FROM run_budgets", "SELECT 1 FROM tenant_days", HEAD],
    )
    await _runs_into(
        database_url,
        lambda: reserve(office.engine, [ask]),
        held="SELECT 1 FROM run_budgets",
        free=["SELECT 1 FROM tenant_days", HEAD],
    )


async def test_two_steps_that_name_the_same_tickets_in_opposite_order_both_come_through(
    database: Database, database_url: str
) -> None:
    office = await Office.open(database)
    runs = [await office.start_run() for _ in range(2)]
    claims = [await office.claim_run(run_id) for run_id in runs]
    async with another_pool(database_url) as pool:
        colleague = office.colleague(pool)
        for step in range(1, 100, 10):
            await asyncio.gather(
                office.ask(runs[0], claims[0], closing("4101"), closing("4102"), step=step),
                colleague.ask(runs[1], claims[1], closing("4102"), closing("4101"), step=step),
            )


TAKE_OVER = text("UPDATE runs SET lease_owner = 'w2', lease_epoch = lease_epoch + 1")


async def test_a_stale_worker_that_waits_for_the_row_while_it_is_taken_over_writes_nothing(
    database: Database, database_url: str
) -> None:
    office = await Office.open(database)
    run_id = await office.start_run()
    claimed = await office.claim_run(run_id, "w1")
    async with another_pool(database_url) as pool:
        async with pool.transaction() as successor:
            await successor.execute(TAKE_OVER)
            stale = asyncio.create_task(office.ask(run_id, claimed, closing()))
            await until_blocked(database_url)
        with pytest.raises(StaleEpoch):
            await stale
    assert await office.rows("SELECT 1 FROM operations") == []


async def test_an_epoch_compared_in_a_sub_select_would_let_the_stale_worker_through(
    database: Database, database_url: str
) -> None:
    """Why the rule exists: the sub-select is as old as the statement's wait for the row lock."""
    office = await Office.open(database)
    operation = await office.proposed()
    fenced_badly = text(
        "UPDATE operations SET detail = '{}' WHERE id = :id AND EXISTS ("
        "SELECT 1 FROM runs r WHERE r.id = operations.run_id AND r.lease_epoch = 1)"
    )

    async def stale() -> int:
        async with office.database.transaction() as conn:
            return (await conn.execute(fenced_badly, {"id": operation})).rowcount

    async with another_pool(database_url) as pool:
        async with pool.transaction() as successor:
            await successor.execute(text(f"{OPERATION} FOR UPDATE"))
            writing = asyncio.create_task(stale())
            await until_blocked(database_url)
            await successor.execute(TAKE_OVER)
            await successor.execute(text("UPDATE operations SET detail = '{}'"))
        assert await writing == 1


COUNT = "SELECT 1 FROM ticket_episodes"


async def test_our_count_of_an_outside_tickets_closings_is_locked_in_the_tickets_place(
    database: Database, database_url: str
) -> None:
    office = await Office.open(database)
    async with at_zendesk(office) as outside:
        version = await outside.version()
        operation = await outside.approved()
        claimed = await office.claim_operation(operation)
        run_id = await office.start_run()
        held = await office.claim_run(run_id)

        async def asking() -> None:
            await office.ask(run_id, held, closing(to=[PAT]), version=version)

        await _runs_into(database_url, asking, held=COUNT, free=[OPERATION, APPROVAL, CARD])

        [sight] = (await see_all(office.engine, outside.desk, ["4101"])).values()
        opened: list[OpenResult] = []

        async def opening() -> None:
            ready = [Ready(claimed.claim, sight)]
            opened.extend(await open_attempts(office.engine, office.providers, ready))

        await _runs_into(database_url, opening, held=COUNT, free=[OPERATION, APPROVAL, CARD])
        [result] = opened
        assert isinstance(result, Opened)

        async def reporting() -> None:
            await office.report(claimed, result, applied())

        await _runs_into(database_url, reporting, held=COUNT, free=[OPERATION, CARD, HEAD])
        assert await outside.is_applied(operation, "ticket.close")
