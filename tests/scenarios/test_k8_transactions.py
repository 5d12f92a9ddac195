"""K8: no outside call inside a transaction, and nothing that depends on a notification."""

from __future__ import annotations

import asyncio

import pytest

from executor.engine.executing import execute, openings
from executor.engine.leases import operation_keeper
from executor.store.database import Database
from tests.support.failpoints import Crashed, Gate, Trap
from tests.support.fake_model import FakeModel, says
from tests.support.office import Office
from tests.support.tcp_proxy import tcp_proxy
from tests.support.waiting import another_pool
from tests.support.working import Working

OPEN_TRANSACTIONS = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
    "AND pid <> pg_backend_pid() AND state LIKE 'idle in transaction%'"
)


async def test_b105_no_transaction_is_open_during_a_model_call_or_a_send(office: Office) -> None:
    model = FakeModel([says("Done.")], held=True)
    working = await Working.start(office, model)
    driving = asyncio.create_task(working.drive())
    await model.wait_called()
    assert await office.rows(OPEN_TRANSACTIONS) == [(0,)]
    assert office.database.connections_in_use == 0
    model.release()
    await driving
    office.mail.gate = asyncio.Event()
    claimed = await office.claimed()
    keeper = operation_keeper(office.engine, claimed.claim.key, claimed.lease)
    group = openings(office.engine, office.providers)
    sending = asyncio.create_task(
        execute(office.engine, office.providers, group, claimed.claim, keeper)
    )
    await office.mail.arrived.wait()
    assert await office.rows(OPEN_TRANSACTIONS) == [(0,)]
    assert office.database.connections_in_use == 0
    office.mail.gate.set()
    await sending


async def test_b106_a_commit_after_the_send_that_fails_three_times_sends_once(
    office: Office, database_url: str
) -> None:
    claimed = await office.claimed()
    async with tcp_proxy(database_url) as proxy:
        database = Database.connect(proxy.url, application_name="far")
        far = office.colleague(database)
        office.mail.gate = asyncio.Event()
        keeper = operation_keeper(far.engine, claimed.claim.key, claimed.lease)
        group = openings(far.engine, far.providers)
        sending = asyncio.create_task(
            execute(far.engine, far.providers, group, claimed.claim, keeper)
        )
        await office.mail.arrived.wait()
        proxy.stop_commits(3)
        office.mail.gate.set()
        await sending
        await database.dispose()
    assert office.mail.accepted == 1
    assert await office.status(claimed.claim.key[1]) == "succeeded"


async def test_b107_fifty_model_calls_leave_the_pool_to_whoever_clicks(office: Office) -> None:
    operation = await office.proposed()
    model = FakeModel([says("Done.")] * 50, held=True)
    runs = [await Working.start(office, model) for _ in range(50)]
    await office.claim_run(runs[0].run_id)
    driving = [asyncio.create_task(working.drive()) for working in runs]
    await model.wait_called(50, timeout_seconds=30)
    assert office.database.connections_in_use == 0
    async with asyncio.timeout(3):
        await office.click(operation)
    model.release(50)
    await asyncio.gather(*driving)


@pytest.mark.parametrize("commits", [True, False])
async def test_b108_work_is_visible_only_once_it_is_committed(
    office: Office, database_url: str, commits: bool
) -> None:
    operation = await office.proposed()
    gate = Gate("decide.before")
    async with another_pool(database_url) as pool:
        clicking = asyncio.create_task(office.colleague(pool, failpoints=gate).click(operation))
        await gate.reached.wait()
        assert await office.claim_operations() == []
        if commits:
            gate.open()
            await clicking
        else:
            clicking.cancel()
            await asyncio.wait({clicking})
    assert len(await office.claim_operations()) == (1 if commits else 0)
    assert await office.status(operation) == ("approved" if commits else "awaiting")


async def test_b109_an_approval_whose_process_died_before_it_rang_is_found_by_polling(
    office: Office,
) -> None:
    operation = await office.proposed()
    dying = office.colleague(failpoints=Trap("decide.after"))
    with pytest.raises(Crashed):
        await dying.click(operation)
    [claimed] = await office.claim_operations()
    assert claimed.claim.key[1] == operation
