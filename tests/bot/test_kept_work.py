"""Whoever stops waiting does not stop the work; a busy loop is not taken for slow work."""

from __future__ import annotations

import asyncio
import time

import pytest

from bot.kept_work import KeptWork


async def test_work_goes_on_after_its_waiter_gave_up() -> None:
    kept, gate, done = KeptWork(), asyncio.Event(), asyncio.Event()

    async def work() -> None:
        await gate.wait()
        done.set()

    with pytest.raises(TimeoutError):
        await kept.within(0.01, work())
    gate.set()
    await asyncio.wait_for(done.wait(), 5)


async def test_a_cancelled_waiter_does_not_cancel_the_work() -> None:
    kept, gate, done = KeptWork(), asyncio.Event(), asyncio.Event()

    async def work() -> None:
        await gate.wait()
        done.set()

    waiter = asyncio.create_task(kept.within(5, work()))
    await asyncio.sleep(0)
    waiter.cancel()
    await asyncio.wait({waiter})
    gate.set()
    await asyncio.wait_for(done.wait(), 5)


async def test_a_loop_that_was_busy_elsewhere_is_no_time_out() -> None:
    async def work() -> str:
        for _ in range(20):
            await asyncio.sleep(0)
        return "done"

    asyncio.get_running_loop().call_soon(time.sleep, 0.3)
    assert await KeptWork().within(0.05, work()) == "done"


async def test_an_error_reaches_the_waiter_and_a_late_one_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    kept, gate = KeptWork(), asyncio.Event()

    async def fail() -> None:
        raise LookupError("Dear Pat")

    async def fail_late() -> None:
        await gate.wait()
        raise LookupError("Dear Pat")

    with pytest.raises(LookupError):
        await kept.within(1, fail())
    with pytest.raises(TimeoutError):
        await kept.within(0, fail_late())
    gate.set()
    await kept.close()
    assert "LookupError" in caplog.text
    assert "Dear Pat" not in caplog.text
