"""T4 is one point in time: what commits before it prevents the effect, what comes after is late.

Here each rival is held at one moment; ``tests/faults/test_decision_races.py`` lets them run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from sqlalchemy import text

from executor.engine.claims import ClaimedOperation
from executor.engine.click import Recorded
from executor.engine.endings import Stopped, expire
from executor.engine.opening import LostLease, NotOpened, Opened
from executor.engine.setup import activate_policy
from executor.store import tenants
from tests.support.failpoints import Gate
from tests.support.forcing import force_operation
from tests.support.office import Office, policy
from tests.support.waiting import another_pool, until_blocked

NOBODY_APPROVES = {"requesters": ["U0REQUESTER"], "approvers": ["U0OUTSIDER"]}
Act = Callable[[Office, ClaimedOperation], Coroutine[Any, Any, object]]


async def _cancel(office: Office, claimed: ClaimedOperation) -> object:
    return await office.cancel(await office.run_of(claimed.claim.key[1]))


async def _revoke(office: Office, claimed: ClaimedOperation) -> object:
    return await activate_policy(office.engine, policy(people=NOBODY_APPROVES))


async def _expire(office: Office, claimed: ClaimedOperation) -> object:
    return await expire(office.engine, [claimed.claim.key])


async def _write(office: Office, claimed: ClaimedOperation) -> object:
    await office.customer_writes()
    return None


ACTS: dict[str, tuple[Act, str]] = {
    "cancel": (_cancel, "withdrawn"),
    "revocation": (_revoke, "stale"),
    "change of the ticket": (_write, "stale"),
}


@pytest.mark.parametrize("name", ACTS)
async def test_what_commits_before_the_opening_prevents_it(office: Office, name: str) -> None:
    act, status = ACTS[name]
    claimed = await office.claimed()
    await act(office, claimed)
    assert isinstance(await office.open_one(claimed), LostLease | NotOpened)
    assert await office.status(claimed.claim.key[1]) == status
    assert await office.rows("SELECT id FROM attempts") == []


@pytest.mark.parametrize("name", ACTS)
async def test_what_waits_for_the_opening_comes_too_late(
    office: Office, database_url: str, name: str
) -> None:
    act, _ = ACTS[name]
    claimed = await office.claimed()
    gate = Gate("open.before")
    async with another_pool(database_url) as pool:
        opening = asyncio.create_task(office.colleague(pool, failpoints=gate).open_one(claimed))
        await gate.reached.wait()
        acting = asyncio.create_task(act(office, claimed))
        await until_blocked(database_url)
        gate.open()
        assert isinstance(await opening, Opened)
        await acting
    assert await office.status(claimed.claim.key[1]) == "executing"
    if name == "cancel":
        stopped = acting.result()
        assert isinstance(stopped, Stopped)
        assert (stopped.status, len(stopped.sending)) == ("cancelling", 1)


async def test_an_expiry_that_waits_for_the_opening_leaves_it_alone(
    office: Office, database_url: str
) -> None:
    claimed = await office.claimed()
    gate = Gate("open.before")
    async with another_pool(database_url) as pool:
        opening = asyncio.create_task(office.colleague(pool, failpoints=gate).open_one(claimed))
        await gate.reached.wait()
        await office.later_unseen(hours=2)
        sweeping = asyncio.create_task(_expire(office, claimed))
        await until_blocked(database_url)
        gate.open()
        assert isinstance(await opening, Opened)
        assert await sweeping == 0


async def test_an_opening_that_waits_for_an_expiry_opens_nothing(
    office: Office, database_url: str
) -> None:
    claimed = await office.claimed()
    await office.later(hours=2)
    gate = Gate("expire.before")
    async with another_pool(database_url) as pool:
        sweeping = asyncio.create_task(_expire(office.colleague(pool, failpoints=gate), claimed))
        await gate.reached.wait()
        opening = asyncio.create_task(office.open_one(claimed))
        await until_blocked(database_url)
        gate.open()
        await sweeping
        assert isinstance(await opening, LostLease)
    operation = claimed.claim.key[1]
    assert (await office.status(operation), await office.reason(operation)) == (
        "expired",
        "time_to_use_over",
    )


async def test_who_waits_for_a_new_policy_is_judged_by_it(
    office: Office, database_url: str
) -> None:
    waiting, claimed = await office.proposed("4102"), await office.claimed("4101")
    async with another_pool(database_url) as pool:
        async with pool.transaction() as conn:
            await tenants.put_policy(conn, policy(tenant={"name": "Acme Support"}))
            opening = asyncio.create_task(office.open_one(claimed))
            clicking = asyncio.create_task(office.click(waiting))
            await until_blocked(database_url, 2)
        assert isinstance(await opening, Opened), "the new policy lets it as well"
        assert isinstance(await clicking, Recorded)


async def test_an_earlier_operation_is_not_proved_applied_while_a_later_one_opens(
    office: Office, database_url: str
) -> None:
    """The late receipt of a failed operation waits until the second one of its key has opened."""
    other = (await office.claimed("4102")).claim.key[1]
    for target in ("executing", "failed"):
        await force_operation(office, other, target)
    async with office.database.transaction() as conn:
        await conn.execute(
            text("UPDATE operations SET intent_key = 'close:builtin:4101:1' WHERE id = :id"),
            {"id": other},
        )
    claimed = await office.claimed("4101")
    gate = Gate("open.before")
    async with another_pool(database_url) as pool:
        opening = asyncio.create_task(office.colleague(pool, failpoints=gate).open_one(claimed))
        await gate.reached.wait()
        proving = asyncio.create_task(force_operation(office, other, "succeeded"))
        await until_blocked(database_url)
        gate.open()
        assert isinstance(await opening, Opened)
        await proving
