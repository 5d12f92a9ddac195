"""A loop outlives each of its pieces, holds no more than it may, and goes on when news comes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from bot.due_work import DueWork
from executor.domain.errors import DatabaseUnavailable, LostRace


class Work:
    """Numbers to be done; each waits in ``do`` until it is let go, or fails as told."""

    def __init__(self, *items: int) -> None:
        self.due = list(items)
        self.done: list[int] = []
        self.errors: dict[int, BaseException] = {}
        self.problem: BaseException | None = None
        self.news = asyncio.Event()
        self.changed = asyncio.Condition()
        self.begun = asyncio.Event()
        self.in_hand = 0
        self.most_in_hand = 0
        self.hold: asyncio.Event | None = None

    async def take(self, most: int) -> Sequence[int]:
        if self.problem is not None:
            problem, self.problem = self.problem, None
            raise problem
        taken, self.due = self.due[:most], self.due[most:]
        return taken

    async def do(self, item: int) -> None:
        self.in_hand += 1
        self.most_in_hand = max(self.most_in_hand, self.in_hand)
        try:
            self.begun.set()
            if self.hold is not None:
                await self.hold.wait()
            for _ in range(5):
                await asyncio.sleep(0)
            if item in self.errors:
                raise self.errors[item]
        finally:
            self.in_hand -= 1
            async with self.changed:
                self.done.append(item)
                self.changed.notify_all()

    async def wait(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self.news.wait()
        except TimeoutError:
            return False
        self.news.clear()
        return True

    async def until_done(self, *items: int) -> None:
        async with asyncio.timeout(5), self.changed:
            await self.changed.wait_for(lambda: sorted(self.done) == sorted(items))


@asynccontextmanager
async def running(work: Work, *, most: int = 8, poll: float = 60.0) -> AsyncIterator[None]:
    loop = DueWork("numbers", work.take, work.do, work.wait, most=most, poll_seconds=poll)
    task = asyncio.create_task(loop.run())
    try:
        yield
        assert not task.done(), "the loop has ended"
    finally:
        task.cancel()
        await asyncio.wait({task})


@pytest.mark.parametrize("error", [ValueError("x"), LostRace("x", 1), AssertionError()])
async def test_one_failed_piece_stops_neither_the_loop_nor_the_others(
    error: BaseException,
) -> None:
    work = Work(1, 2, 3)
    work.errors[2] = error
    async with running(work):
        await work.until_done(1, 2, 3)
        work.due.append(4)
        work.news.set()
        await work.until_done(1, 2, 3, 4)


@pytest.mark.parametrize("problem", [DatabaseUnavailable("away"), RuntimeError("x")])
async def test_a_failed_look_is_repeated(problem: BaseException) -> None:
    work = Work(1)
    work.problem = problem
    async with running(work, poll=0.01):
        await work.until_done(1)


async def test_no_more_is_in_hand_than_may_be_and_the_end_of_one_makes_room() -> None:
    work = Work(*range(10))
    async with running(work, most=3):
        await work.until_done(*range(10))
    assert work.most_in_hand == 3


async def test_what_is_in_hand_is_let_go_when_the_loop_ends() -> None:
    work = Work(1)
    work.hold = asyncio.Event()
    async with running(work):
        await work.begun.wait()
        assert work.in_hand == 1
    assert work.in_hand == 0
