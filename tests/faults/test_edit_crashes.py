"""A bot that is killed at the commit of an edit leaves all of it or nothing, and says so later."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from bot.sandbox.interaction import Sending
from bot.sandbox.seed import BOT_TOKEN, SIGNING_SECRET
from executor.domain.operation import OperationStatus
from executor.engine.failpoint import Commit, Side, point
from tests.support.bot_harness import APPROVALS, REVIEWER, SECOND, Harness
from tests.support.card_reading import action_ids
from tests.support.nursery import Nursery
from tests.support.processes import Child, free_port
from tests.support.words import press

POLICY = f"""
[slack]
team = "TSIGNOFF"
channel = "{APPROVALS}"

[tenant]
name = "Acme Support"
timezone = "Europe/Amsterdam"

[people]
requesters = "everyone"
approvers = ["{REVIEWER}", "{SECOND}"]

[email]
from = "Acme Support <support@acme.example>"
"""


@pytest.mark.timeout(120)
@pytest.mark.parametrize("side", Side)
async def test_a_bot_killed_at_the_commit_of_an_edit_leaves_all_of_it_or_nothing(
    database_url: str, tmp_path: Path, nursery: Nursery, side: Side
) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text(POLICY)
    port = free_port()
    async with Harness(database_url) as h:
        settings = {
            "DATABASE_URL": database_url,
            "SIGNOFF_HOME": str(tmp_path),
            "SIGNOFF_POLICY": str(policy),
            "SLACK_API_URL": h.slack.api_url,
            "SLACK_BOT_TOKEN": BOT_TOKEN,
            "SLACK_SIGNING_SECRET": SIGNING_SECRET,
            "SMTP_URL": f"{h.mailbox.url}?tls=none",
            "SIGNOFF_PORT": str(port),
            "SIGNOFF_FAILPOINT": point(Commit.EDIT, side),
        }
        mortal = Child(nursery, "bot", settings, tmp_path / "bot.log")
        await mortal.start()
        await mortal.until_ready()
        assert mortal.process is not None
        await h.start_run("close 4101")
        card = await h.settled_card()
        await press(h, REVIEWER, card, "edit")
        form = h.person(REVIEWER).view()
        assert form is not None
        typed = {"text_0": {"text": "We are sorry."}}
        lost = await h.person(REVIEWER).submit_view(
            form.id, typed, sending=Sending(to=f"http://127.0.0.1:{port}")
        )
        assert await mortal.process.wait() == -signal.SIGKILL
        assert not lost.acknowledged
        # Slack keeps the form; the person submits it once more, to the bot that lives.
        again = await h.person(REVIEWER).submit_view(form.id, typed)
        if side is Side.BEFORE:
            assert again.view_errors == {}
        else:
            assert set(again.view_errors) == {"to"}
            assert "has taken its place" in again.view_errors["to"]
        await h.until_operation(OperationStatus.SUPERSEDED, OperationStatus.AWAITING)
        new = await h.card(
            lambda m: "approve" in action_ids(m.blocks) and "in the place of" in str(m.blocks)
        )
        await press(h, SECOND, new, "approve")
        await h.until_operation(OperationStatus.SUPERSEDED, OperationStatus.SUCCEEDED)
        assert h.mailbox.accepted == 1
