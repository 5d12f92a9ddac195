"""A bot that is killed while an agent asks: what was acknowledged is done once, and told."""

from __future__ import annotations

import signal
from datetime import timedelta
from pathlib import Path

import pytest

from bot.sandbox.agent import REQUEST_EVENT
from bot.sandbox.interaction import Sending
from bot.sandbox.seed import BOT_TOKEN, SIGNING_SECRET
from executor.domain.operation import OperationStatus
from executor.engine.failpoint import Commit, Side, point
from tests.support.bot_harness import APPROVALS, REVIEWER, SUPPORT, Harness, make_policy
from tests.support.nursery import Nursery
from tests.support.processes import Child, free_port

AGENT = "U0AGENT"
POLICY = f"""
[slack]
team = "TSIGNOFF"
channel = "{APPROVALS}"

[tenant]
name = "Acme Support"
timezone = "Europe/Amsterdam"

[people]
requesters = ["{AGENT}"]
approvers = ["{REVIEWER}"]
agents = ["{AGENT}"]

[email]
from = "Acme Support <support@acme.example>"
"""
REQUEST = {
    "kind": "close_ticket",
    "request_key": "k-1",
    "arguments": {
        "ticket_id": "4101",
        "language": "en",
        "subject": "Ticket closed",
        "message": "All is well.",
    },
}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("side", Side)
@pytest.mark.parametrize("commit", [Commit.STORE_EVENT, Commit.ACCEPT])
async def test_a_request_survives_the_death_of_the_bot_and_is_done_once(
    database_url: str, tmp_path: Path, nursery: Nursery, commit: Commit, side: Side
) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text(POLICY)
    port = free_port()
    people = {"requesters": [AGENT], "approvers": [REVIEWER], "agents": [AGENT]}
    async with Harness(
        database_url, policy=make_policy(people=people), bot=False, worker=False
    ) as h:
        settings = {
            "DATABASE_URL": database_url,
            "SIGNOFF_HOME": str(tmp_path),
            "SIGNOFF_POLICY": str(policy),
            "SLACK_API_URL": h.slack.api_url,
            "SLACK_BOT_TOKEN": BOT_TOKEN,
            "SLACK_SIGNING_SECRET": SIGNING_SECRET,
            "SMTP_URL": f"{h.mailbox.url}?tls=none",
            "SIGNOFF_PORT": str(port),
            "SIGNOFF_FAILPOINT": point(commit, side),
        }
        mortal = Child(nursery, "bot", settings, tmp_path / "bot.log")
        await mortal.start()
        await mortal.until_ready()
        assert mortal.process is not None
        robot = h.workspace.agent(AGENT)
        metadata = {"event_type": REQUEST_EVENT, "event_payload": REQUEST}
        to_mortal = Sending(to=f"http://127.0.0.1:{port}")
        asked = await robot.mention(
            SUPPORT, "see metadata", metadata=metadata, retries=False, sending=to_mortal
        )
        assert await mortal.process.wait() == -signal.SIGKILL
        await h.start_bot()
        if commit is Commit.STORE_EVENT:
            assert not asked.acknowledged
            await robot.redeliver(asked)
        else:
            assert asked.acknowledged
        # What the dead one had taken, in whichever moment that was left to it, is due again.
        await h.move_time(timedelta(seconds=h.durations.outbox_lease_seconds + 1))
        await h.shown("waits for approval", "Requested by")
        await h.until_operation(OperationStatus.AWAITING)
        assert await h.value("SELECT count(*) FROM agent_requests") == 1
        assert await h.value("SELECT count(*) FROM runs") == 1
        assert len(robot.told(h.workspace.visible(SUPPORT)[0].ts, SUPPORT)) == 1
