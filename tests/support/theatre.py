"""One stage of the demo for many plays: the database, the Slack and the mailbox stay, people come
for each play, and each play has a ticket of its own. The programs run on too, but are started anew
for a play in which one of them crashes.

So a play costs what it shows, not the setting up of a database. A play that failed takes the stage
with it.
"""

from __future__ import annotations

import asyncio
import itertools
import shutil
import tempfile
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

from sqlalchemy import text

from bot.sandbox.crash_points import CrashPlan, Story
from bot.sandbox.demo_faults import DemoFault, FaultAt, Outside
from bot.sandbox.demo_truth import Truth
from bot.sandbox.scripted_demo import TICKET, Play
from bot.sandbox.stage import Stage, staged
from bot.sandbox.tickets import sandbox_tickets
from executor.store import clock
from tests.support.nursery import Nursery

_LEFT_TO_DO = """
SELECT (SELECT count(*) FROM cards WHERE due_at IS NOT NULL OR shown_revision < wanted_revision)
    + (SELECT count(*) FROM notices) + (SELECT count(*) FROM inbox WHERE due_at IS NOT NULL)
"""

_REST_NO_LONGER = """
UPDATE cards SET rests_until = NULL, due_at = signoff_clock()
WHERE due_at > signoff_clock() AND rests_until > signoff_clock() AND lease_until IS NULL"""


class Theatre:
    """Opens its stage for the first play and keeps it until ``close``."""

    def __init__(self, nursery: Nursery, outside: Outside = Outside()) -> None:  # noqa: B008 - it is frozen
        self._nursery = nursery
        self._outside = outside
        self._numbers = itertools.count(7001)
        self._held = AsyncExitStack()
        self._stage: Stage | None = None

    async def play(
        self,
        story: Story,
        crash: CrashPlan | None = None,
        fault: DemoFault | None = None,
        at: FaultAt = FaultAt.MAIL,
        *,
        seconds: float = 90.0,
    ) -> Truth:
        """Play one story to its end, until nothing is left to do, and return what is true then."""
        stage = self._stage or await self._open()
        try:
            if crash is not None:
                await stage.stop_programs()
            outside = replace(self._outside, fault=fault, at=at)
            ticket = await self._new_ticket(stage)
            async with asyncio.timeout(seconds):
                truth = await Play(stage, story, crash, outside=outside, ticket=ticket).through()
                await _until_nothing_is_left(stage)
            if crash is not None:
                await stage.stop_programs()
            assert truth.ok, truth.checks
        except BaseException as error:
            error.add_note(stage.account())
            error.add_note(f"waited for {stage.waits_for[-1:]}")
            await self.close()
            raise
        return truth

    async def close(self) -> None:
        """Clear the stage away; a next play opens a new one."""
        self._stage = None
        await self._held.aclose()

    async def _open(self) -> Stage:
        # PostgreSQL can live there also as another user, to whom root lends it.
        home = Path(tempfile.mkdtemp(prefix="signoff-tests-"))
        self._held.callback(shutil.rmtree, home, ignore_errors=True)
        opening = staged(home, outside=self._outside, launch=self._nursery.start)
        self._stage = await self._held.enter_async_context(opening)
        return self._stage

    async def _new_ticket(self, stage: Stage) -> str:
        """Put a copy of the reference job's ticket, of another customer, on the desk."""
        number = str(next(self._numbers))
        async with stage.engine.database.transaction() as conn:
            now = await clock.now(conn)
        [like] = [ticket for ticket in sandbox_tickets(now) if ticket.id == TICKET]
        customer = like.customer.model_copy(update={"email": f"pat{number}@cust.example"})
        copied = like.model_copy(update={"id": number, "customer": customer})
        await stage.desk.put([copied])
        return number


async def _until_nothing_is_left(stage: Stage) -> None:
    """Wait until every card is drawn and every answer given, so that the next play begins alone."""
    while True:
        async with stage.engine.database.transaction() as conn:
            await conn.execute(text(_REST_NO_LONGER))
            if (await conn.execute(text(_LEFT_TO_DO))).scalar_one() == 0:
                return
        await stage.wait("nothing to be left to do", stage.record_may_have_changed())
