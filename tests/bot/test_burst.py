"""Five hundred cards at once reach a Slack that takes one a second, once each and in order."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest
from slack_sdk.web.async_client import AsyncWebClient

from bot.card_delivery import CardDelivery
from bot.cards import CardPainter, Drawing, view_digest
from bot.sandbox.clock import WallClock
from bot.sandbox.faults import Fault
from bot.sandbox.workspace import Workspace
from bot.slack_pace import SLACK_PACES, delivery_of
from executor.adapters.host_clock import SystemClock, mint_id
from executor.domain.pace import Pace
from executor.domain.payloads import JsonObject
from executor.engine.card_record import CardRecord, OperationRecord
from executor.engine.engine import Engine
from executor.engine.failpoint import Failpoints, Inert
from executor.store.wakeups import Kind, notify
from tests.support.bot_harness import Harness
from tests.support.burst import propose_many
from tests.support.failpoints import Crashed, Trap
from tests.support.nursery import Nursery
from tests.support.processes import Child

CARDS = 500
MOST_STEPS = 10 * CARDS
STALLS_SECONDS = 300
"""What two deaths, lost answers and limits cost together."""

KILLED_AT = (3, 7, 12)
"""After how many messages the bot is killed."""

PACES = replace(SLACK_PACES, updates=Pace(timedelta(days=1)))
"""Slack's own, but that nobody spends time on saying until when each card can be decided."""

LEASE_SECONDS = 31.0
POLICY = """
[slack]
team = "TSIGNOFF"
channel = "C0APPROVALS"
[people]
requesters = "everyone"
approvers = ["U0REVIEWER", "U0SECOND"]
[email]
from = "Acme Support <support@acme.example>"
"""


class MovedClock(WallClock):
    """The machine's clock, moved on by the test as the database's is."""

    moved = 0.0

    def now(self) -> float:
        return super().now() + self.moved


@pytest.fixture
async def h(database_url: str) -> AsyncIterator[Harness]:
    workspace = Workspace.seeded(clock=MovedClock(), post_burst=1, tier_3_burst=20)
    async with Harness(database_url, workspace=workspace, bot=False, worker=False) as harness:
        yield harness


class InBrief(CardPainter):
    """Draws an operation in a line: this is about where cards go, not about what they say."""

    def __init__(self) -> None:
        pass

    def draw(
        self, record: CardRecord, *, render_no: int, nonce: UUID, plain: bool = False
    ) -> Drawing:
        said = f"op_{record.number}" if isinstance(record, OperationRecord) else "its run"
        text: JsonObject = {"type": "text", "text": said}
        line: JsonObject = {"type": "rich_text_section", "elements": [text]}
        name = f"{record.id.hex}.{render_no}.0.{nonce.hex}"
        blocks: list[JsonObject] = [{"type": "rich_text", "elements": [line], "block_id": name}]
        return Drawing(blocks, said, view_digest(blocks), False, False)


class Process:
    """One bot process's worth of delivery, which dies where its failpoints say."""

    def __init__(self, h: Harness, failpoints: Failpoints | None = None) -> None:
        engine = Engine(h.database, SystemClock(), mint_id, h.durations, failpoints or Inert())
        client = AsyncWebClient(
            token=h.workspace.bot_token, base_url=h.slack.api_url, retry_handlers=[]
        )
        self.cards = CardDelivery(engine, client, InBrief(), delivery_of(h.policy, PACES))

    async def work(self) -> bool:
        """Do what is due now; says whether anything was. Raises ``Crashed``."""
        taken = await self.cards.take(8)
        await asyncio.gather(*(self.cards.deliver(due) for due in taken))
        return bool(taken)


async def let_pass(h: Harness, seconds: float) -> None:
    """Let time pass, for Slack and for the database."""
    assert isinstance(h.workspace.clock, MovedClock)
    h.workspace.clock.moved += seconds
    await h.move_time(timedelta(seconds=seconds))


def sprinkle(h: Harness) -> None:
    """Lose answers, messages and patience here and there."""
    for fault, calls in {
        Fault.LOST_AFTER_COMMIT: (7, 90, 210, 333),
        Fault.FATAL_ERROR_AFTER_COMMIT: (40, 300),
        Fault.NOT_DELIVERED: (23, 222),
        Fault.ERROR_500_BEFORE_COMMIT: (111,),
        Fault.RATE_LIMITED: (3, 55, 56, 199, 400),
    }.items():
        for call in calls:
            h.slack.faults.add("chat.postMessage", fault=fault, call=call, seconds=7)
    h.slack.faults.add("conversations.history", fault=Fault.HISTORY_LAGS, times=2)
    h.slack.faults.add("conversations.history", fault=Fault.RATE_LIMITED, call=9, seconds=30)


async def unplaced(h: Harness) -> int:
    """How many cards have no message that is known."""
    return int(await h.value("SELECT count(*) FROM cards WHERE ts IS NULL"))


def shown(h: Harness) -> list[int]:
    """The operations whose cards stand in the channel, from top to bottom."""
    named = [re.search(r"\bop_(\d+)\b", card.text) for card in h.cards()]
    return [int(found.group(1)) for found in named if found is not None]


@pytest.mark.timeout(300)
async def test_a_burst_arrives_once_each_and_in_order_whoever_dies(h: Harness) -> None:
    operations = await propose_many(h, CARDS)
    sprinkle(h)
    deaths = [Trap("begin_posting.after", at_visit=60), Trap("present.before", at_visit=90)]
    lives = iter([*(Process(h, trap) for trap in deaths), Process(h)])
    process, begun = next(lives), h.workspace.now()
    for _ in range(MOST_STEPS):
        try:
            busy = await process.work()
        except Crashed:
            process = next(lives)
            continue
        if not busy and len(shown(h)) >= CARDS and not await unplaced(h):
            break
        if not busy:
            await let_pass(h, min(1.0, process.cards.again_in() or 1.0))
    assert [trap.sprung for trap in deaths] == [True, True]
    assert shown(h) == operations
    assert h.workspace.now() - begun < 1.2 * CARDS + STALLS_SECONDS
    calls = h.slack.record.calls("chat.postMessage")
    too_fast = [c for c in calls if c.data["status"] == 429 and "fault" not in c.data]
    assert len(too_fast) <= CARDS // 50, "now and then a call overtakes another on its way"


@asynccontextmanager
async def time_passing(h: Harness) -> AsyncIterator[None]:
    """Let another turn come, for Slack and for the database, after each message or a moment."""

    async def tick() -> None:
        while True:
            seen = h.workspace.version
            try:
                async with asyncio.timeout(0.1):
                    await h.workspace.next_change(seen)
            except TimeoutError:
                pass
            await let_pass(h, 1.1)
            await notify(h.database, Kind.CARDS)

    ticking = asyncio.create_task(tick())
    try:
        yield
        assert not ticking.done(), ticking.exception()
    finally:
        ticking.cancel()
        await asyncio.wait({ticking})


async def test_a_bot_that_is_killed_again_and_again_loses_and_repeats_nothing(
    h: Harness, nursery: Nursery, tmp_path: Path
) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text(POLICY)
    bot = Child(
        nursery,
        "bot",
        {
            "SIGNOFF_POLICY": str(policy),
            "SLACK_BOT_TOKEN": h.workspace.bot_token,
            "SLACK_SIGNING_SECRET": h.workspace.signing_secret,
            "SLACK_API_URL": h.slack.api_url,
            "DATABASE_URL": h.database_url,
            "SIGNOFF_PORT": "0",
        },
        tmp_path / "bot.log",
    )
    operations = await propose_many(h, KILLED_AT[-1] + 5)
    try:
        for messages in KILLED_AT:
            await bot.start()
            async with time_passing(h):
                await h.workspace.wait_for(lambda _, n=messages: len(shown(h)) >= n, 60)  # type: ignore[misc]
                # The message stands there, and its answer is on its way or being recorded.
                await bot.kill()
            await let_pass(h, LEASE_SECONDS)
        await bot.start()
        async with time_passing(h):
            await h.until(lambda: unplaced(h), lambda left: left == 0, timeout=60)
    finally:
        await bot.kill()
    assert shown(h) == operations
