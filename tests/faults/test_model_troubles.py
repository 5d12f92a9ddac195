"""The model's server fails in each way it can: the job goes on or ends, and the money is right.

Nobody is killed here; ``test_model_call_crashes.py`` does that.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from bot.sandbox.model_faults import ModelFault, PlannedFault
from bot.sandbox.model_reply import SaidCall, SaidReply, call
from executor.store.database import Database
from tests.adapters.remote_models import KINDS
from tests.support.nursery import Nursery
from tests.support.paid_job import PaidJob, Way, cost, paid_job

DONE = ("replied", "settled")
UNCOUNTED = ("replied", "unknown")
BROKEN = ("failed", "unknown")
BROKEN_AND_COUNTED = ("failed", "settled")
TURNED_AWAY = ("failed", "voided")

Opening = Callable[..., AbstractAsyncContextManager[PaidJob]]


@pytest.fixture
def opened(database: Database, database_url: str, nursery: Nursery, tmp_path: Path) -> Opening:
    """A job with one executor that works it, unless told otherwise."""

    @asynccontextmanager
    async def opening(
        way: Way, script: Iterable[SaidReply] = (), *faults: PlannedFault | None, **settings: str
    ) -> AsyncIterator[PaidJob]:
        async with paid_job(database, database_url, nursery, tmp_path, way, script) as job:
            for number, fault in enumerate(faults, start=1):
                if fault is not None:
                    job.double.fail(fault, call=number)
            await job.start(**settings)
            yield job

    return opening


def _reads(count: int) -> list[SaidReply]:
    """Read the ticket again and again, and be done with it."""
    reads = [
        SaidReply("", (call(f"c{number}", "read_ticket", ticket_id="4101"),))
        for number in range(count)
    ]
    return [*reads, SaidReply("Nothing is to be done.")]


# A reply with one call is 7 events of Anthropic's, and 5 of OpenAI's.
_BREAKS = [
    ("anthropic", ModelFault.BREAK, [BROKEN] * 6 + [BROKEN_AND_COUNTED] * 2),
    ("anthropic", ModelFault.END_EARLY, [BROKEN] * 6 + [BROKEN_AND_COUNTED]),
    ("anthropic", ModelFault.ERROR_IN_STREAM, [BROKEN] * 6 + [BROKEN_AND_COUNTED]),
    ("openai", ModelFault.BREAK, [BROKEN] * 4 + [BROKEN_AND_COUNTED, DONE]),
    ("openai", ModelFault.END_EARLY, [BROKEN] * 3 + [UNCOUNTED, DONE]),
    ("openai", ModelFault.ERROR_IN_STREAM, [BROKEN] * 4 + [BROKEN_AND_COUNTED, DONE]),
]


@pytest.mark.parametrize(
    ("kind", "fault", "ends"), _BREAKS, ids=[f"{k}-{f}" for k, f, _ in _BREAKS]
)
async def test_a_stream_that_breaks_off_is_charged_for_as_far_as_it_was_told(
    opened: Opening, kind: str, fault: ModelFault, ends: list[tuple[str, str]]
) -> None:
    faults: list[PlannedFault | None] = []
    for after in range(len(ends)):
        faults += [PlannedFault(fault, after=after), None]
    async with opened(Way(kind, True), _reads(len(faults)), *faults) as job:
        assert await job.until_over() == "succeeded"
        assert await job.came_to() == [c for end in ends for c in (end, DONE)] + [DONE]
        await job.check_the_money()
        await job.check_the_rest(mails=0)


@pytest.mark.parametrize("way", [Way("anthropic", True), Way("openai", False)], ids=str)
async def test_a_job_whose_usage_is_never_told_is_done_and_all_of_it_stays_counted(
    opened: Opening, way: Way
) -> None:
    silent = [PlannedFault(ModelFault.NO_USAGE)] * 3
    async with opened(way, (), *silent) as job:
        await job.approve()
        assert await job.until_over() == "succeeded"
        assert await job.came_to() == [UNCOUNTED] * 3
        await job.check_the_money()
        await job.settle_by_invoice(cost(b) for b in job.double.billed)
        await job.check_accounts(sum(cost(b) for b in job.double.billed), 0)
        await job.check_the_rest()


async def test_a_reply_that_cannot_be_read_without_its_usage_ends_the_job_and_stays_counted(
    opened: Opening,
) -> None:
    silent = PlannedFault(ModelFault.NO_USAGE)
    async with opened(Way("anthropic", False), (), None, silent) as job:
        assert await job.until_over() == "failed"
        assert await job.came_to() == [DONE, BROKEN]
        await job.check_the_money()
        await job.check_the_rest(mails=0)


@pytest.mark.parametrize(
    ("way", "busy"),
    [
        (Way("anthropic", False), TURNED_AWAY),
        # Who speaks as OpenAI does has no words for "turned away" beside 429.
        (Way("openai", True), BROKEN),
    ],
    ids=["anthropic-whole", "openai-streamed"],
)
async def test_what_is_turned_away_is_free_and_what_failed_at_work_stays_counted(
    opened: Opening, way: Way, busy: tuple[str, str]
) -> None:
    faults = [
        PlannedFault(ModelFault.RATE_LIMIT, retry_after=1),
        None,
        PlannedFault(ModelFault.OVERLOADED, retry_after=1),
        None,
        PlannedFault(ModelFault.ERROR, 500),
        None,
    ]
    async with opened(way, (), *faults) as job:
        await job.approve()
        assert await job.until_over() == "succeeded"
        assert await job.came_to() == [TURNED_AWAY, DONE, busy, DONE, BROKEN, DONE]
        await job.check_the_money()
        await job.check_the_rest()


@pytest.mark.parametrize("kind", KINDS)
async def test_who_is_told_to_come_again_later_does_so_and_holds_nothing_meanwhile(
    opened: Opening, kind: str
) -> None:
    later = PlannedFault(ModelFault.RATE_LIMIT, retry_after=60)
    async with opened(Way(kind, False), (), later) as job:
        await job.until("SELECT bool_and(status = 'waiting') FROM runs")
        assert job.double.faults.calls == 1
        await job.check_accounts(0, 0)
        await job.office.later(seconds=61)
        await job.approve()
        assert await job.until_over() == "succeeded"
        assert await job.came_to() == [TURNED_AWAY, DONE, DONE, DONE]
        await job.check_the_money()
        await job.check_the_rest()


@pytest.mark.parametrize("way", [Way("anthropic", True), Way("openai", False)], ids=str)
async def test_a_server_that_goes_on_failing_ends_the_job_with_all_of_it_counted(
    opened: Opening, way: Way
) -> None:
    fails = PlannedFault(ModelFault.ERROR, 500)
    async with opened(way, (), None, fails, fails) as job:
        assert await job.until_over() == "failed"
        assert await job.came_to() == [DONE, BROKEN, BROKEN]
        await job.check_the_money()
        await job.check_the_rest(mails=0)


@pytest.mark.parametrize("fault", [ModelFault.HANG, ModelFault.HANG_AFTER_HEADERS], ids=str)
async def test_a_server_that_hangs_is_asked_once_more_and_may_charge_for_both(
    opened: Opening, fault: ModelFault
) -> None:
    seconds = {"SIGNOFF_MODEL_TIMEOUT_SECONDS": "1.5"}
    way = Way("openai", False) if fault is ModelFault.HANG else Way("anthropic", True)
    async with opened(way, (), None, PlannedFault(fault), **seconds) as job:
        await job.approve()
        assert await job.until_over() == "succeeded"
        assert await job.came_to() == [DONE, BROKEN, DONE, DONE]
        await job.check_the_money()
        await job.check_the_rest()


async def test_a_server_that_is_away_costs_nothing(
    database: Database, database_url: str, nursery: Nursery, tmp_path: Path
) -> None:
    way = Way("openai", True)
    async with paid_job(database, database_url, nursery, tmp_path, way) as job:
        job.double.refuse()
        await job.start()
        assert await job.until_over() == "failed"
        assert await job.came_to() == [TURNED_AWAY, TURNED_AWAY]
        await job.check_accounts(0, 0)
        await job.check_the_rest(mails=0)


async def test_a_server_that_charges_more_than_was_held_is_believed(opened: Opening) -> None:
    dear = SaidReply("", (call("c1", "read_ticket", ticket_id="4101"),), output_tokens=500_000)
    async with opened(Way("openai", True), [dear]) as job:
        await job.until("SELECT count(*) = 1 FROM runs WHERE status = 'paused'")
        assert await job.came_to() == [DONE]
        [billed] = job.double.billed
        assert cost(billed) > (await job.calls())[0].amount
        await job.check_the_money()
        await job.check_the_rest(mails=0)


@pytest.mark.parametrize("way", [Way("anthropic", True), Way("openai", False)], ids=str)
async def test_calls_that_are_malformed_or_share_their_ids_are_paid_for_and_answered(
    opened: Opening, way: Way
) -> None:
    script = [
        SaidReply("", (SaidCall("c1", "read_ticket", '{"ticket_id": "41'),)),
        SaidReply("", (call("c1", "read_ticket", ticket_id="4101"),) * 2),
        SaidReply("", (call("c1", "read_ticket", ticket_id="4101"),)),
        SaidReply("Nothing is to be done."),
    ]
    async with opened(way, script) as job:
        assert await job.until_over() == "succeeded"
        assert await job.came_to() == [DONE] * 4
        assert [len(row) for (row,) in await job.office.rows(_ASKED)] == [1, 2, 1, 0]
        await job.check_the_money()
        await job.check_the_rest(mails=0)


_ASKED = "SELECT content -> 'tool_calls' FROM steps WHERE kind = 'model' ORDER BY number"


@pytest.mark.parametrize(
    ("fault", "way"),
    [
        (ModelFault.HANG, Way("anthropic", False)),
        (ModelFault.HANG_IN_BODY, Way("openai", True)),
    ],
    ids=str,
)
async def test_a_cancelled_run_gives_its_call_up_and_the_invoice_settles_what_it_cost(
    opened: Opening, fault: ModelFault, way: Way
) -> None:
    async with opened(way, (), None, PlannedFault(fault)) as job:
        await job.double.faults.wait_for_hang(30)
        await job.office.cancel(job.run_id)
        # Long before the call would have been over by itself.
        async with asyncio.timeout(20):
            assert await job.until_over() == "cancelled"
        job.double.faults.release()
        assert await job.came_to() == [DONE, ("abandoned", "unknown")]
        await job.check_the_money()
        [told, charged_later] = [cost(b) for b in job.double.billed]
        await job.settle_by_invoice([charged_later])
        await job.check_accounts(told + charged_later, 0)
        assert await job.came_to() == [DONE, ("abandoned", "settled")]
        await job.check_the_rest(mails=0)
