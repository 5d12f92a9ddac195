"""The time is read after the locks: what came too late while it waited is too late."""

from __future__ import annotations

import asyncio

from sqlalchemy import text

from executor.domain.transition import Reason, Refused
from executor.engine.opening import NotOpened
from tests.support.office import Office
from tests.support.waiting import another_pool, until_blocked

LOCK = text("SELECT 1 FROM operations FOR UPDATE")


async def test_a_vote_whose_deadline_passes_while_it_waits_for_the_row_is_refused(
    office: Office, database_url: str
) -> None:
    operation = await office.proposed()
    await office.later(hours=23, minutes=59, seconds=30)
    async with another_pool(database_url) as pool:
        async with pool.transaction() as holder:
            await holder.execute(LOCK)
            clicking = asyncio.create_task(office.click(operation))
            await until_blocked(database_url)
            await office.colleague(pool).later(seconds=45)
        refused = await clicking
    assert isinstance(refused, Refused)
    assert refused.reason is Reason.EXPIRED
    assert await office.status(operation) == "expired"


async def test_an_opening_whose_time_to_use_passes_while_it_waits_opens_nothing(
    office: Office, database_url: str
) -> None:
    claimed = await office.claimed()
    await office.later(minutes=59, seconds=30)
    async with another_pool(database_url) as pool:
        async with pool.transaction() as holder:
            await holder.execute(LOCK)
            opening = asyncio.create_task(office.open_one(claimed))
            await until_blocked(database_url)
            await office.colleague(pool).later(seconds=45)
        result = await opening
    assert isinstance(result, NotOpened)
    assert await office.status(claimed.claim.key[1]) == "expired"


async def test_a_person_whose_observation_ages_while_the_vote_waits_does_not_decide(
    office: Office, database_url: str
) -> None:
    operation = await office.proposed()
    await office.later(seconds=1)
    async with another_pool(database_url) as pool:
        async with pool.transaction() as holder:
            await holder.execute(LOCK)
            clicking = asyncio.create_task(office.click(operation))
            await until_blocked(database_url)
            await office.colleague(pool).later_unseen(seconds=61)
        refused = await clicking
    assert isinstance(refused, Refused)
    assert refused.reason is Reason.IDENTITY_UNKNOWN
