"""A lease that ends: by the work's own last commit, or because somebody else took it."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from executor.adapters.host_clock import SystemClock, mint_id
from executor.domain.errors import StaleEpoch
from executor.domain.lease import Lease, LeaseTerms
from executor.engine.engine import Durations, Engine
from executor.engine.leases import Keeper
from executor.store.database import Database

TERMS = LeaseTerms(ttl_seconds=1.0, margin_seconds=0.2, heartbeat_seconds=0.02)


@pytest.fixture
def engine() -> Engine:
    """An engine that beats often; nothing here reaches its database."""
    durations = replace(Durations(), lease=TERMS, first_byte_seconds=0.5)
    database = Database.connect("postgresql://127.0.0.1:1/none", application_name="test")
    return Engine(database, SystemClock(), mint_id, durations)


async def test_work_whose_own_commit_gave_the_lease_up_comes_to_its_end(engine: Engine) -> None:
    given_up, beaten = asyncio.Event(), asyncio.Event()

    async def renew() -> bool:
        await given_up.wait()
        beaten.set()
        return False

    async def work() -> str:
        given_up.set()
        await beaten.wait()
        return "done"

    keeper = Keeper(engine, Lease("w1", 1, 0.0), renew)
    assert await keeper.while_kept(work(), abandon=True) == "done"


async def test_work_whose_lease_was_taken_over_is_ended(engine: Engine) -> None:
    ended = asyncio.Event()

    async def renew() -> bool:
        return False

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    keeper = Keeper(engine, Lease("w1", 1, 0.0), renew)
    with pytest.raises(StaleEpoch):
        await keeper.while_kept(work(), abandon=True)
    assert ended.is_set()
