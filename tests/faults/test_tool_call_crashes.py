"""An executor that is killed around the call of a tool: nobody knows, and nobody calls again."""

from __future__ import annotations

import json
import signal
from datetime import timedelta
from pathlib import Path

import pytest

from executor.engine.failpoint import CALL, Side, point
from executor.engine.setup import activate_policy
from executor.engine.sweeper import sweep
from tests.support.fake_model import calls, says
from tests.support.mcp_scene import done, reached, rogue
from tests.support.nursery import Nursery
from tests.support.office import CHANNEL, TEAM, Office, policy
from tests.support.processes import Child
from tests.support.tool_scene import ToolScene

_POLICY = """
[slack]
team = "{team}"
channel = "{channel}"

[people]
requesters = ["U0REQUESTER", "U0SECOND"]
approvers = ["U0REVIEWER", "U0SECOND", "U0REQUESTER"]

[servers.rogue]
command = {command}

[email]
from = "Acme Support <support@acme.example>"
signature = "Acme Support"
"""


@pytest.mark.parametrize(("side", "times"), [(Side.BEFORE, 0), (Side.AFTER, 1)])
async def test_a_killed_executor_leaves_a_doubt_and_the_tool_is_called_no_second_time(
    office: Office, database_url: str, tmp_path: Path, nursery: Nursery, side: Side, times: int
) -> None:
    log, file = tmp_path / "log", tmp_path / "policy.toml"
    section = rogue(log)
    command = json.dumps(list(section.command or ()))
    file.write_text(_POLICY.format(team=TEAM, channel=CHANNEL, command=command))
    servers = {"rogue": section.model_dump(mode="json")}
    await activate_policy(office.engine, policy(servers=servers))
    scene = ToolScene(office)
    async with reached() as there:
        office.tools = there
        script = (says("", calls("rogue__note", {"text": "hello"})), says("All done."))
        _, operation = await scene.asked(*script)
    await office.click(operation)
    settings = {
        "DATABASE_URL": database_url,
        "SIGNOFF_HOME": str(tmp_path),
        "SIGNOFF_POLICY": str(file),
        "SMTP_URL": "smtp://127.0.0.1:1?tls=none",
        "SIGNOFF_FAILPOINT": point(CALL, side),
    }
    mortal = Child(nursery, "executor", settings, tmp_path / "executor.log")
    await mortal.start()
    assert mortal.process is not None
    assert await mortal.process.wait() == -signal.SIGKILL, mortal.tail()
    assert await scene.status(operation) == "executing"
    longest = timedelta(minutes=5).total_seconds()
    await office.later(seconds=longest)
    await sweep(office.engine)
    assert await scene.status(operation) == "unknown"
    assert (await scene.record(operation)).doubt is not None
    assert not await office.claim_operations()
    assert len(done(log)) == times
