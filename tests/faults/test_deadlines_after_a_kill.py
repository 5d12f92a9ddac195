"""Deadlines are in the record: an executor that was killed and started late lets each take effect.

Two are started afterwards, and still each deadline takes effect once.
"""

from __future__ import annotations

import json
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from executor.domain.operation import OperationStatus
from executor.domain.run import RunStatus
from executor.engine.failpoint import Commit, Side, point
from tests.support.bot_harness import Harness, make_policy
from tests.support.nursery import Nursery
from tests.support.processes import Child

LONG = 30_000_000
STOPS = "SELECT count(*) FROM journal WHERE machine = 'run' AND event = 'stopped'"


@asynccontextmanager
async def executors(h: Harness, nursery: Nursery, folder: Path) -> AsyncIterator[Any]:
    """Start executors by name, each a process; none outlives the block."""
    policy = folder / "policy.toml"
    document = h.policy.model_dump(mode="json", by_alias=True, exclude_unset=True)
    policy.write_text(
        "\n".join(
            line
            for section, values in document.items()
            for line in (f"[{section}]", *(f"{n} = {json.dumps(v)}" for n, v in values.items()))
        )
    )
    children: list[Child] = []

    async def start(name: str, **more: str) -> Child:
        settings = {
            "DATABASE_URL": h.database_url,
            "SIGNOFF_HOME": str(folder),
            "SIGNOFF_POLICY": str(policy),
            "SIGNOFF_SWEEP_SECONDS": "0.2",
            "SMTP_URL": f"{h.mailbox.url}?tls=none",
            **more,
        }
        child = Child(nursery, "executor", settings, folder / f"{name}.log")
        children.append(child)
        await child.start()
        return child

    try:
        yield start
    finally:
        for child in children:
            await child.kill()


async def overslept(h: Harness, start: Any) -> int:
    """A run whose executor is killed while it waits; two others start ten minutes later."""
    first = await start("first")
    number = await h.start_run("close 4101")
    await h.settled_card()
    await h.until_run(number, RunStatus.WAITING)
    await first.kill()
    await h.move_time(timedelta(seconds=601))
    await start("second")
    await start("third")
    return number


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"max_parked_seconds": 600, "max_seconds": LONG}, "parked_too_long"),
        ({"max_parked_seconds": LONG, "max_seconds": 600}, "time_limit"),
    ],
)
async def test_a_run_whose_time_is_over_meanwhile_is_ended_once(
    database_url: str, tmp_path: Path, nursery: Nursery, limits: dict[str, int], reason: str
) -> None:
    policy = make_policy(run=limits)
    async with (
        Harness(database_url, policy=policy, worker=False) as h,
        executors(h, nursery, tmp_path) as start,
    ):
        number = await overslept(h, start)
        await h.until_run(number, RunStatus.FAILED)
        await h.until_operation(OperationStatus.WITHDRAWN)
        assert await h.value("SELECT reason FROM runs") == reason
        assert await h.value(STOPS) == 1
        told = await h.word("Ended without finishing.")
        assert told is not None


@pytest.mark.timeout(120)
async def test_what_nobody_decided_meanwhile_expires_once_and_the_run_goes_on(
    database_url: str, tmp_path: Path, nursery: Nursery
) -> None:
    policy = make_policy(approval={"decide_within_seconds": 600})
    async with (
        Harness(database_url, policy=policy, worker=False) as h,
        executors(h, nursery, tmp_path) as start,
    ):
        number = await overslept(h, start)
        await h.until_run(number, RunStatus.SUCCEEDED)
        await h.until_operation(OperationStatus.EXPIRED)
        expired = "SELECT count(*) FROM journal WHERE event = 'time_ran_out'"
        assert await h.value(expired) == 1
        assert await h.value("SELECT count(*) FROM decisions") == 0
        assert h.mailbox.accepted == 0


@pytest.mark.timeout(120)
async def test_money_held_for_a_call_of_a_killed_executor_stays_counted_and_the_run_goes_on(
    database_url: str, tmp_path: Path, nursery: Nursery
) -> None:
    async with (
        Harness(database_url, worker=False) as h,
        executors(h, nursery, tmp_path) as start,
    ):
        dying = await start("first", SIGNOFF_FAILPOINT=point(Commit.RESERVE, Side.AFTER))
        number = await h.start_run("close 4101")
        assert dying.process is not None
        assert await dying.process.wait() == -signal.SIGKILL
        assert await h.value("SELECT string_agg(status, ',') FROM reservations") == "held"
        amount = await h.value("SELECT held_microusd FROM run_budgets")
        # Past the lease and past the longest that a call may take.
        await h.move_time(timedelta(seconds=200))
        await start("second")
        await start("third")
        await h.settled_card()
        await h.until_run(number, RunStatus.WAITING)
        oldest = "SELECT status FROM reservations ORDER BY reserved_at LIMIT 1"

        async def status() -> object:
            return await h.value(oldest)

        await h.until(status, lambda found: found == "unknown")
        lost = "SELECT count(*) FROM journal WHERE machine = 'reservation' AND target = 'unknown'"
        assert await h.value(lost) == 1
        assert await h.value("SELECT held_microusd FROM run_budgets") == amount
