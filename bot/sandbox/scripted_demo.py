"""The reference job without a person, in one of several stories, and perhaps with a crash in it.

The demo sets its stage in a temporary home, lets the people act, and finds out what became of it.
A crash is a SIGKILL at a failpoint; the program is started again at once, and whatever was not
acknowledged is done again by the people, as they would.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from uuid import UUID

from bot.sandbox.crash_points import CrashPlan, Moment, Program, Story
from bot.sandbox.demo_desk import HeldTicket
from bot.sandbox.demo_faults import DemoFault, FaultAt, Outside
from bot.sandbox.demo_truth import Told, Truth, find_out, runs_since
from bot.sandbox.scripted_person import REASON, Card, ScriptedPeople
from bot.sandbox.stage import Stage, StageFailed, staged
from bot.supervisor import Child
from executor.config import load_policy
from executor.domain.ticket import TicketStatus
from executor.engine.failpoint import Commit
from executor.engine.status import newest_runs

TICKET = "4101"
CUSTOMER_WRITES = "One more thing: will the interest on it be refunded as well?"
DECIDE_WITHIN_SECONDS_WHEN_IT_EXPIRES = 2
LONGEST_WAIT_FOR_EXPIRY_SECONDS = 30
_WHILE_CARDS_ARE_POSTED = (Commit.BEGIN_POSTING, Commit.PRESENT, Commit.FINISH_DRAWING)


async def play(
    home: Path,
    story: Story,
    crash: CrashPlan | None,
    *,
    outside: Outside = Outside(),  # noqa: B008 - it is frozen
    timeout_seconds: float,
) -> Truth:
    """Play one story and return what is true at its end.

    ``outside`` says who sends the mail, where the ticket is, and what goes wrong there.

    Raises ``StageFailed`` where it came to no end in time, saying what was waited for.
    """
    started = time.monotonic()
    seconds = DECIDE_WITHIN_SECONDS_WHEN_IT_EXPIRES if story is Story.EXPIRE else 86_400
    async with staged(home, decide_within_seconds=seconds, outside=outside) as stage:
        try:
            async with asyncio.timeout(timeout_seconds):
                truth = await Play(stage, story, crash, outside=outside).through()
        except TimeoutError as error:
            waited = stage.waits_for[-1] if stage.waits_for else "the programs to start"
            raise StageFailed(
                f"not within {timeout_seconds:g} s: waited for {waited}.\n\n{stage.account()}"
            ) from error
    truth.report["seconds"] = round(time.monotonic() - started, 2)
    return truth


class Play:
    """One story on one stage, about one of its open tickets.

    Its programs do not run yet; in a story without a crash they may run on from an earlier one.
    """

    def __init__(
        self,
        stage: Stage,
        story: Story,
        crash: CrashPlan | None = None,
        *,
        outside: Outside = Outside(),  # noqa: B008 - it is frozen
        ticket: str = TICKET,
    ) -> None:
        self._stage = stage
        self._story = story
        self._crash = crash
        self._outside = outside
        self._ticket = ticket
        self._people = ScriptedPeople(stage)

    async def through(self) -> Truth:
        """Let the people act from the beginning to the end."""
        stage = self._stage
        before = await stage.desk.ticket(self._ticket)
        assert before is not None, "the sandbox's tickets were put there"
        _check_home(stage, self._story, before)
        earlier = frozenset(r.number for r in await newest_runs(stage.engine, stage.tenant))
        told = Told(
            self._story,
            before,
            earlier,
            stage.mail.accepted,
            self._outside,
            crash=self._crash,
        )
        if self._outside.fault is not None:
            await stage.fail(self._outside.fault, self._outside.at)
        known = [card.operation for card in self._people.cards()]
        await _have(stage.bot, *self._failpoints(Program.BOT, Moment.BEGINNING))
        asks_later = self._failpoints(Program.EXECUTOR, Moment.ASKED)
        if not asks_later:
            await _have(stage.executor)
        await stage.wait("the bot to be ready", stage.bot_is_ready())
        goal = stage.desk.goal(self._ticket)
        if self._story is Story.MENTION:
            await self._people.mention(goal)
        else:
            await self._people.ask(goal)
        if asks_later:
            await stage.executor.start(*asks_later)
        told.card = await self._people.wait_for_card(*known)
        if self._crash is not None and self._crash.point.startswith(_WHILE_CARDS_ARE_POSTED):
            # A click would place the card itself and leave the bot nothing to be killed at.
            await self._until_killed(self._crash)
        await self._decide(told, told.card, known)
        await stage.wait("the fault to be over", stage.until_the_fault_is_over())
        truth = await find_out(stage, self._people, told)
        if self._crash is not None:
            killed = await self._until_killed(self._crash)
            truth.report["crash"] = {
                "program": self._crash.program.value,
                "killed_at": killed.killed_at,
            }
        return truth

    async def _decide(self, told: Told, card: Card, known: list[UUID]) -> None:
        stage, people = self._stage, self._people
        executes_later = self._failpoints(Program.EXECUTOR, Moment.DECIDED)
        if executes_later:
            await stage.executor.stop()
        match self._story:
            case Story.APPROVE | Story.MENTION:
                await people.approve(card)
            case Story.REJECT:
                await people.reject(card, REASON)
                told.rejected, told.reason = card, REASON
                told.card = await people.wait_for_card(card.operation, *known)
                await people.approve(told.card)
            case Story.CANCEL:
                [run] = await runs_since(stage, told.earlier_runs)
                await people.cancel(run.number)
            case Story.STALE:
                await stage.desk.reply_as_customer(self._ticket, CUSTOMER_WRITES)
                told.customer_wrote = CUSTOMER_WRITES
                await people.approve(card, as_seen_at_first=True)
            case Story.EXPIRE:
                pass
            case Story.SETTLE:
                await stage.fail(DemoFault.LOST_ANSWER, FaultAt.MAIL)
                await people.approve(card)
                await people.settle(card)
            case Story.ASK:
                await people.ask_agent(card)
                await people.approve(card)
            case Story.WITHDRAW:
                await people.withdraw(card)
        if executes_later:
            await stage.executor.start(*executes_later)

    def _failpoints(self, program: Program, moment: Moment) -> tuple[str, ...]:
        crash = self._crash
        if crash is None or (crash.program, crash.moment) != (program, moment):
            return ()
        return (*crash.earlier, crash.point)

    async def _until_killed(self, crash: CrashPlan) -> Child:
        """Wait until the program was killed where it should be, and runs again; return it."""
        stage = self._stage
        child = stage.bot if crash.program is Program.BOT else stage.executor
        wanted = [*crash.earlier, crash.point]
        await stage.wait(
            f"the {child.name} to be killed at {crash.point}",
            child.wait_for(lambda c: c.killed_at == wanted and c.running),
        )
        return child


async def _have(program: Child, *failpoints: str) -> None:
    """Start a program, unless it runs on from an earlier play."""
    if program.running:
        assert not failpoints, "a program is told at its start where to crash"
    else:
        await program.start(*failpoints)


def _check_home(stage: Stage, story: Story, ticket: HeldTicket) -> None:
    """Refuse a home in which an earlier demo left what the story cannot begin with."""
    if ticket.status is not TicketStatus.OPEN:
        raise StageFailed(
            f"ticket {ticket.id} in {stage.home} is closed already: leave --home out, or open it "
            "again on the demo's page"
        )
    within = load_policy(stage.policy_file).approval.decide_within_seconds
    if story is Story.EXPIRE and within > LONGEST_WAIT_FOR_EXPIRY_SECONDS:
        raise StageFailed(
            f"{stage.policy_file} gives people {within} s to decide: leave --home out, or write "
            f"decide_within_seconds = {DECIDE_WITHIN_SECONDS_WHEN_IT_EXPIRES} there"
        )
