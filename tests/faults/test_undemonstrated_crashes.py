"""Programs that are killed at commits which no demo reaches: done once, and told truthfully later.

The demo reaches the others (``test_crash_matrix.py``); edits, grants and recoveries have files of
their own here.
"""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import aiohttp
import pyotp
import pytest

from bot.sandbox.interaction import Sending
from bot.sandbox.seed import BOT_TOKEN, SIGNING_SECRET
from bot.step_up import StepUp
from executor.adapters.sealing import FernetSealer, new_key
from executor.domain.ids import TenantId, operator_principal, slack_principal
from executor.domain.operation import OperationStatus
from executor.domain.run import RunStatus
from executor.engine.desk import write_as_customer
from executor.engine.failpoint import Commit, Side, point
from executor.engine.second_factor import STEP_SECONDS, Enrolled, enrol
from executor.engine.sweeper import sweep
from executor.store import clock
from tests.support.bot_harness import REQUESTER, REVIEWER, SECOND, Harness, make_policy
from tests.support.card_reading import action_ids
from tests.support.nursery import Nursery
from tests.support.processes import Child, free_port
from tests.support.words import press

TENANT = TenantId("TSIGNOFF")
PUBLIC = "https://signoff.acme.example"


class Mortal:
    """One of our programs that is killed when it reaches a commit; a bot answers at ``url``."""

    def __init__(
        self,
        h: Harness,
        nursery: Nursery,
        folder: Path,
        *,
        program: str,
        dies_at: str,
        more: Mapping[str, str] | None = None,
    ) -> None:
        port = free_port()
        policy = folder / "policy.toml"
        policy.write_text(_toml(h))
        self.url = f"http://127.0.0.1:{port}"
        settings = {
            "DATABASE_URL": h.database_url,
            "SIGNOFF_HOME": str(folder),
            "SIGNOFF_POLICY": str(policy),
            "SIGNOFF_FAILPOINT": dies_at,
            "SIGNOFF_SWEEP_SECONDS": "0.2",
            "SIGNOFF_PORT": str(port),
            "SLACK_API_URL": h.slack.api_url,
            "SLACK_BOT_TOKEN": BOT_TOKEN,
            "SLACK_SIGNING_SECRET": SIGNING_SECRET,
            "SMTP_URL": f"{h.mailbox.url}?tls=none",
            **(more or {}),
        }
        self._child = Child(nursery, program, settings, folder / f"{program}.log")

    async def start(self) -> None:
        """Start it; a bot can be asked when this returns, an executor begins to work."""
        await self._child.start()
        if self._child.module == "bot":
            await self._child.until_ready()

    async def is_killed(self) -> None:
        """Wait for its end, which nothing but the commit may have brought about."""
        assert self._child.process is not None
        assert await self._child.process.wait() == -signal.SIGKILL, self._child.tail()


def _toml(h: Harness) -> str:
    """Write the harness's policy as a file, so that a start with it changes nothing."""
    document = h.policy.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return "\n".join(
        line
        for section, values in document.items()
        for line in (f"[{section}]", *(f"{n} = {json.dumps(v)}" for n, v in values.items()))
    )


@pytest.mark.timeout(120)
@pytest.mark.parametrize("side", Side)
async def test_a_reminder_comes_once_whoever_dies_over_it(
    database_url: str, tmp_path: Path, nursery: Nursery, side: Side
) -> None:
    policy = make_policy(approval={"remind_after_seconds": [600]})
    async with Harness(database_url, policy=policy) as h:
        await h.start_run()
        card = await h.settled_card()
        await h.workers[0].stop()
        await h.move_time(timedelta(seconds=601))
        mortal = Mortal(h, nursery, tmp_path, program="executor", dies_at=point(Commit.NUDGE, side))
        await mortal.start()
        await mortal.is_killed()
        assert await h.value("SELECT count(*) FROM nudges") == int(side is Side.AFTER)
        await h.start_worker()
        await h.card(lambda m: m.thread_ts == card.ts)
        await sweep(h.engine)
        await h.settled_card()
        assert len([m for m in h.cards() if m.thread_ts == card.ts]) == 1
        assert len(await h.notes("nudged")) == 1
        await press(h, REVIEWER, card, "approve")
        await h.until_operation(OperationStatus.SUCCEEDED)
        await h.shown("op_1 does not wait any more.")


@pytest.mark.timeout(120)
@pytest.mark.parametrize("side", Side)
async def test_a_code_that_was_judged_counts_once_and_decides_nothing_by_itself(
    database_url: str, tmp_path: Path, nursery: Nursery, side: Side
) -> None:
    key = new_key()
    sealer = FernetSealer([key])
    policy = make_policy(approval={"step_up": True})
    async with Harness(database_url, policy=policy, step_up=StepUp(PUBLIC, sealer)) as h:
        reviewer = slack_principal(TENANT, REVIEWER)
        given = await enrol(h.engine, sealer, TENANT, reviewer, operator_principal("ada"))
        assert isinstance(given, Enrolled)
        mortal = Mortal(
            h,
            nursery,
            tmp_path,
            program="bot",
            dies_at=point(Commit.JUDGE_CODE, side),
            more={"SIGNOFF_SEALING_KEY": key, "SIGNOFF_PUBLIC_URL": PUBLIC},
        )
        await mortal.start()
        page = await _link(h)
        code = await _code(h, given)
        async with aiohttp.ClientSession() as browser:
            with pytest.raises(aiohttp.ClientConnectionError):
                await browser.post(mortal.url + page, data={"vote": "approve", "code": code})
            await mortal.is_killed()
            assert await h.decisions() == []
            if side is Side.AFTER:
                # It may have been used up for whoever reads along: it is, and nothing was decided.
                assert "This code is wrong" in await _approve(browser, h.bots[0].url + page, code)
                assert await h.decisions() == []
                await h.move_time(timedelta(seconds=STEP_SECONDS))
                code = await _code(h, given)
            assert "you approved op_1" in await _approve(browser, h.bots[0].url + page, code)
        assert await h.decisions() == [(reviewer, "approve")]
        await h.until_operation(OperationStatus.SUCCEEDED)
        assert h.mailbox.accepted == 1


async def _link(h: Harness) -> str:
    """Click Approve and return the path of the link that comes for it."""
    await h.start_run()
    await press(h, REVIEWER, await h.settled_card(), "approve")
    direct = h.workspace.direct(REVIEWER)
    assert direct is not None
    await h.workspace.wait_for(lambda w: w.visible(direct.id))
    [message] = h.workspace.visible(direct.id)
    found = re.search(rf"{PUBLIC}(/decide/\S+)", message.text)
    assert found is not None, message.text
    return found[1]


async def _code(h: Harness, given: Enrolled) -> str:
    async with h.database.transaction() as conn:
        return pyotp.TOTP(given.secret).at(await clock.now(conn))


async def _approve(browser: aiohttp.ClientSession, url: str, code: str) -> str:
    async with browser.post(url, data={"vote": "approve", "code": code}) as answer:
        return await answer.text()


@pytest.mark.timeout(120)
@pytest.mark.parametrize("side", Side)
async def test_a_second_press_after_a_death_names_what_the_first_one_made(
    database_url: str, tmp_path: Path, nursery: Nursery, side: Side
) -> None:
    async with Harness(database_url, policy=make_policy(approval={"quorum": 2})) as h:
        await h.start_run("close 4101")
        card = await h.settled_card()
        await write_as_customer(h.database, TENANT, "4101", "Wait, still broken!")
        # A vote below the quorum draws the card again, and then it tells.
        await press(h, SECOND, card, "approve")
        await h.workspace.wait_for(lambda _: "propose_again" in action_ids(card.blocks))
        mortal = Mortal(
            h, nursery, tmp_path, program="bot", dies_at=point(Commit.PROPOSE_AGAIN, side)
        )
        await mortal.start()
        offering = len(card.revisions) - 1
        requester = h.person(REQUESTER)
        lost = await requester.click(
            card.channel, card.ts, "propose_again", sending=Sending(to=mortal.url)
        )
        await mortal.is_killed()
        assert not lost.acknowledged
        again = await requester.click(card.channel, card.ts, "propose_again", revision=offering)
        assert again.acknowledged
        told = "is" if side is Side.BEFORE else "was already"
        assert await h.operations() == [OperationStatus.STALE, OperationStatus.AWAITING]
        # What was rolled back has used a number up.
        number = await h.value("SELECT max(number) FROM operations")
        await h.whispered(REQUESTER, f"op_1 {told} proposed again as op_{number}.")
        new = await h.card(
            lambda m: "approve" in action_ids(m.blocks) and "Proposed again" in str(m.blocks)
        )
        for who in (REVIEWER, SECOND):
            await press(h, who, new, "approve")
        await h.until_operation(OperationStatus.STALE, OperationStatus.SUCCEEDED)
        assert h.mailbox.accepted == 1


@pytest.mark.timeout(120)
@pytest.mark.parametrize("side", Side)
@pytest.mark.parametrize("commit", [Commit.PAUSE, Commit.RESUME], ids=lambda commit: commit.value)
async def test_a_run_is_paused_asks_once_and_goes_on_whoever_dies_over_it(
    database_url: str, tmp_path: Path, nursery: Nursery, commit: Commit, side: Side
) -> None:
    policy = make_policy(budget={"run_microusd": 1})
    async with Harness(database_url, policy=policy, worker=False) as h:
        await h.start_run("close 4101")
        mortal = Mortal(h, nursery, tmp_path, program="executor", dies_at=point(commit, side))
        if commit is Commit.RESUME:
            await h.start_worker()
            await h.until_run(1, RunStatus.PAUSED)
            await h.workers[0].stop()
            # Nobody wakes it: the slow look has to.
            await h.rows("UPDATE run_budgets SET limit_microusd = 9000000 RETURNING run_id")
            await h.move_time(timedelta(seconds=61))
        await mortal.start()
        await mortal.is_killed()
        raises = int(commit is Commit.RESUME or side is Side.AFTER)
        assert await h.value("SELECT count(*) FROM operations") == raises
        await h.move_time(timedelta(seconds=61))
        await h.start_worker()
        if commit is Commit.PAUSE:
            await h.until_run(1, RunStatus.PAUSED)
            card = await h.settled_card(predicate=lambda m: "Raise the limit" in str(m.blocks))
            assert await h.value("SELECT count(*) FROM operations") == 1
            await press(h, REVIEWER, card, "approve")
            await h.until_operation(OperationStatus.SUCCEEDED)
        else:
            await h.until_run(1, RunStatus.WAITING)
            await h.until(h.operations, lambda now: OperationStatus.WITHDRAWN in now)
