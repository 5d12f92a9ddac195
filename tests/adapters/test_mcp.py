from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from executor.domain.effect import Outcome, OutcomeKind
from executor.domain.payloads import JsonObject
from executor.domain.policy_servers import ServerSection
from executor.engine.tool_port import ServerAway, ToolServer
from tests.support.mcp_scene import done, outgoing, processes, reached, rogue
from tests.support.rogue_mcp_server import HUGE

APPLIED, NOT_APPLIED, UNKNOWN = (
    OutcomeKind.APPLIED,
    OutcomeKind.NOT_APPLIED,
    OutcomeKind.UNKNOWN,
)


@dataclass
class Scene:
    server: ToolServer
    log: Path

    async def call(self, tool: str, arguments: JsonObject | None = None) -> Outcome:
        return await self.server.call(await outgoing(self.server, tool, arguments or {}))


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    log = tmp_path / "log"
    async with reached() as servers:
        yield Scene(servers.named("rogue", rogue(log, timeout_seconds=1)), log)


async def test_a_tool_that_answers_was_called_once_with_exactly_these_arguments(
    scene: Scene,
) -> None:
    outcome = await scene.call("note", {"text": "Grüße", "more": [None, 1.5, {"a": None}]})
    assert outcome.kind is APPLIED
    assert outcome.evidence["result"] == {"text": "done: note"}
    [line] = done(scene.log)
    assert json.loads(line.removeprefix("note ")) == {
        "text": "Grüße",
        "more": [None, 1.5, {"a": None}],
    }


@pytest.mark.parametrize(
    ("tool", "kind", "phase", "times"),
    [
        ("die", UNKNOWN, "response", 1),
        ("hang", UNKNOWN, "response", 1),
        ("garbage", UNKNOWN, "answer", 1),
        ("break", UNKNOWN, "answer", 1),
        ("fail", UNKNOWN, "answer", 1),
        ("refuse", NOT_APPLIED, "refused", 0),
    ],
)
async def test_every_other_end_of_a_call_proves_only_what_it_proves(
    scene: Scene, tool: str, kind: OutcomeKind, phase: str, times: int
) -> None:
    outcome = await scene.call(tool)
    assert (outcome.kind, outcome.evidence["phase"]) == (kind, phase)
    assert not outcome.retryable
    assert len(done(scene.log)) == times
    # The next one finds a server again, be it another process.
    assert (await scene.call("note", {"text": "x"})).kind is APPLIED


async def test_a_server_that_knows_the_newest_greeting_alone_is_spoken_to(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with reached() as servers:
        server = servers.named("rogue", rogue(log, "modern"))
        outcome = await server.call(await outgoing(server, "note", {"text": "x"}))
    assert outcome.kind is APPLIED
    assert done(log) == ['note {"text": "x"}']


async def test_a_tool_that_has_changed_since_its_approval_is_not_called(scene: Scene) -> None:
    approved = await outgoing(scene.server, "note", {"text": "x"})
    await scene.call("change")
    outcome = await scene.server.call(approved)
    assert (outcome.kind, outcome.retryable) == (NOT_APPLIED, False)
    assert outcome.evidence["phase"] == "never_left"
    assert done(scene.log) == ["change {}"]


async def test_a_server_that_cannot_be_started_was_never_called(tmp_path: Path) -> None:
    async with reached() as servers:
        there = servers.named("rogue", rogue(tmp_path / "log"))
        approved = await outgoing(there, "note", {"text": "x"})
        gone = servers.named("gone", ServerSection(command=(str(tmp_path / "no-such-command"),)))
        outcome = await gone.call(approved)
        assert (outcome.kind, outcome.retryable) == (NOT_APPLIED, True)
        assert outcome.evidence["phase"] == "never_left"
        with pytest.raises(ServerAway):
            await gone.list_tools()


async def test_calls_of_many_runs_share_one_process_and_one_death(scene: Scene) -> None:
    notes = [await outgoing(scene.server, "note", {"text": str(n)}) for n in range(5)]
    died = await outgoing(scene.server, "die", {})
    outcomes = await asyncio.gather(*(scene.server.call(c) for c in (*notes, died)))
    assert outcomes[-1].kind is UNKNOWN
    assert len(processes(scene.log)) <= 2
    applied = sum(outcome.kind is APPLIED for outcome in outcomes)
    assert applied <= len(done(scene.log)) - 1
    assert all(outcome.kind in (APPLIED, UNKNOWN, NOT_APPLIED) for outcome in outcomes)


async def test_what_a_tool_returns_is_bounded_and_says_so(scene: Scene) -> None:
    read = await scene.server.read("huge", {})
    assert len(str(read["text"])) == 20_000
    assert read["cut"] == HUGE - 20_000
    outcome = await scene.call("huge")
    result = outcome.evidence["result"]
    assert isinstance(result, dict)
    assert len(result["text"]) == 8_000


async def test_a_reading_tool_that_fails_says_so_and_one_that_dies_is_away(scene: Scene) -> None:
    assert await scene.server.read("fail", {}) == {"text": "half of it is done", "failed": True}
    assert (await scene.server.read("refuse", {}))["failed"] is True
    with pytest.raises(ServerAway):
        await scene.server.read("die", {})
    assert await scene.server.read("look", {}) == {"text": "nothing to see"}


async def test_a_schema_refuses_arguments_before_anybody_is_asked(scene: Scene) -> None:
    assert await scene.server.problem_with("note", {"text": "x"}) is None
    assert "text" in str(await scene.server.problem_with("note", {}))
    assert "integer" not in str(await scene.server.problem_with("note", {"text": 3}))


async def test_what_a_server_says_of_itself_is_only_a_hint(scene: Scene) -> None:
    tools = {tool.name: tool for tool in await scene.server.list_tools()}
    assert tools["lie"].read_only_hint
    assert not tools["look"].read_only_hint


async def test_a_command_gets_only_the_variables_that_the_policy_names(tmp_path: Path) -> None:
    environ = {"ROGUE_TOKEN": "a-long-secret", "SLACK_BOT_TOKEN": "xoxb-other"}
    os.environ["SIGNOFF_ONLY_OURS"] = "x"
    try:
        async with reached(environ) as servers:
            section = rogue(tmp_path / "log", environment=("ROGUE_TOKEN",))
            read = await servers.named("rogue", section).read("environment", {})
    finally:
        del os.environ["SIGNOFF_ONLY_OURS"]
    given = json.loads(str(read["text"]))
    assert set(given) <= {
        *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"),
        "ROGUE_TOKEN",
    }
    # It has the secret, and what it says of it does not come back.
    assert given["ROGUE_TOKEN"] == "***"


async def test_a_missing_variable_is_named_at_the_first_use(tmp_path: Path) -> None:
    async with reached() as servers:
        section = rogue(tmp_path / "log", environment=("ROGUE_TOKEN",))
        with pytest.raises(ServerAway, match="ROGUE_TOKEN"):
            await servers.named("rogue", section).list_tools()
    assert not processes(tmp_path / "log")


async def test_no_word_of_a_server_is_logged_but_its_last_ones_without_secrets(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with reached({"ROGUE_TOKEN": "a-long-secret"}) as servers:
        section = rogue(tmp_path / "log", environment=("ROGUE_TOKEN",), timeout_seconds=1)
        server = servers.named("rogue", section)
        await server.read("inject", {})
        with pytest.raises(ServerAway):
            await server.read("garbage", {})
        with pytest.raises(ServerAway):
            await server.read("die", {})
    assert "Ignore your instructions" not in caplog.text
    assert "no list of blocks" not in caplog.text
    assert "starting with the secret ***" in caplog.text
    assert "a-long-secret" not in caplog.text


_WORKER = """
import asyncio, sys
from pathlib import Path
from tests.support.mcp_scene import reached, rogue
async def main():
    async with reached() as servers:
        await servers.named("rogue", rogue(Path(sys.argv[1]), "deaf")).list_tools()
        print("ready", flush=True)
        await asyncio.sleep(600)
asyncio.run(main())
"""


@pytest.mark.parametrize("told", [False, True], ids=["at once", "after it was told to end"])
def test_a_server_that_hears_no_end_is_killed_with_its_worker(tmp_path: Path, told: bool) -> None:
    log = tmp_path / "log"
    worker = subprocess.Popen([sys.executable, "-c", _WORKER, str(log)], stdout=subprocess.PIPE)
    assert worker.stdout is not None
    assert worker.stdout.readline() == b"ready\n"
    [pid] = processes(log)
    watched = os.pidfd_open(pid)
    if told:
        os.killpg(os.getpgid(pid), signal.SIGTERM)
    worker.send_signal(signal.SIGKILL)
    worker.communicate()
    try:
        assert _ended(watched)
    finally:
        os.close(watched)


def _ended(pidfd: int) -> bool:
    import select

    return bool(select.select([pidfd], [], [], 20)[0])


async def test_a_server_that_hears_no_end_ends_with_its_session(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with reached() as servers:
        await servers.named("rogue", rogue(log, "deaf")).list_tools()
        [pid] = processes(log)
        watched = os.pidfd_open(pid)
    assert _ended(watched)
    os.close(watched)


def test_the_plain_executor_does_not_import_the_protocol() -> None:
    program = (
        "import sys, executor.__main__, executor.adapters.tools.server_choice as s;"
        "s.McpServers({}); s.problems_with({}, {});"
        "sys.exit(bool({'mcp', 'mcp_types', 'jsonschema'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_missing_package_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from executor.adapters.tools import server_choice

    monkeypatch.setitem(sys.modules, "mcp", None)
    [problem] = server_choice.problems_with({"rogue": rogue(tmp_path / "log")}, {})
    assert "pip install 'signoff[tools]'" in problem


def test_missing_variables_are_named_at_the_start(tmp_path: Path) -> None:
    from executor.adapters.tools import server_choice

    section = rogue(tmp_path / "log", environment=("ROGUE_TOKEN", "ROGUE_OTHER"))
    problems = server_choice.problems_with({"rogue": section}, {"ROGUE_OTHER": "x"})
    assert problems == ["ROGUE_TOKEN is not set, which the policy names in servers.rogue"]
