"""T4 is one point in time: what commits before it prevents the effect, what comes after is late."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from sqlalchemy import text

from executor.domain.ids import OperationId
from executor.domain.transition import Reason, Refused
from executor.engine.claims import ClaimedOperation
from executor.engine.endings import Stopped, cancel, expire
from executor.engine.opening import LostLease, NotOpened, Opened, OpenResult
from executor.engine.setup import activate_policy
from tests.support.failpoints import Gate
from tests.support.forcing import force_operation
from tests.support.office import RENE, SAM, TENANT, Office, policy
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


async def test_b074_cancel_and_opening_at_once_have_one_winner(
    office: Office, database_url: str
) -> None:
    """Fifty rounds at two processes: cancelled with nothing opened, or opened and told so."""
    operations = await office.approved_many(50)
    await office.claim_operations()
    numbered = "SELECT o.id, r.number FROM operations o JOIN runs r ON r.id = o.run_id"
    numbers: dict[OperationId, int] = dict(await office.rows(numbered))
    async with another_pool(database_url) as pool:
        colleague = office.colleague(pool)
        for round_number, operation in enumerate(operations):
            opening = office.open_one(office.held[operation])
            cancelling = cancel(colleague.engine, TENANT, numbers[operation], RENE)
            if round_number % 2:
                stopped, opened = await asyncio.gather(cancelling, opening)
            else:
                opened, stopped = await asyncio.gather(opening, cancelling)
            won = _one_winner(opened, stopped)
            attempts = "SELECT 1 FROM attempts WHERE operation_id = :o"
            assert bool(await office.rows(attempts, o=operation)) is won


def _one_winner(opened: OpenResult, stopped: Stopped | Refused) -> bool:
    """Say whether the opening won; the cancel must have been told the same."""
    assert isinstance(stopped, Stopped)
    if isinstance(opened, Opened):
        assert (stopped.status, len(stopped.sending), stopped.withdrawn) == ("cancelling", 1, ())
        return True
    assert isinstance(opened, LostLease)
    assert (stopped.status, stopped.sending, len(stopped.withdrawn)) == ("cancelled", (), 1)
    return False


async def test_cancel_and_approval_at_once_have_one_winner(
    office: Office, database_url: str
) -> None:
    async with another_pool(database_url) as pool:
        colleague = office.colleague(pool)
        for operation in await office.proposed_many(8):
            run_id = await office.run_of(operation)
            clicked, stopped = await asyncio.gather(
                office.click(operation), colleague.cancel(run_id)
            )
            assert isinstance(stopped, Stopped)
            assert await office.status(operation) == "withdrawn"
            if isinstance(clicked, Refused):
                assert clicked.reason is Reason.WITHDRAWN


async def test_two_votes_at_two_processes_are_both_counted(
    office: Office, database_url: str
) -> None:
    await activate_policy(office.engine, policy(approval={"quorum": 2}))
    async with another_pool(database_url) as pool:
        colleague = office.colleague(pool)
        for operation in await office.proposed_many(8):
            await asyncio.gather(office.click(operation, RENE), colleague.click(operation, SAM))
            assert await office.status(operation) == "approved"


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
